"""Full texts of tool results, stored once, addressed by their content."""

import asyncio
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Protocol

from schemas.errors import StorageError
from tools.results import clean_text

_REF = re.compile(r"sha256:([0-9a-f]{64})")


class ArtifactStore(Protocol):
    """Keeps texts by content: the same text has the same reference, in every process."""

    async def put(self, text: str) -> str:
        """Store a text, cleaned of NUL and lone surrogates, and return its reference, "sha256:<64 hex digits>"."""
        ...

    async def get(self, ref: str) -> str:
        """Return the text of a reference.

        Raises:
            KeyError: it is not a reference, or nothing is stored under it.
        """
        ...


class MemoryArtifacts:
    """An ArtifactStore that ends with the process."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def put(self, text: str) -> str:
        """Store a text and return its reference."""
        text = clean_text(text)
        ref = _ref(text.encode())
        self._texts[ref] = text
        return ref

    async def get(self, ref: str) -> str:
        """Return the text of a reference, or raise KeyError."""
        return self._texts[ref]


class FileArtifacts:
    """An ArtifactStore of files: folder/ab/cd/<64 hex digits>, made when the first text is stored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, text: str) -> str:
        """Store a text and return its reference. A text that is already there is not written again.

        Raises:
            StorageError: the file could not be written.
        """
        data = clean_text(text).encode()
        ref = _ref(data)
        try:
            await asyncio.to_thread(_write_once, self._path(ref), data)
        except OSError as error:
            raise StorageError(
                f"cannot store a tool result under {self._folder}: {error.strerror}"
            ) from error
        return ref

    async def get(self, ref: str) -> str:
        """Return the text of a reference.

        Raises:
            KeyError: it is not a reference, or nothing is stored under it.
            StorageError: the file is there and cannot be read, or holds something else.
        """
        path = self._path(ref)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError:
            raise KeyError(ref) from None
        except OSError as error:
            raise StorageError(f"cannot read {ref} under {self._folder}: {error.strerror}") from error
        if _ref(data) != ref:
            raise StorageError(f"{ref} under {self._folder} is damaged: its content has another hash")
        return data.decode()

    def _path(self, ref: str) -> Path:
        # Only 64 hex digits ever become a path, so a reference cannot name another file.
        match = _REF.fullmatch(ref)
        if match is None:
            raise KeyError(ref)
        digest = match[1]
        return self._folder / digest[:2] / digest[2:4] / digest


def _ref(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _write_once(path: Path, data: bytes) -> None:
    """Write through a temporary file: a kill leaves either the whole text or none under its name."""
    if path.exists() and path.stat().st_size == len(data):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

"""Full texts of tool results, stored once, addressed by their content."""

import asyncio
import errno
import hashlib
import os
import re
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from langgraph.config import get_store
from langgraph.store.base import BaseStore

from schemas.errors import SettingsError, StorageError
from tools.results import clean_text

# Where StoreArtifacts keeps texts, each below the first two digits of its hash.
NAMESPACE = ("planweave", "artifacts")
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
            raise StorageError(_unstored(f"under {self._folder}", error)) from error
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


class StoreArtifacts:
    """An ArtifactStore in a LangGraph Store: what every process that works on the same database can read.

    Args:
        store: None = the one of the run that is at work, which an Agent Server brings.
    """

    def __init__(self, store: BaseStore | None = None) -> None:
        self._store = store

    async def put(self, text: str) -> str:
        """Store a text and return its reference."""
        text = clean_text(text)
        ref = _ref(text.encode())
        await self._in_use().aput(*self._place(ref), {"text": text}, index=False)
        return ref

    async def get(self, ref: str) -> str:
        """Return the text of a reference, or raise KeyError."""
        item = await self._in_use().aget(*self._place(ref))
        if item is None:
            raise KeyError(ref)
        return item.value["text"]

    def _in_use(self) -> BaseStore:
        return self._store if self._store is not None else get_store()

    @staticmethod
    def _place(ref: str) -> tuple[tuple[str, ...], str]:
        match = _REF.fullmatch(ref)
        if match is None:
            raise KeyError(ref)
        return (*NAMESPACE, match[1][:2]), match[1]


class FsspecArtifacts:
    """An ArtifactStore under any URL that fsspec knows, such as s3://bucket/prefix: url/ab/cd/<64 hex digits>.

    Raises:
        SettingsError: fsspec, or its driver for such URLs, is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            core: Any = import_module("fsspec.core")
            files, root = cast("tuple[Any, str]", core.url_to_fs(url))
        except (ImportError, ValueError) as error:
            raise SettingsError(f"PLANWEAVE_ARTIFACTS: {error}: install fsspec and its driver") from None
        self._files, self._root = files, root.rstrip("/")

    async def put(self, text: str) -> str:
        """Store a text and return its reference.

        Raises:
            StorageError: it could not be written.
        """
        data = clean_text(text).encode()
        ref = _ref(data)
        try:
            await asyncio.to_thread(self._write, self._path(ref), data)
        except OSError as error:
            raise StorageError(_unstored("in PLANWEAVE_ARTIFACTS", error)) from error
        return ref

    async def get(self, ref: str) -> str:
        """Return the text of a reference.

        Raises:
            KeyError: it is not a reference, or nothing is stored under it.
            StorageError: it cannot be read, or is something else.
        """
        try:
            data = cast("bytes", await asyncio.to_thread(self._files.cat_file, self._path(ref)))
        except FileNotFoundError:
            raise KeyError(ref) from None
        except OSError as error:
            raise StorageError(f"cannot read {ref} in PLANWEAVE_ARTIFACTS: {error}") from error
        if _ref(data) != ref:
            raise StorageError(f"{ref} in PLANWEAVE_ARTIFACTS is damaged: its content has another hash")
        return data.decode()

    def _write(self, path: str, data: bytes) -> None:
        # Object stores show a file when it is whole; a local folder is better given as a plain path.
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._files.pipe_file(path, data)

    def _path(self, ref: str) -> str:
        match = _REF.fullmatch(ref)
        if match is None:
            raise KeyError(ref)
        return f"{self._root}/{match[1][:2]}/{match[1][2:4]}/{match[1]}"


def no_room(error: BaseException) -> bool:
    """Return whether an error says that a disk, or a user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _unstored(where: str, error: OSError) -> str:
    if no_room(error):
        return f"cannot store a tool result {where}: the disk is full: free some room, then resume the run"
    return f"cannot store a tool result {where}: {error.strerror or error}"


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

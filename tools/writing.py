"""Files that are changed whole or not at all, under a folder that nothing leads out of."""

import codecs
import os
import re
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from weakref import WeakValueDictionary

from langchain_core.tools import ToolException

from tools.folder import MAX_FILE_BYTES, NotText, decode, inside

_MAX_NAME_BYTES = 255
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\\:]")
_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "gb18030": b"",
    "cp1252": b"",
}

_locks: "WeakValueDictionary[str, threading.Lock]" = WeakValueDictionary()
_locks_guard = threading.Lock()


@contextmanager
def held(path: Path) -> Generator[None]:
    """Hold a file against every other change to it in this process.

    A lock of threads, not of asyncio: a call that is cancelled goes on in its thread until its change is made, and
    another one must not begin before.
    """
    with _locks_guard:
        lock = _locks.setdefault(str(path), threading.Lock())
    with lock:
        yield


def place_for(root: Path, given: str) -> Path:
    """Return the real path for a file that may not exist yet.

    Args:
        root: as existing_folder returned it.
        given: a relative path. What exists of it must lie inside the root; what does not is not created here.

    Raises:
        ToolException: the path is absolute, climbs, is hidden, leads out, or is a folder.
    """
    parts = PurePosixPath(given).parts
    known = next((n for n in range(len(parts), 0, -1) if _exists(root, parts[:n])), 0)
    new = parts[known:]
    path = inside(root, given if not new else str(PurePosixPath(*parts[:known])))
    if fault := next((fault for name in new if (fault := _name_fault(name))), ""):
        raise ToolException(f"path {given!r} is refused: {fault}")
    if new and not path.is_dir():
        raise ToolException(f"path {given!r} is refused: {path.relative_to(root).as_posix()} is not a folder")
    path = path.joinpath(*new)
    if path.is_dir():
        raise ToolException(f"path {given!r} is a folder: give the path of a file")
    return path


def _exists(root: Path, parts: tuple[str, ...]) -> bool:
    # An absolute path and one with NUL are left to `inside`, which says what is wrong.
    try:
        return os.path.lexists(root.joinpath(*parts))
    except (OSError, ValueError):
        return True


def _name_fault(name: str) -> str:
    if name == "..":
        return '".." is not allowed; give a path relative to the folder'
    if name.startswith("."):
        return "hidden files are not written"
    if _UNUSABLE.search(name) or len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        return "a name holds a control character, a backslash or a colon, or is too long"
    return ""


def replace_file(path: Path, data: bytes) -> None:
    """Put data in the place of a file, whole or not at all; its mode stays. Folders on the way are made.

    Raises:
        OSError: the file stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o7777 if path.exists() else None
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_new_file_mode() if mode is None else mode)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _new_file_mode() -> int:
    # There is no way to read the umask but to set it.
    with _locks_guard:
        mask = os.umask(0o077)
        os.umask(mask)
    return 0o666 & ~mask


@dataclass(frozen=True)
class TextFile:
    """A text file as a model sees it, and how to write it back unchanged but for its text.

    Attributes:
        text: line ends as a single newline where the file has one kind only.
        mark: the byte order mark, or b"".
        crlf: whether each line ends in CR LF.
    """

    text: str
    encoding: str
    mark: bytes
    crlf: bool

    def encoded(self, text: str) -> bytes:
        """Return the bytes of a new text in the file's own encoding and line ends.

        Raises:
            UnicodeEncodeError: the encoding has no such character.
        """
        return self.mark + (text.replace("\n", "\r\n") if self.crlf else text).encode(self.encoding)


def read_text_file(path: Path) -> TextFile:
    """Read a file so that it can be written back exactly.

    Raises:
        NotText: it is binary, or in an encoding that is not known for certain. OSError: it cannot be read.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise NotText
    data = path.read_bytes()
    text = decode(data)
    for encoding, mark in _MARKS.items():
        used = mark if mark and data.startswith(mark) else b""
        with suppress(UnicodeError):
            if used + text.encode(encoding) == data:
                crlf = "\r\n" in text and text.count("\r\n") == text.count("\n") == text.count("\r")
                return TextFile(text.replace("\r\n", "\n") if crlf else text, encoding, used, crlf)
    raise NotText

"""The files under a root: which may be read, by which name, and what their text is."""

import codecs
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath

from langchain_core.tools import ToolException

from schemas.errors import SettingsError

MAX_FILE_BYTES = 20_000_000
MAX_FILES = 20_000
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv"})
_ISOLATED = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

Stamp = tuple[int, int]
"""A file's modification time in nanoseconds and its size in bytes: another stamp means another content."""


class NotText(Exception):
    """The file's bytes are not text."""


def existing_folder(root: Path) -> Path:
    """Return the root with symbolic links resolved.

    Raises:
        SettingsError: there is no such folder.
    """
    try:
        real = root.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise SettingsError(f"there is no folder {str(root)!r}") from None
    if not real.is_dir():
        raise SettingsError(f"{str(root)!r} is not a folder")
    return real


def walk(
    root: Path, suffixes: Collection[str] | None = None, within: Path | None = None
) -> Iterator[tuple[str, Path, Stamp]]:
    """Yield (path relative to the root with /, absolute path, stamp) of regular files, sorted by folder.

    Hidden names and folders such as node_modules are skipped, and so are symbolic links that lead out of the root.
    At most MAX_FILES are yielded. A folder or file that vanishes meanwhile is skipped.

    Args:
        root: as existing_folder returned it.
        suffixes: lower-case endings such as ".md"; None = every file.
        within: a folder under the root, to which the walk is limited.
    """
    count = 0
    for folder, folders, names in os.walk(within or root):
        folders[:] = sorted(name for name in folders if not _is_skipped(name))
        for name in sorted(names):
            path = Path(folder, name)
            if _is_skipped(name) or (suffixes is not None and path.suffix.lower() not in suffixes):
                continue
            stamp = _stamp(root, path)
            if stamp is None:
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield path.relative_to(root).as_posix(), path, stamp


def _is_skipped(name: str) -> bool:
    return _is_hidden(name) or name in _SKIPPED_FOLDERS


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _is_open(root: Path, real: Path) -> bool:
    return real.is_relative_to(root) and not any(_is_hidden(part) for part in real.relative_to(root).parts)


def _stamp(root: Path, path: Path) -> Stamp | None:
    try:
        if path.is_symlink() and not _is_open(root, path.resolve(strict=True)):
            return None
        info = path.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    return (info.st_mtime_ns, info.st_size) if stat.S_ISREG(info.st_mode) else None


def inside(root: Path, given: str) -> Path:
    """Return the real path of a name that a model gave, relative to the root.

    Args:
        root: as existing_folder returned it.
        given: a relative path; "." is the root.

    Raises:
        ToolException: the path is absolute, climbs with "..", is hidden, leads out of the root, or does not exist.
    """
    fault = _path_fault(given)
    if fault is None:
        try:
            path = (root / given).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            fault = "there is no such file or folder; list_files shows what there is"
        else:
            if _is_open(root, path):
                return path
            fault = "it leads out of the folder or to a hidden file"
    raise ToolException(f"path {given!r} is refused: {fault}")


def _path_fault(given: str) -> str | None:
    if not given.strip():
        return 'it is empty; "." is the whole folder'
    if "\0" in given:
        return "it holds a NUL character"
    windows = PureWindowsPath(given)
    if PurePosixPath(given).is_absolute() or windows.drive or windows.root:
        return "it is absolute; give a path relative to the folder"
    if ".." in windows.parts:
        return '".." is not allowed; give a path relative to the folder'
    if any(_is_hidden(part) for part in PurePosixPath(given).parts):
        return "hidden files are not read"
    return None


def matches(path: str, pattern: str) -> bool:
    """Return whether a relative path fits a pattern; ** stands for any folders, as in **/*.md."""
    parts = tuple(path.split("/"))
    wanted = tuple(part for part in pattern.split("/") if part not in ("", "."))

    @cache
    def fits(at: int, rule: int) -> bool:
        if rule == len(wanted):
            return at == len(parts)
        if wanted[rule] == "**":
            return fits(at, rule + 1) or (at < len(parts) and fits(at + 1, rule))
        return at < len(parts) and fnmatchcase(parts[at], wanted[rule]) and fits(at + 1, rule + 1)

    return fits(0, 0)


def decode(data: bytes, *, partial: bool = False, declared: str | None = None) -> str:
    """Return the text of a file: UTF-8, UTF-16 with a mark, what is declared, GB18030, else Windows-1252.

    Args:
        data: the file's bytes.
        declared: an encoding that the file names for itself.
        partial: they are the file's beginning only, and may end inside a character.

    Raises:
        NotText: the bytes hold NUL outside UTF-16: a binary file.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if b"\0" in data:
        raise NotText
    for encoding in ("utf-8", *([declared] if declared else []), *_legacy(data)):
        try:
            return codecs.getincrementaldecoder(encoding)().decode(data, final=not partial)
        except UnicodeDecodeError:
            continue
    return data.decode("cp1252", "replace")


def _legacy(data: bytes) -> tuple[str, ...]:
    # Chinese text comes in pairs of high bytes; accents of Western text mostly stand alone between ASCII letters.
    high = sum(1 for byte in data[:100_000] if byte >= 0x80)
    alone = len(_ISOLATED.findall(data[:100_000]))
    return () if alone * 2 > high else ("gb18030",)


def read_text(path: Path, find_declared: Callable[[bytes], str | None] | None = None) -> str:
    """Return the decoded text of a file, line ends as a single newline.

    Args:
        path: the file.
        find_declared: finds the encoding that a file names for itself, in formats that do so.

    Raises:
        NotText: it is a binary file.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    text = decode(data, declared=find_declared(data) if find_declared else None)
    return text.replace("\r\n", "\n").replace("\r", "\n")

"""Listing, reading and searching of the files under a folder, and of nothing outside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from tools.folder import MAX_FILE_BYTES, NotText, existing_folder, inside, matches, read_text, walk
from tools.results import SourceDraft, clean_text, cut, draft, render, source_id

MAX_LISTED = 500
MAX_LINES = 2_000
MAX_READ_CHARS = 20_000
MAX_MATCHES = 200
MAX_MATCH_CHARS = 300
MAX_SEARCHED_BYTES = 200_000_000
_MAX_PATTERN_CHARS = 200

Result = tuple[str, list[SourceDraft]]


def file_tools(root: Path) -> list[BaseTool]:
    """Return list_files, read_file and search_files, confined to a folder.

    "..", absolute paths, hidden files, and symbolic links that lead out are refused.

    Raises:
        SettingsError: there is no such folder.
    """
    shelf = _Shelf(existing_folder(root))

    def list_files(
        folder: Annotated[str, 'Folder to list, "." for the whole'] = ".",
        pattern: Annotated[
            str, "Which files, relative to the folder; ** is any depth, as in **/*.md"
        ] = "**/*",
    ) -> Result:
        return shelf.listing(folder, pattern)

    def read_file(
        path: Annotated[str, "Path of a text file, as list_files gives it"],
        start_line: Annotated[int, "First line to return, from 1"] = 1,
        max_lines: Annotated[int, "How many lines at most"] = 400,
    ) -> Result:
        return shelf.read(path, start_line, max_lines)

    def search_files(
        text: Annotated[str, "What the line contains, literally; upper and lower case are one"],
        folder: Annotated[str, 'Folder to search, "." for the whole'] = ".",
    ) -> Result:
        return shelf.search(text, folder)

    descriptions = {
        list_files: "List the files of a folder and all below it, with their sizes in bytes.",
        read_file: "Read lines of a text file.",
        search_files: "Find the lines of text files that contain a text, with their line numbers.",
    }
    return [
        StructuredTool.from_function(
            function,
            description=description,
            response_format="content_and_artifact",
            metadata={"permission": "read", "idempotent": True},
        )
        for function, description in descriptions.items()
    ]


class _Shelf:
    def __init__(self, root: Path) -> None:
        self._root = root

    def listing(self, folder: str, pattern: str) -> Result:
        base = self._folder(folder)
        if (
            len(pattern) > _MAX_PATTERN_CHARS
            or "\0" in pattern
            or pattern.startswith("/")
            or ".." in pattern.split("/")
        ):
            raise ToolException(
                f"pattern {pattern[:80]!r} is refused: give one such as **/*.md, within the folder"
            )
        found = [
            f"{clean_text(name)} ({size} bytes)"
            for name, path, (_, size) in walk(self._root, within=base)
            if matches(path.relative_to(base).as_posix(), pattern)
        ]
        if not found:
            return f"No file in {folder!r} matches {pattern!r}.", []
        more = len(found) - MAX_LISTED
        text = "\n".join(found[:MAX_LISTED]) + (f"\n… {more} more: narrow the pattern" if more > 0 else "")
        where = f"{folder.rstrip('/')}/{pattern}"
        return _result([draft(source_id("list", where, text), locator=where, title="Files", text=text)])

    def read(self, given: str, start_line: int, max_lines: int) -> Result:
        path = inside(self._root, given)
        lines = self._lines(path, given)
        if not lines:
            return f"{given} is empty.", []
        if start_line < 1 or start_line > len(lines):
            raise ToolException(
                f"start_line {start_line} is outside {given}: it has {len(lines)} lines, from 1 on"
            )
        shown = list(_fitting(lines[start_line - 1 : start_line - 1 + max(1, min(max_lines, MAX_LINES))]))
        text = cut("\n".join(shown), MAX_READ_CHARS, "search_files finds a line by its words")
        name = path.relative_to(self._root).as_posix()
        found = draft(
            source_id(name, start_line, text), locator=f"{name}#L{start_line}", title=name, text=text
        )
        following = start_line + len(shown)
        note = f"[lines {start_line} to {following - 1} of {len(lines)}"
        return _result(
            [found], note + (f"; next start_line: {following}]" if following <= len(lines) else "]")
        )

    def search(self, text: str, folder: str) -> Result:
        wanted = clean_text(text).casefold()
        if not wanted.strip() or "\n" in wanted:
            raise ToolException("give a text of one line to search for")
        base = self._folder(folder)
        drafts: list[SourceDraft] = []
        left, budget, notes = MAX_MATCHES, MAX_SEARCHED_BYTES, list[str]()
        for name, path, (_, size) in walk(self._root, within=base):
            if size > MAX_FILE_BYTES:
                continue
            budget -= size
            if left <= 0 or budget < 0:
                notes.append("[there is more: narrow the folder or the text]")
                break
            matched = _matching(path, wanted, left)
            left -= len(matched)
            if matched:
                drafts.append(_match_draft(name, matched))
        if not drafts:
            return " ".join([f"No line in {folder!r} contains {clean_text(text)[:200]!r}.", *notes]), []
        return _result(drafts, *notes)

    def _folder(self, given: str) -> Path:
        folder = inside(self._root, given)
        if not folder.is_dir():
            raise ToolException(f"path {given!r} is a file, not a folder")
        return folder

    def _lines(self, path: Path, given: str) -> list[str]:
        if not path.is_file():
            raise ToolException(f"path {given!r} is not a file; list_files lists a folder")
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise ToolException(
                    f"{given!r} is larger than {MAX_FILE_BYTES // 1_000_000} MB and is not read"
                )
            return read_text(path).removesuffix("\n").split("\n") if path.stat().st_size else []
        except NotText:
            raise ToolException(f"{given!r} is a binary file, not text") from None
        except OSError as error:
            raise ToolException(f"{given!r} cannot be read: {error.strerror}") from None


def _fitting(lines: list[str]) -> Iterator[str]:
    """Yield lines while they fit MAX_READ_CHARS together; the first in any case."""
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_READ_CHARS and size > len(line) + 1:
            return
        yield line


def _matching(path: Path, wanted: str, most: int) -> list[tuple[int, str]]:
    """Return number and text of matching lines; none if the file is binary or cannot be read."""
    try:
        lines = read_text(path).split("\n")
    except (NotText, OSError):
        return []
    found = ((number, line) for number, line in enumerate(lines, start=1) if wanted in line.casefold())
    return [(number, _around(line, wanted)) for (number, line), _ in zip(found, range(most), strict=False)]


def _around(line: str, wanted: str) -> str:
    """Return the line, or of a long one the part around the match."""
    if len(line) <= MAX_MATCH_CHARS:
        return line
    # Case folding may change lengths (ß), so the place is near enough rather than exact.
    start = max(0, line.casefold().find(wanted) - MAX_MATCH_CHARS // 3)
    return f"{'…' if start else ''}{line[start : start + MAX_MATCH_CHARS]}…"


def _match_draft(name: str, matched: list[tuple[int, str]]) -> SourceDraft:
    text = "\n".join(f"{number}: {line}" for number, line in matched)
    locator = f"{name}#L{matched[0][0]}"
    return draft(source_id(name, "matches", text), locator=locator, title=name, text=text)


def _result(drafts: list[SourceDraft], *notes: str) -> Result:
    return "\n\n".join([render(drafts), *notes]), drafts

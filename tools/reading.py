"""Documents as lines of text with their place: Markdown, plain text, HTML, and PDF and DOCX through an extra."""

import importlib.util
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tools.folder import MAX_FILE_BYTES, NotText, read_text

if TYPE_CHECKING:
    from markitdown import MarkItDown

MARKDOWN = frozenset({".md", ".markdown"})
PLAIN = frozenset({".txt", ".rst", ".log"})
HTML = frozenset({".html", ".htm"})
CONVERTED = frozenset({".pdf", ".docx"})
SUFFIXES = MARKDOWN | PLAIN | HTML | CONVERTED
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_UNDERLINE = re.compile(r"([=\-~^\"'`+*#])\1{2,}[ \t]*")
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([A-Za-z0-9._:-]+)", re.IGNORECASE)
_FRONT_MATTER_LINES = 60
NO_CONVERTER = "install the [docs] extra"
TOO_LARGE = f"larger than {MAX_FILE_BYTES // 1_000_000} MB"

Converter = Callable[[Path], str]
"""Turns a PDF or DOCX file into Markdown; a form feed begins each further page of a PDF."""


class Unreadable(Exception):
    """A document could not be read; the message is the reason, in a few words."""


@dataclass(frozen=True)
class Line:
    """One line of a document.

    Attributes:
        place: where it stands in the file: "L12" (line), "p3" (page), or "" if the format has no such thing.
        level: 1-6 if it is a heading, else 0.
    """

    text: str
    place: str = ""
    level: int = 0


@dataclass(frozen=True)
class Document:
    """A document as text.

    Attributes:
        path: relative to the root, with /.
        title: its own title, else its file's name.
    """

    path: str
    title: str
    lines: tuple[Line, ...]

    @cached_property
    def text(self) -> str:
        """All lines, joined by newlines."""
        return "\n".join(line.text for line in self.lines)

    @property
    def headings(self) -> list[str]:
        """The headings' texts, in order."""
        return [heading_text(line.text) for line in self.lines if line.level]

    def locator(self, place: str) -> str:
        """Return path#place, or the path alone where the format has no places."""
        return f"{self.path}#{place}" if place else self.path


def installed_converter() -> Converter | None:
    """Return the converter of the [docs] extra, or None if it is not installed. Nothing is imported before its use."""
    if importlib.util.find_spec("markitdown") is None:
        return None
    made: list[MarkItDown] = []

    def convert(path: Path) -> str:
        if not made:
            from markitdown import MarkItDown

            made.append(MarkItDown(enable_plugins=False))
        return made[0].convert_local(path).text_content

    return convert


def read_document_file(path: Path, name: str, converter: Converter | None) -> Document:
    """Read one document.

    Args:
        path: the file.
        name: its path relative to the root.
        converter: for PDF and DOCX.

    Raises:
        Unreadable: with the reason.
    """
    suffix = path.suffix.lower()
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise Unreadable(TOO_LARGE)
        if suffix in CONVERTED:
            return _converted(path, name, converter)
        text = read_text(path, declared_charset if suffix in HTML else None)
    except NotText:
        raise Unreadable("not text") from None
    except OSError as error:
        raise Unreadable(error.strerror or "cannot be read") from None
    if suffix in HTML:
        from tools.page_text import html_lines  # its parser is slow to import, and most folders have no HTML

        title, lines = html_lines(text)
        return _document(name, [Line(line, f"L{number}", level) for number, line, level in lines], title)
    return _document(
        name, list(marked_lines(text, suffix)), front_matter_title(text) if suffix in MARKDOWN else ""
    )


def declared_charset(data: bytes) -> str | None:
    """Return the encoding that an HTML page names for itself, if Python knows it."""
    match = _CHARSET.search(data[:2048])
    if match is None:
        return None
    name = match[1].decode("ascii")
    try:
        b"a".decode(name)
    except (LookupError, ValueError):  # unknown, no encoding of text, or of more than one byte
        return None
    return name


def _document(name: str, lines: list[Line], title: str = "") -> Document:
    headings = sorted((line.level, number) for number, line in enumerate(lines) if line.level)
    # The first heading of the highest rank.
    first = heading_text(lines[headings[0][1]].text) if headings else ""
    return Document(name, title or first or Path(name).stem, tuple(lines))


def _converted(path: Path, name: str, converter: Converter | None) -> Document:
    if converter is None:
        raise Unreadable(NO_CONVERTER)
    is_pdf = path.suffix.lower() == ".pdf"
    # The converter takes what it does not know for plain text.
    if not (_begins_as_pdf(path) if is_pdf else zipfile.is_zipfile(path)):
        raise Unreadable("damaged, or of another format than its name says")
    try:
        text = converter(path)
        page_count = _page_count(path) if is_pdf else 0
    except Exception as error:
        raise Unreadable(f"damaged or protected ({type(error).__name__})") from error
    if not text.strip():
        raise Unreadable("no text in it")
    if not is_pdf:
        return _document(name, [Line(line.text, "", line.level) for line in marked_lines(text, ".md")])
    pages = text.rstrip("\f").split("\f")
    # Where the converter has joined pages, no page number is better than a wrong one.
    numbered = len(pages) == page_count
    lines = [
        Line(line, f"p{number}" if numbered else "")
        for number, page in enumerate(pages, start=1)
        for line in page.splitlines()
    ]
    return _document(name, lines)


def _begins_as_pdf(path: Path) -> bool:
    with path.open("rb") as file:
        return b"%PDF-" in file.read(1024)


def _page_count(path: Path) -> int:
    from pdfminer.pdfpage import PDFPage

    with path.open("rb") as file:
        return sum(1 for _ in PDFPage.get_pages(file))


def heading_text(line: str) -> str:
    """Return a heading's words, without its number signs."""
    match = _ATX.fullmatch(line)
    return match[2] if match else line.strip()


def marked_lines(text: str, suffix: str) -> Iterator[Line]:
    """Yield the lines of Markdown, reStructuredText or plain text, headings marked; plain text has none."""
    rows = text.split("\n")
    front = _front_matter_end(rows) if suffix in MARKDOWN else 0
    underlines: list[str] = []
    fence = ""
    for number, row in enumerate(rows):
        level = 0
        if number >= front and suffix in MARKDOWN:
            fence = _fence_after(fence, row)
            atx = None if fence else _ATX.fullmatch(row)
            level = len(atx[1]) if atx and atx[2] else 0
        if number >= front and not level and not fence and suffix in MARKDOWN | {".rst"}:
            level = _underlined_level(rows, number, underlines, suffix)
        yield Line(row, f"L{number + 1}", level)


def _fence_after(fence: str, row: str) -> str:
    match = _FENCE.match(row)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1][0] == fence[0] and len(match[1]) >= len(fence) else fence


def _underlined_level(rows: list[str], number: int, seen: list[str], suffix: str) -> int:
    row = rows[number].strip()
    below = rows[number + 1] if number + 1 < len(rows) else ""
    match = _UNDERLINE.fullmatch(below)
    alone = number == 0 or not rows[number - 1].strip() or _UNDERLINE.fullmatch(rows[number - 1]) is not None
    if match is None or not row or not alone or _UNDERLINE.fullmatch(row) or row.startswith(("|", "-", ">")):
        return 0
    mark = match[1]
    if suffix in MARKDOWN:
        return {"=": 1, "-": 2}.get(mark, 0)
    if mark not in seen:
        seen.append(mark)
    return min(seen.index(mark) + 1, 6)


def _front_matter_end(rows: list[str]) -> int:
    """Return how many rows at the top are a YAML block between lines of ---."""
    if rows[0].rstrip() != "---":
        return 0
    for number, row in enumerate(rows[1:_FRONT_MATTER_LINES], start=1):
        if row.rstrip() in ("---", "..."):
            return number + 1
    return 0


def front_matter_title(text: str) -> str:
    """Return the title in a YAML block at the top of Markdown, or ""."""
    rows = text.split("\n", _FRONT_MATTER_LINES)
    for row in rows[: _front_matter_end(rows)]:
        key, _, value = row.partition(":")
        if key == "title":
            return value.strip().strip("\"'")
    return ""

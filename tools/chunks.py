"""Documents cut into passages of about 800 characters, each with its headings and its place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tools.reading import Document, Line, heading_text
from tools.results import character_boundary

CHUNK_CHARS = 800
_SENTENCE_END = re.compile(r"[。！？!?；;]+[”’」』）)\"']*|\.+[”’)\"']*(?=\s)|\n")


@dataclass(frozen=True)
class Chunk:
    """One passage, verbatim.

    Attributes:
        number: its position in the document, from 0.
        headings: the texts of the headings it stands under, outermost first.
        place: of its first line, as in Line.place.
    """

    number: int
    text: str
    headings: tuple[str, ...]
    place: str


def chunks_of(document: Document) -> list[Chunk]:
    """Return a document's passages: they end at headings, else at paragraphs, lines, sentences; they do not overlap.

    A heading with nothing under it but another heading stays with what follows.
    """
    builder = _Builder()
    for block in _blocks(document.lines):
        builder.take(block)
    builder.close()
    return builder.chunks


def _blocks(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield headings one by one, and runs of lines without a blank one between."""
    block: list[Line] = []
    for line in lines:
        if line.level or not line.text.strip():
            if block:
                yield block
            block = []
            if line.level:
                yield [line]
        else:
            block.append(line)
    if block:
        yield block


@dataclass
class _Builder:
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    _parts: list[str] = field(default_factory=list[str])
    _place: str = ""
    _size: int = 0
    _has_body: bool = False
    _path: dict[int, str] = field(default_factory=dict[int, str])

    def take(self, block: Sequence[Line]) -> None:
        level = block[0].level
        if level:
            if self._has_body:
                self.close()
            self._path = {rank: text for rank, text in self._path.items() if rank < level}
            self._path[level] = heading_text(block[0].text)
            self._add(block[0].text, block[0].place)
            return
        text = "\n".join(line.text for line in block)
        if self._has_body and self._size + len(text) > CHUNK_CHARS:
            self.close()
        if len(text) <= CHUNK_CHARS:
            self._add(text, block[0].place)
            self._has_body = True
            return
        for piece, place in _pieces(block):
            if self._has_body:
                self.close()
            self._add(piece, place)
            self._has_body = True

    def _add(self, text: str, place: str) -> None:
        if not self._parts:
            self._place = place
        self._parts.append(text)
        self._size += len(text)

    def close(self) -> None:
        """End the passage."""
        text = "\n\n".join(self._parts).strip("\n")
        if text.strip():
            headings = tuple(self._path[rank] for rank in sorted(self._path))
            self.chunks.append(Chunk(len(self.chunks), text, headings, self._place))
        self._parts, self._place, self._size, self._has_body = [], "", 0, False


def _pieces(block: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Yield pieces of a long paragraph, with their places: whole lines while they fit, else parts of a line."""
    held: list[str] = []
    place, size = "", 0
    for line in block:
        if held and size + len(line.text) > CHUNK_CHARS:
            yield "\n".join(held), place
            held, size = [], 0
        for part in split_sentences(line.text, CHUNK_CHARS):
            if held and size + len(part) > CHUNK_CHARS:
                yield "\n".join(held), place
                held, size = [], 0
            if not held:
                place = line.place
            held.append(part)
            size += len(part)
    if held:
        yield "\n".join(held), place


def split_sentences(text: str, size: int) -> Iterator[str]:
    """Yield parts of at most `size` characters, ending at a sentence's end where one lies in the second half."""
    start = 0
    while len(text) - start > size:
        window = text[start : start + size + 1]
        ends = [match.end() for match in _SENTENCE_END.finditer(window) if size // 2 <= match.end() <= size]
        # In a text without sentences a space still spares a word.
        place = ends[-1] if ends else window.rfind(" ", size // 2, size) + 1
        stop = start + place if place > 0 else character_boundary(text, start + size)
        yield text[start:stop]
        start = stop
    if start < len(text):
        yield text[start:]


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence or line; together they cover the text."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)

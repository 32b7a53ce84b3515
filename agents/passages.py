"""A source's text in passages: sentences and lines, each with the headings and the table head it stands under."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from agents.claims import letters, number_key, number_keys, sentences
from agents.embedded.text import units
from agents.numerals import in_digits

_MONEY = re.compile(
    r"(?i)[$€£¥￥]|元|\b(?:usd|eur|gbp|cny|rmb|dollars?|euros?|pounds?|yuan)\b|\bpric|\bcosts?\b|\bfees?\b|价|费"
)
# A number is taken whole or not at all: one of a hundred thousand digits would be tried from each of them.
_PAID = re.compile(
    r"(?i)[$€£¥￥]\s?(\d++(?:[.,]++\d++)*+)"
    r"|(?<![\d.,])(\d++(?:[.,]++\d++)*+)\s?(?:元|美元|欧元|(?:dollars?|euros?|usd|eur|gbp|cny|rmb)\b)"
)
_HAN = re.compile(r"[\u3400-\u9fff]+")
_FUNCTION = re.compile("设在|设于|位于|[为是在有至达于从由被把的和与及每]")
MAX_UNITS = 10_000
WINDOW, OVERLAP = 1_200, 200
BLOCK = 50_000
_OF_NUMBERS = frozenset("0123456789.,")


@dataclass(frozen=True)
class SourceText:
    """What a source says: its title, its locator, its full text; `id` where it may be cited."""

    title: str
    locator: str
    text: str
    id: str = ""


def plain(text: str) -> str:
    """Return a text in one form of characters, its numbers in digits."""
    # A pattern holds all threads up while it reads; between blocks the others go on.
    return "".join(in_digits(unicodedata.normalize("NFKC", block)) for block in _blocks(text))


def _blocks(text: str) -> Iterator[str]:
    """Cut a text behind lines."""
    at = 0
    while at < len(text):
        line_end = text.find("\n", at + BLOCK) + 1
        yield text[at : line_end or len(text)]
        at = line_end or len(text)


def words_in(text: str) -> frozenset[str]:
    """Return the content of a text: stems and meanings of Latin words, pairs of characters of Chinese runs."""
    found: set[str] = set()
    for unit in units(text, most=MAX_UNITS):
        if any(c.isdigit() for c in unit.key):
            continue
        runs = _HAN.findall(unit.text)
        parts = [part for run in runs for part in _FUNCTION.split(run)]
        found |= {part[i : i + 2] for part in parts for i in range(len(part) - 1)}
        if not runs or unit.key != unit.text:
            found.add(unit.key)
    return frozenset(found)


def amounts(text: str) -> frozenset[str]:
    """Return the sums of money in a text, as number_key writes them."""
    return frozenset(number_key(before or after) for before, after in _PAID.findall(text))


def speaks_of_money(text: str) -> bool:
    """Return whether a currency or a word for a price stands in a text."""
    return bool(_MONEY.search(text))


@dataclass
class Passage:
    """One sentence or line; `above` is the heading and the table head that it stands under."""

    text: str
    above: str

    @cached_property
    def said(self) -> str:
        """The passage and what it stands under, casefolded."""
        return f"{self.above}\n{self.text}".casefold()

    @cached_property
    def words(self) -> frozenset[str]:
        """Content of the passage and of what it stands under."""
        return words_in(self.said)

    @cached_property
    def figures(self) -> frozenset[str]:
        """The numbers of the passage, as number_key writes them."""
        return frozenset(number_keys(self.text))

    @cached_property
    def speaks_of_money(self) -> bool:
        """Whether a currency or a word for a price stands there."""
        return speaks_of_money(self.said)


class Passages:
    """The passages of one source, found by the figures or the words that stand in them.

    Nothing is read before it is asked for: a source may have megabytes.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source

    @cached_property
    def label(self) -> str:
        """Title and locator, casefolded."""
        return unicodedata.normalize("NFKC", f"{self.source.title}\n{self.source.locator}").casefold()

    @cached_property
    def _plain(self) -> str:
        return plain(self.source.text)

    @cached_property
    def whole(self) -> str:
        """Everything, casefolded."""
        return f"{self.label}\n{self._plain.casefold()}"

    @cached_property
    def letters(self) -> str:
        """Letters and digits only: what a quote must share with its source."""
        return f"{letters(self.label)}\n{letters(self.source.text)}"

    @cached_property
    def _lines(self) -> list["_Line"]:
        """The label, then each line of the text with what it stands under. No line is cut before it is asked for."""
        return [_Line(self.label), *_lines(self._plain)]

    @cached_property
    def _lines_by_figure(self) -> dict[str, list["_Line"]]:
        index: dict[str, list[_Line]] = {}
        for line in self._lines:
            for key in number_keys(line.text):
                index.setdefault(key, []).append(line)
        return index

    def with_figure(self, key: str) -> list[Passage]:
        """Return the passages that have a figure, given as number_key writes it."""
        lines = self._lines_by_figure.get(key, ())
        return [passage for line in lines for passage in line.passages if key in passage.figures]

    def with_word(self, word: str) -> Iterator[Passage]:
        """Return the passages that have a word, given casefolded."""
        if word in self.whole:
            for line in self._lines:
                if word in line.folded:
                    yield from (passage for passage in line.passages if word in passage.text.casefold())


@dataclass(eq=False)
class _Line:
    """One line of a text, the heading and the table head it stands under; a row of a table is one passage."""

    text: str
    heading: str = ""
    head: str = ""
    is_row: bool = True

    @cached_property
    def folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def passages(self) -> list[Passage]:
        pieces = [self.text] if self.is_row else sentences(self.text)
        above = f"{self.heading}\n{self.head}" if self.heading or self.head else ""
        return [Passage(part, above) for piece in pieces for part in _windows(piece) if part.strip()]


def _lines(text: str) -> Iterator[_Line]:
    heading = head = ""
    for line in text.split("\n"):
        row = line.lstrip().startswith("|")
        if line.startswith("#"):
            heading = line.strip("# ")
        if not row:
            head = ""
        yield _Line(line, heading, head, row)
        if row and not head:
            head = line


def _windows(piece: str) -> Iterator[str]:
    """Cut what has no end of a sentence for long, as JSON on one line, into parts that overlap, never within a number."""
    if len(piece) <= WINDOW:
        yield piece
        return
    at = 0
    while at < len(piece):
        end = _past_number(piece, at + WINDOW)
        yield piece[at:end]
        at = max(at + 1, _past_number(piece, end - OVERLAP)) if end < len(piece) else end


def _past_number(text: str, at: int) -> int:
    while 0 < at < len(text) and text[at - 1] in _OF_NUMBERS and text[at] in _OF_NUMBERS:
        at += 1
    return at

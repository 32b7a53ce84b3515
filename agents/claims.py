"""Figures and quotes in a text, held against the texts they are said to come from. Pure code.

A figure is a number with two digits or more, a decimal, or one with a currency or percent sign; single digits
("five vendors", "2 steps") count things more often than they state a fact. A quote is what stands between
quotation marks, ten letters or digits long at least.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(
    r"(?<![A-Za-z_\d.,])(?P<sign>[$€£¥￥]\s?)?(?P<number>\d+(?:[.,]\d+)*)(?P<unit>\s?(?:%|％|元|美元|欧元|万|亿))?"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_QUOTES = re.compile(r"“([^“”]{4,2000})”|「([^「」]{4,2000})」|\"([^\"\n]{4,2000})\"|『([^『』]{4,2000})』")
_MARKS = re.compile(
    r"[\[【]\d+(?:\s*[,，]\s*\d+)*[\]】]|^[ \t]*(?:[-*+][ \t]+)?\d+[.)、]\s|^[ \t]*#+ ", re.MULTILINE
)
_SENTENCE = re.compile(r"[^\n。！？]*?(?:[。！？]|[.!?](?=\s|$)|(?=\n)|$)(?:\s{0,3}[\[【]\d{1,9}[\]】])*")
MIN_QUOTE = 10


def figures(text: str) -> list[str]:
    """Return the figures of a text as they stand there, each once."""
    text = _MARKS.sub(" ", unicodedata.normalize("NFKC", text))
    found = [m for m in _NUMBER.finditer(text) if m["sign"] or m["unit"] or len(m["number"]) > 1]
    return list(dict.fromkeys(m["number"] for m in found))


def number_keys(text: str) -> set[str]:
    """Return every number of a text in one form: 1,480.00 and 1480 are the same."""
    return {number_key(n) for n in re.findall(r"\d+(?:[.,]\d+)*", unicodedata.normalize("NFKC", text))}


def number_key(number: str) -> str:
    """Return a number in the form that number_keys uses."""
    if _THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    number = number.replace(",", ".")
    whole, dot, fraction = number.partition(".")
    fraction = "" if set(fraction) <= {"0"} else fraction
    return (whole.lstrip("0") or "0") + (dot + fraction if fraction else "")


def letters(text: str) -> str:
    """Return only the letters and digits of a text: what a quote must share with its source."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def quotes(text: str) -> list[str]:
    """Return what stands between quotation marks, where it is long enough to be a quote."""
    found = ("".join(filter(None, match)) for match in _QUOTES.findall(text))
    return [quote for quote in found if len(letters(quote)) >= MIN_QUOTE]


class Texts:
    """Texts that claims are held against."""

    def __init__(self, texts: Iterable[str]) -> None:
        whole = list(texts)
        self._numbers = [number_keys("\n".join(whole))]
        self._letters = ["\n".join(map(letters, whole))]

    @classmethod
    def joined(cls, several: Iterable["Texts"]) -> "Texts":
        """Return all of them as one, without reading their texts again."""
        whole = cls([])
        for texts in several:
            whole._numbers += texts._numbers
            whole._letters += texts._letters
        return whole

    def unsupported(self, text: str) -> list[str]:
        """Return the figures and quotes of `text` that stand in none of the texts."""
        wrong = self.unsupported_figures(text)
        return wrong + [f"“{quote[:60]}”" for quote in quotes(text) if not self._quoted(quote)]

    def unsupported_figures(self, text: str) -> list[str]:
        """Return the figures of `text` that stand in none of the texts."""
        return [f for f in figures(text) if not any(number_key(f) in known for known in self._numbers)]

    def _quoted(self, quote: str) -> bool:
        # An ellipsis or a bar joins pieces that stand apart in the source.
        pieces = [letters(piece) for piece in re.split(r"…|\.\.\.|\|| / |\n", quote)]
        return all(any(piece in text for text in self._letters) for piece in pieces if piece)


def sentences(text: str) -> list[str]:
    """Return a text in pieces that end with a sentence or a line; joined they are the text again."""
    pieces: list[str] = []
    at = 0
    for match in _SENTENCE.finditer(text):
        if match.end() > at:
            pieces.append(text[at : match.end()])
            at = match.end()
    if at < len(text):
        pieces.append(text[at:])
    return pieces


def wholly_unsupported(summary: str, texts: Sequence[str], neutral: str = "") -> list[str]:
    """Return a summary's figures if not one of them stands in any of the texts, else nothing.

    Figures in `neutral` (the words of the task) neither help nor harm: repeating the question is no claim.
    """
    asked = number_keys(neutral)
    stated = [figure for figure in figures(summary) if number_key(figure) not in asked]
    supported = number_keys("\n".join(texts))
    wrong = [figure for figure in stated if number_key(figure) not in supported]
    return wrong if stated and len(wrong) == len(stated) else []

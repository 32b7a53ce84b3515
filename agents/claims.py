"""Figures, quotes and sentences in a text. Pure code.

A figure is a number with two digits or more, a decimal, or one with a currency, a percent sign or stars; other single
digits ("five vendors", "2 steps") count things more often than they state a fact. A quote is what stands between
quotation marks, ten letters or digits long at least; a Chinese character says as much as two letters.
"""

import re
import unicodedata

_NUMBER = re.compile(
    r"(?i)(?<![a-z_\d.,])(?P<sign>[$€£¥￥]\s?)?(?P<number>\d+(?:[.,]\d+)*)"
    r"(?P<unit>\s?(?:%|％|元|美元|欧元|万|亿|颗?星|(?:stars?|eur|usd|gbp|cny|rmb|euros?|dollars?)\b))?"
)
# A number whole: never begun in its middle.
WHOLE_NUMBER = r"(?<![\d.,])\d+(?:[.,]\d+)*"
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_QUOTES = re.compile(r"“([^“”]{4,2000})”|「([^「」]{4,2000})」|\"([^\"\n]{4,2000})\"|『([^『』]{4,2000})』")
MARKS = re.compile(
    r"[\[【]\d+(?:\s*[,，]\s*\d+)*[\]】]|^[ \t]*(?:[-*+][ \t]+)?\d+[.)、](?:\s|$)|^[ \t]*#+ ", re.MULTILINE
)
# A quotation is one piece, however many sentences it has, and ends one if it ends with a full stop; a citation belongs
# to the sentence before it, but on a line of its own to what follows.
# It may hold another one.
_QUOTATION = r"“(?:[^“”\n]|“[^“”\n]{0,2000}”){0,2000}”|「(?:[^「」\n]|「[^「」\n]{0,2000}」){0,2000}」"
_SENTENCE = re.compile(
    rf"(?:{_QUOTATION}|[^\n。！？])*?"
    r"(?:[。！？]{1,9}[”」』）\"]{0,3}|(?<=[.!?。！？][”」])|[.!?][\")]{0,3}(?=\s|$)|(?=\n)|$)(?:[ \t]{0,3}[\[【]\d{1,9}[\]】])*"
)
_ASCII_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_OTHER_MARKS = re.compile(r"[\W_]+")
MIN_QUOTE = 10
FIRST_WIDE = "\u2e80"


def figures(text: str) -> list[str]:
    """Return the figures of a text as they stand there, each once."""
    text = MARKS.sub(" ", unicodedata.normalize("NFKC", text))
    found = [m for m in _NUMBER.finditer(text) if m["sign"] or m["unit"] or len(m["number"]) > 1]
    return list(dict.fromkeys(m["number"] for m in found))


def number_keys(text: str) -> set[str]:
    """Return every number of a text in one form: 1,480.00 and 1480, 12.50 and 12.5 are the same."""
    return {number_key(n) for n in re.findall(r"\d+(?:[.,]\d+)*", unicodedata.normalize("NFKC", text))}


def number_key(number: str) -> str:
    """Return a number in the form that number_keys uses."""
    if _THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    number = number.replace(",", ".")
    whole, dot, fraction = number.partition(".")
    fraction = fraction if "." in fraction else fraction.rstrip("0")  # 12.50 is 12.5, a date stays as it is
    return (whole.lstrip("0") or "0") + (dot + fraction if fraction else "")


def letters(text: str) -> str:
    """Return only the letters and digits of a text: what a quote must share with its source."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    # As bytes first: looking at each character takes ten times as long, and a source may have megabytes.
    kept = folded.encode("utf-8", "surrogatepass").translate(None, _ASCII_MARKS)
    return _OTHER_MARKS.sub("", kept.decode("utf-8", "surrogatepass"))


def quotes(text: str) -> list[str]:
    """Return what stands between quotation marks, where it is long enough to be a quote."""
    found = ("".join(filter(None, match)) for match in _QUOTES.findall(text))
    return [quote for quote in found if _weight(letters(quote)) >= MIN_QUOTE]


def _weight(text: str) -> int:
    return sum(2 if c > FIRST_WIDE else 1 for c in text)


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

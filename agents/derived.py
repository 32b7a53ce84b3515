"""Figures that a sentence computes from others it states: differences, sums, shares and multiples. Pure code.

"79 EUR, 57 EUR more than the 22 EUR of Delphi": no source has the 57, and it is right.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from agents.claims import WHOLE_NUMBER, number_key

MOST = 4  # the more figures there are, the more can be made of them by chance
_VALUE = re.compile(r"\d+(?:\.\d+)?")
_SHARE = re.compile(rf"({WHOLE_NUMBER})\s?(?:%|％|percent\b|per cent\b)")
_MULTIPLE = re.compile(rf"({WHOLE_NUMBER})\s?(?:times\b|x\b|×|倍)")


class Derived:
    """What follows, by one operation, from the figures of a sentence that stand in a source.

    Args:
        given: these figures, as they stand in the sentence.
        said: the sentence, its numbers in digits.
    """

    def __init__(self, given: Sequence[str], said: str) -> None:
        values = [value for value in map(_value, given) if value is not None]
        self._given = values if 2 <= len(values) <= MOST else []
        self._shares = {*_SHARE.findall(said)} if self._given else set[str]()
        self._multiples = {*_MULTIPLE.findall(said)} if self._given else set[str]()

    def has(self, figure: str) -> bool:
        """Return whether a figure of the sentence is one of them."""
        wanted = _value(figure)
        if wanted is None:
            return False
        half = 0.5 * 10 ** -len(number_key(figure).partition(".")[2])
        if figure in self._shares:
            found = _shares(self._given)
        elif figure in self._multiples:
            found = (a / b for a, b in permutations(self._given, 2) if b)
        else:
            found, half = _sums(self._given), 1e-9 * (1 + abs(wanted))
        return any(abs(value - wanted) <= half for value in found)


def _value(figure: str) -> float | None:
    key = number_key(figure)
    return float(key) if _VALUE.fullmatch(key) else None


def _sums(given: Sequence[float]) -> Iterator[float]:
    if given:
        yield sum(given)
    for a, b in permutations(given, 2):
        yield a + b
        yield a - b


def _shares(given: Sequence[float]) -> Iterator[float]:
    for a, b in permutations(given, 2):
        if b:
            yield 100 * a / b
            yield abs(100 * (a - b) / b)

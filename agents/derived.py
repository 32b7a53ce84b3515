"""Figures that a sentence computes from others it states: differences, sums, shares and multiples. Pure code.

"79 EUR, 57 EUR more than the 22 EUR of Delphi": no source has the 57, and it is right.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from agents.claims import number_key

MOST = 4  # the more figures there are, the more can be made of them by chance
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SHARE = r"\s?(?:%|％|percent\b|per cent\b)|(?<=个)百分点"
_MULTIPLE = r"\s?(?:times\b|x\b|×|倍)"


def is_derived(figure: str, others: Sequence[str], said: str) -> bool:
    """Return whether a figure follows from others of its sentence by one operation.

    Args:
        figure: as it stands in the sentence.
        others: figures of the sentence that stand in a source.
        said: the sentence, its numbers in digits.
    """
    wanted = _value(figure)
    given = [value for value in map(_value, others) if value is not None]
    if wanted is None or not 2 <= len(given) <= MOST:
        return False
    half = 0.5 * 10 ** -len(number_key(figure).partition(".")[2])
    at = rf"(?<![\d.,]){re.escape(figure)}"
    if re.search(at + f"(?:{_SHARE})", said):
        found = _shares(given)
    elif re.search(at + f"(?:{_MULTIPLE})", said):
        found = (a / b for a, b in permutations(given, 2) if b)
    else:
        found, half = _sums(given), 1e-9 * (1 + abs(wanted))
    return any(abs(value - wanted) <= half for value in found)


def _value(figure: str) -> float | None:
    key = number_key(figure)
    return float(key) if _NUMBER.fullmatch(key) else None


def _sums(given: Sequence[float]) -> Iterator[float]:
    yield sum(given)
    for a, b in permutations(given, 2):
        yield a + b
        yield a - b


def _shares(given: Sequence[float]) -> Iterator[float]:
    for a, b in permutations(given, 2):
        if b:
            yield 100 * a / b
            yield abs(100 * (a - b) / b)

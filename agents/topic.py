"""What a figure is a figure of: the words that a sentence and a passage must share. Pure code."""

import re
from dataclasses import dataclass
from functools import cached_property

from agents.claims import WHOLE_NUMBER
from agents.passages import Passage, speaks_of_money, words_in

MIN_SHARED = 2
_CLAUSES = re.compile(
    r"[,;:()](?=\s)|[，；：（）、]|\s\(|\b(?:and|while|with|but|whereas|although)\b|[和与而但]"
)
_FIGURE = re.compile(WHOLE_NUMBER)
_WITH_UNIT = re.compile(
    rf"(?P<figure>{WHOLE_NUMBER})[\s-]?(?:(?P<latin>[^\W\d_\u3400-\u9fff]{{2,}})|(?P<han>[\u3400-\u9fff]))"
)


@dataclass(frozen=True)
class Topic:
    """The topic of one sentence.

    Attributes:
        said: the sentence, its numbers in digits.
        words: of the sentence, without the names of things.
        asked: words of the question.
    """

    said: str
    words: frozenset[str]
    asked: frozenset[str]

    @classmethod
    def of(cls, said: str, about: frozenset[str], asked: frozenset[str]) -> "Topic":
        """Return the topic of a sentence about some things; `asked` are the words of the question."""
        return cls(said, words_in(said) - words_in(" ".join(about)), asked)

    def is_met(self, passage: Passage, figure: str) -> bool:
        """Return whether a passage with a figure of the sentence is of the same topic.

        It has a word that the figure's clause and the question share, or, where a clause tells it in other words, any
        word of the two; and the word after the figure, or two words of the sentence. A passage without words, as a
        calculation's, may be of anything.
        """
        wanted = self._wanted(figure)
        if not passage.words or not wanted:
            return True
        if not wanted & passage.words:
            return False
        return len(self.words & passage.words) >= MIN_SHARED or self._has_unit(passage, figure)

    def _wanted(self, figure: str) -> frozenset[str]:
        """Return words of which a passage must have one: "costs 49 EUR and has 4.5 stars" is of two topics."""
        clauses = self._clauses.get(figure)
        words = words_in(" ".join(clauses)) & self.words if clauses else self.words
        return words & self.asked or words | self.asked

    # Read once for all figures: a line may have thousands.
    @cached_property
    def _clauses(self) -> dict[str, list[str]]:
        """Figure -> the clauses that have it."""
        found: dict[str, list[str]] = {}
        for clause in _CLAUSES.split(self.said):
            for figure in dict.fromkeys(_FIGURE.findall(clause)):
                found.setdefault(figure, []).append(clause)
        return found

    @cached_property
    def _units(self) -> dict[str, re.Match[str]]:
        """Figure -> where a word stands behind it first."""
        found: dict[str, re.Match[str]] = {}
        for match in _WITH_UNIT.finditer(self.said):
            found.setdefault(match["figure"], match)
        return found

    def _has_unit(self, passage: Passage, figure: str) -> bool:
        after = self._units.get(figure)
        if after is None:
            return True
        if speaks_of_money(after[0]):  # "$67" and "67 dollars"
            return passage.speaks_of_money
        return after["han"] in passage.text if after["han"] else words_in(after["latin"]) <= passage.words

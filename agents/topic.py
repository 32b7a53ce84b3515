"""What a figure is a figure of: the words that a sentence and a passage must share. Pure code."""

import re
from dataclasses import dataclass

from agents.passages import Passage, speaks_of_money, words_in

MIN_SHARED = 2


@dataclass(frozen=True)
class Topic:
    """The topic of one sentence.

    Attributes:
        said: the sentence, its numbers in digits.
        words: of the sentence, without the names of things.
        wanted: one of these a passage must have: what sentence and question share; where a sentence tells it in
            other words than the question, any word of the two.
    """

    said: str
    words: frozenset[str]
    wanted: frozenset[str]

    @classmethod
    def of(cls, said: str, about: frozenset[str], asked: frozenset[str]) -> "Topic":
        """Return the topic of a sentence about some things; `asked` are the words of the question."""
        words = words_in(said) - words_in(" ".join(about))
        return cls(said, words, words & asked or words | asked)

    def is_met(self, passage: Passage, figure: str) -> bool:
        """Return whether a passage with a figure of the sentence is of the same topic.

        It shares what is wanted, and the word after the figure or two words of the sentence. A passage without words,
        as a calculation's, may be of anything.
        """
        if not passage.words or not self.wanted:
            return True
        if not self.wanted & passage.words:
            return False
        return len(self.words & passage.words) >= MIN_SHARED or self._has_unit(passage, figure)

    def _has_unit(self, passage: Passage, figure: str) -> bool:
        latin, han = r"([^\W\d_\u3400-\u9fff]{2,})", r"([\u3400-\u9fff])"
        after = re.search(rf"(?<![\d.,]){re.escape(figure)}[\s-]?(?:{latin}|{han})", self.said)
        if after is None:
            return True
        if speaks_of_money(after[0]):  # "$67" and "67 dollars"
            return passage.speaks_of_money
        return after[2] in passage.text if after[2] else words_in(after[1]) <= passage.words

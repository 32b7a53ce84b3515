"""Sentences held against the passages they are said to come from. Pure code, English and Chinese alike.

What a sentence states is its figures (numbers in words too), its quotes and the names in it that the question does not
have. Each must stand in a source that speaks of what the sentence is about:

1. a quote word for word;
2. a figure in a passage that names no other thing instead, that speaks of money if the sentence does, and that shares
   the word after the figure, or two others, with the sentence or the question;
3. a name in such a passage too.

Judgements ("the better choice") state nothing that a source could have, and are left to the reader.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agents.claims import MARKS, figures, letters, number_key, quotes
from agents.entities import Entities
from agents.passages import FUNCTION, Passage, Passages, plain, words_in

_CITED = re.compile(r"[\[【]\d{1,9}[\]】]")
_LABEL = re.compile(r"^\s*(?:[-*+]\s+|>\s*)*\*\*[^*\n]{1,80}\*\*\s*[:：]?\s*")
_QUOTED = re.compile(r"“[^“”]+”|「[^「」]+」|\"[^\"\n]+\"|『[^『』]+』")
_PAID = re.compile(
    r"(?i)[$€£¥￥]\s?(\d[\d,.]*\d|\d)|(\d[\d,.]*\d|\d)\s?(?:元|美元|欧元|(?:dollars?|euros?|usd|eur|gbp|cny|rmb)\b)"
)
# A capital letter within a sentence: what begins one, a cell of a table or an item says nothing of names.
_NAME = re.compile(r"(?<=[a-z0-9,，] )(?:[A-Z][a-z]{2,}(?:[ -](?=[A-Z][a-z]))?)+")
_NO_NAMES = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "english",
        "chinese",
        "internet",
        "section",
        "table",
        "figure",
        "source",
        "sources",
        "step",
    ]
)
# What stands after "is", "in" or "from" at the end of a clause may be a name; Chinese has no capitals to tell.
_VALUE = re.compile(
    r"(?:设在|设于|位于|来自|存放在|从|[为是在叫於于])([\u3400-\u9fff]{2,6}?)(?=运营|[，。；、！？\s）)]|$)"
)
_JUDGED = re.compile(
    "建议|推荐|应该|应当|可以|可能|最|较|更|因此|所以|需要|优先|适合|不|没|未|无|已|关键|重要|主要|说明|表明"
)
MIN_SHARED = 2


@dataclass(frozen=True)
class Held:
    """What a sentence states, and what of it nothing bears out."""

    stated: list[str] = field(default_factory=list[str])
    doubted: list[str] = field(default_factory=list[str])


class Grounds:
    """Sources that sentences are held against.

    Args:
        sources: all that may be cited.
        entities: the things they are about.
        question: what was asked; its words and figures state nothing when they are repeated.
    """

    def __init__(self, sources: Iterable[Passages], entities: Entities, question: str) -> None:
        self.sources = list(sources)
        self.entities = entities
        self._question = plain(question)
        self._asked = {number_key(figure) for figure in figures(self._question)}
        self._asked_words = words_in(self._question)

    def held(self, sentence: str, cited: Sequence[Passages] | None = None, *, related: bool = True) -> Held:
        """Hold one sentence against its sources.

        Args:
            sentence: one piece of `claims.sentences`.
            cited: what it cites; None: everything.
            related: whether figures must share words with their passage (rule 2's last part).
        """
        sources = self.sources if cited is None else list(cited)
        said = self._own_words(sentence, sources)
        about = self.entities.named_in(said)
        own = [s for s in sources if not about or about & self.entities.named_in(s.whole)]
        stated = [(f"“{q[:60]}”", _quoted(q, own)) for q in quotes(sentence)]
        words = (
            (words_in(said) | self._asked_words) - words_in(" ".join(about)) if related else frozenset[str]()
        )
        for figure in figures(said):
            if number_key(figure) not in self._asked:
                stated.append((figure, self._figure_stands(figure, said, about, own, words)))
        if (about or cited) and not sentence.lstrip().startswith("#"):
            stated += [(name, self._name_stands(name, about, own)) for name in self._names(said, about)]
        return Held([s for s, _ in stated], [s for s, stands in stated if not stands])

    def _own_words(self, sentence: str, sources: Sequence[Passages]) -> str:
        """Return a sentence in digits, without citations, label, and the quotes that a source has: those are true as such."""
        bare = _QUOTED.sub(lambda m: " " if _quoted(m[0], sources) else m[0], _CITED.sub(" ", sentence))
        return plain(MARKS.sub(" ", _LABEL.sub("", bare)))

    def _figure_stands(
        self, figure: str, said: str, about: frozenset[str], own: Sequence[Passages], words: frozenset[str]
    ) -> bool:
        paid = number_key(figure) in {number_key(a or b) for a, b in _PAID.findall(said)}
        found = (p for source in own for p in source.with_figure(number_key(figure)) if self._is_of(p, about))
        return any(
            (p.speaks_of_money or not paid) and (not words or _related(p, figure, said, words)) for p in found
        )

    def _names(self, said: str, about: frozenset[str]) -> list[str]:
        """Return the names that a sentence adds to its question."""
        asked = self._question.casefold()
        latin = [
            n for n in _NAME.findall(said) if n.casefold() not in asked and n.casefold() not in _NO_NAMES
        ]
        values = [] if _JUDGED.search(said) else [v for v in _VALUE.findall(said) if v not in asked]
        return [n for n in dict.fromkeys([*latin, *values]) if not self.entities.named_in(n) & about]

    def _name_stands(self, name: str, about: frozenset[str], own: Sequence[Passages]) -> bool:
        parts = name.casefold().split() if name.isascii() else _pairs(name)
        return any(self._is_of(p, about) for part in parts for source in own for p in source.with_word(part))

    def _is_of(self, passage: Passage, about: frozenset[str]) -> bool:
        """Return whether a passage is not about another thing: one that names only others speaks of those."""
        named = self.entities.named_in(passage.text) if about else frozenset[str]()
        return not named or bool(named & about)


def _quoted(quote: str, sources: Sequence[Passages]) -> bool:
    # An ellipsis or a bar joins pieces that stand apart in the source.
    pieces = [letters(piece) for piece in re.split(r"…|\.\.\.|\|| / |\n", quote)]
    return all(any(piece in source.letters for source in sources) for piece in pieces if piece)


def _pairs(name: str) -> list[str]:
    return [part[i : i + 2] for part in FUNCTION.split(name) for i in range(len(part) - 1)]


def _related(passage: Passage, figure: str, said: str, words: frozenset[str]) -> bool:
    shared = words & passage.words
    if len(shared) >= MIN_SHARED or not passage.words:
        return True
    after = re.search(
        rf"(?<![\d.,]){re.escape(figure)}[\s-]?(?:([^\W\d_\u3400-\u9fff]{{2,}})|([\u3400-\u9fff]))", said
    )
    if after is None:
        return bool(shared)
    if after[2]:
        return after[2] in passage.text and bool(shared)
    unit = words_in(after[1])
    return bool(unit <= passage.words and shared)

"""Sentences held against the passages they are said to come from. Pure code, English and Chinese alike.

What a sentence states is its figures (numbers in words too), its quotes and the names in it that the question does not
have. Each must stand in a source that speaks of what the sentence is about:

1. a quote word for word;
2. a figure in a passage that names no other thing instead, that means money if the sentence does, and that is of the
   same topic (agents/topic.py); or it follows from other figures of the sentence that stand so (agents/derived.py);
3. a name (agents/naming.py) in a passage that names no other thing instead.

Judgements ("the better choice") state nothing that a source could have, and are left to the reader.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from agents.claims import MARKS, figures, letters, number_key, quotes
from agents.derived import Derived
from agents.entities import Entities
from agents.naming import names_stated, parts_of
from agents.passages import Passage, Passages, amounts, plain, speaks_of_money, words_in
from agents.topic import Topic

_CITED = re.compile(r"[\[【]\d{1,9}[\]】]")
# What stands in front of a sentence: the name of a step states nothing; of other words only the figures may.
_STEP = re.compile(r"^\s*(?:[-*+]\s+|>\s*)*\*\*[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\*\*\s*[:：]?\s*")
_LABEL = re.compile(r"^\s*(?:[-*+]\s+|>\s*)*\*\*[^*\n]{1,80}\*\*\s*[:：]?\s*")
_QUOTED = re.compile(r"“[^“”]+”|「[^「」]+」|\"[^\"\n]+\"|『[^『』]+』")
MAX_QUOTE_SHOWN = 60


@dataclass(frozen=True)
class Held:
    """What a sentence states, and what of it nothing bears out; `figures` are the doubted ones that are figures."""

    stated: list[str] = field(default_factory=list[str])
    doubted: list[str] = field(default_factory=list[str])
    figures: list[str] = field(default_factory=list[str])


_Stands = Callable[[Sequence[Passages]], bool]


@dataclass(frozen=True)
class _Claim:
    """One thing that a sentence states, and the test of whether sources bear it out."""

    text: str
    stands_in: _Stands
    kind: Literal["quote", "figure", "name"]


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
        self._named: dict[Passages, frozenset[str]] = {}

    def held(self, sentence: str, cited: Sequence[Passages] | None = None, *, related: bool = True) -> Held:
        """Hold one sentence against its sources.

        Args:
            sentence: one piece of `claims.sentences`.
            cited: what it cites; None: everything.
            related: whether a figure must stand in a passage of the same topic.
        """
        sources = self.sources if cited is None else list(cited)
        claims = self._claims(sentence, sources, names_count=bool(cited), related=related)
        doubted = _not_derived([c for c in claims if not c.stands_in(sources)], claims, sentence)
        return Held(
            [claim.text for claim in claims],
            [claim.text for claim in doubted],
            [claim.text for claim in doubted if claim.kind == "figure"],
        )

    def supporters(self, sentence: str, first: Sequence[Passages] = ()) -> list[Passages]:
        """Return the sources, as few as may be, that bear out all that a sentence states.

        None if it states no figure and no quote: that a source has a name bears out little of what is said of it.

        Args:
            sentence: one piece of `claims.sentences`; its own citations do not count.
            first: sources to be preferred.
        """
        claims = self._claims(sentence, self.sources, names_count=False, related=True)
        if all(claim.kind == "name" for claim in claims):
            return []
        early = {id(source) for source in first}
        borne = [
            (source, {n for n, claim in enumerate(claims) if claim.stands_in([source])})
            for source in sorted(self.sources, key=lambda s: id(s) not in early)
        ]
        open_ = set(range(len(claims)))
        found: list[Passages] = []
        while more := max(borne, key=lambda pair: len(pair[1] & open_), default=None):
            if not more[1] & open_:
                break
            found.append(more[0])
            open_ -= more[1]
        return [] if _not_derived([claims[n] for n in open_], claims, sentence) else found

    def _claims(
        self, sentence: str, sources: Sequence[Passages], *, names_count: bool, related: bool
    ) -> list["_Claim"]:
        said = _own_words(sentence, sources)
        about = self.entities.named_in(said)
        claims = [
            _Claim(f"“{q[:MAX_QUOTE_SHOWN]}”", self._of(about, partial(_quoted, q)), "quote")
            for q in dict.fromkeys(quotes(sentence))
        ]
        topic = Topic.of(said, about, self._asked_words) if related else None
        paid, of_money = amounts(said), speaks_of_money(said)
        for figure in figures(said):
            key = number_key(figure)
            if key not in self._asked:
                kind = partial(_same_kind, key, paid=key in paid, of_money=of_money)
                stands = partial(self._figure_stands, figure, kind, about, topic)
                claims.append(_Claim(figure, self._of(about, stands), "figure"))
        if (about or names_count) and not sentence.lstrip().startswith("#"):
            claims += [
                _Claim(name, self._of(about, partial(self._name_stands, name, about)), "name")
                for name in names_stated(_LABEL.sub("", said), self._question)
                if not self.entities.named_in(name) & about
            ]
        return claims

    def _of(self, about: frozenset[str], stands: "_Stands") -> "_Stands":
        """Return a test that asks only sources which speak of one of these things."""

        def in_own(sources: Sequence[Passages]) -> bool:
            return stands([s for s in sources if not about or about & self._named_by(s)])

        return in_own

    def _named_by(self, source: Passages) -> frozenset[str]:
        """Return the names in a source: each is read for them once, whatever is held against it."""
        if source not in self._named:
            self._named[source] = self.entities.named_in(source.whole)
        return self._named[source]

    def _figure_stands(
        self,
        figure: str,
        same_kind: Callable[[Passage], bool],
        about: frozenset[str],
        topic: Topic | None,
        own: Sequence[Passages],
    ) -> bool:
        places = (
            p for source in own for p in source.with_figure(number_key(figure)) if self._is_of(p, about)
        )
        return any(same_kind(p) and (topic is None or topic.is_met(p, figure)) for p in places)

    def _name_stands(self, name: str, about: frozenset[str], own: Sequence[Passages]) -> bool:
        parts = parts_of(name)
        return any(self._is_of(p, about) for part in parts for source in own for p in source.with_word(part))

    def _is_of(self, passage: Passage, about: frozenset[str]) -> bool:
        """Return whether a passage is not about another thing: one that names only others speaks of those."""
        named = self.entities.named_in(passage.text) if about else frozenset[str]()
        return not named or bool(named & about)


def _not_derived(open_: Sequence[_Claim], claims: Sequence[_Claim], sentence: str) -> list[_Claim]:
    """Return the claims that no source has, without figures that the sentence computes from those that one has."""
    if not open_:
        return []
    doubted = {id(claim) for claim in open_}
    standing = [claim.text for claim in claims if claim.kind == "figure" and id(claim) not in doubted]
    derived = Derived(standing, plain(sentence))
    return [c for c in open_ if not (c.kind == "figure" and derived.has(c.text))]


def _own_words(sentence: str, sources: Sequence[Passages]) -> str:
    """Return a sentence in digits, without citations, its step's name, and the quotes that a source has: those are true as such."""
    bare = _QUOTED.sub(lambda m: " " if _quoted(m[0], sources) else m[0], _CITED.sub(" ", sentence))
    return plain(MARKS.sub(" ", _STEP.sub("", bare)))


def _quoted(quote: str, sources: Sequence[Passages]) -> bool:
    # An ellipsis or a bar joins pieces that stand apart in the source.
    pieces = [letters(piece) for piece in re.split(r"…|\.\.\.|\|| / |\n", quote)]
    return all(any(piece in source.letters for source in sources) for piece in pieces if piece)


def _same_kind(key: str, passage: Passage, *, paid: bool, of_money: bool) -> bool:
    """Return whether a figure is a sum of money in both or in neither: "$67 per seat" says nothing of 67 seats.

    Args:
        key: of the figure.
        passage: that has the figure.
        paid: whether the sentence has it as a sum of money.
        of_money: whether the sentence speaks of money.
    """
    return passage.speaks_of_money if paid else key not in amounts(passage.text) or of_money

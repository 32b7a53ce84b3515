"""Sentences of the answer held against their sources, by code: what is borne out is cited, what is not is flagged."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from agents.claims import MARKS, number_key, sentences
from agents.entities import Entities
from agents.grounding import Grounds, Held
from agents.passages import Passages, SourceText
from nodes.citations import Checked, renumber
from schemas.evidence import Source

# Each of these begins where no space stands before it: from every space of a long run, it would be searched to its end.
_CITED = re.compile(r"(?<![ \t])[ \t]*\[(\d+)\]")
# The end of a sentence, or of a table's row: what came behind it would be a cell of its own, which nobody sees.
_STOP = re.compile(r"(?:[.!?。！？]{1,9}|(?<!\s)\s*\|)\Z")
_ROW_END = re.compile(r"(?<!\s)\s*\|\Z")
_NUMBERS = re.compile(rf"{MARKS.pattern}|(?P<number>\d+(?:[.,]\d+)*)", MARKS.flags)
_FENCE = ("```", "~~~")
GAP = "[…]"
FLAG = {"en": " ⚠ (not in the cited sources: {})", "zh": " ⚠（所引来源中没有：{}）"}
LEFT_OUT = {"en": "figures left out: {}", "zh": "略去的数字：{} 个"}
MAX_NAMED = 8
MAX_SUPPORTERS = 8


@dataclass(frozen=True)
class Asked:
    """What an answer answers.

    Attributes:
        question: the objective and the tasks of the plan: to repeat them is no claim.
        groups: names of the groups of documents that the tools know.
    """

    question: str
    groups: Sequence[str] = ()


@dataclass(frozen=True)
class Piece:
    """One sentence or line of an answer, and what of it no source bears out; `figures` are those that are figures."""

    text: str
    wrong: Sequence[str] = ()
    figures: Sequence[str] = ()


@dataclass(frozen=True)
class Flagged:
    """An answer in pieces, held against its sources. `language` is that of the marks, "en" or "zh"."""

    pieces: Sequence[Piece]
    language: str

    @property
    def wrong(self) -> list[str]:
        """What no source bears out, each once."""
        return list(dict.fromkeys(claim for piece in self.pieces for claim in piece.wrong))

    @property
    def doubted(self) -> int:
        """How many sentences state what no source bears out."""
        return sum(bool(piece.wrong) for piece in self.pieces)

    def marked(self, piece: Piece) -> str:
        """Return a sentence with a mark that names what is in doubt: for whoever mends it."""
        return _marked(piece.text, self._mark(piece.wrong)) if piece.wrong else piece.text

    def settled(self) -> str:
        """Return the answer for its reader: no figure that is in doubt is in it; a mark says how many were left out."""
        return "".join(self._settled(piece) if piece.wrong else piece.text for piece in self.pieces)

    def _settled(self, piece: Piece) -> str:
        figures = {*piece.figures}
        keys = {number_key(figure) for figure in figures}
        text = _without(piece.text, keys)
        named = [claim for claim in piece.wrong if claim not in figures]
        # A number in words has no digits that could be left out.
        named += [LEFT_OUT[self.language].format(len(keys))] if text != piece.text else piece.figures
        return _marked(text, self._mark(named))

    def _mark(self, wrong: Sequence[str]) -> str:
        # str.format would read braces in the claims of the next text it is given, not in its arguments.
        return FLAG[self.language].format(", ".join(wrong[:MAX_NAMED]))


def flag_claims(
    checked: Checked, known: Sequence[Source], texts: Mapping[str, str], language: str, asked: Asked
) -> Flagged:
    """Hold each sentence of an answer against what it cites.

    One that states something and cites nothing, or cites what does not bear it out, gets the citation of known sources
    that do, if there are any: `checked.sources` changes with it.

    Args:
        checked: the answer, citations numbered.
        known: the sources that the writer was given.
        texts: full texts by source id.
        language: of the marks, "en" or "zh".
        asked: what the answer answers.
    """
    # Each source is read once: an answer may have hundreds of sentences, a source megabytes.
    read = {source.id: Passages(_text(source, texts)) for source in known}
    entities = Entities(list(read.values()), asked.groups)
    grounds = Grounds(read.values(), entities, asked.question)
    sources = {id(read[source.id]): source for source in known}

    @cache
    def judged(text: str) -> tuple[list[Passages], Held]:
        numbers = [int(n) for n in _CITED.findall(text)]
        cited = [read[checked.sources[n - 1].id] for n in numbers if 0 < n <= len(checked.sources)]
        return cited, grounds.held(text, cited or None)

    pieces: list[Piece] = []
    again = in_code = False
    for text in sentences(checked.text):
        in_code ^= text.lstrip().startswith(_FENCE)
        if text.isspace():
            pieces.append(Piece(text))
            continue
        cited, said = judged(text)
        found: list[Passages] = []
        if (said.doubted or (said.stated and not cited)) and not in_code and not text.startswith("#"):
            found = grounds.supporters(text, [*cited, *(read[source.id] for source in checked.sources)])
        if 0 < len(found) <= MAX_SUPPORTERS:
            again = True
            pieces.append(Piece(_cited(text, [checked.number(sources[id(p)]) for p in found], language)))
        else:
            pieces.append(Piece(text, list(dict.fromkeys(said.doubted)), said.figures))
    if again:
        renumbered = renumber(checked, [piece.text for piece in pieces])
        pieces = [replace(piece, text=text) for piece, text in zip(pieces, renumbered, strict=True)]
    return Flagged(pieces, language)


def _text(source: Source, texts: Mapping[str, str]) -> SourceText:
    full = texts.get(source.id, "")
    # An excerpt may be more than the start of its text: a search shows the place that it found.
    return SourceText(
        source.title, source.locator, full if source.excerpt in full else f"{source.excerpt}\n{full}"
    )


def _cited(piece: str, numbers: Sequence[int], language: str) -> str:
    """Return a sentence with these citations instead of its own, before its full stop."""
    body = _CITED.sub("", piece).rstrip()
    stop = _STOP.search(body)
    at = stop.start() if stop else len(body)
    marks = "".join(f"[{n}]" for n in numbers)
    space = " " if language == "en" else ""
    return f"{body[:at]}{space}{marks}{body[at:]}{piece[len(piece.rstrip()) :]}"


def _marked(piece: str, mark: str) -> str:
    """Return a sentence with a mark behind it; in a table's row, inside its last cell."""
    body = piece.rstrip()
    row = _ROW_END.search(body) if body.lstrip().startswith("|") else None
    at = row.start() if row else len(body)
    return body[:at] + mark + body[at:] + piece[len(body) :]


def _without(piece: str, keys: Collection[str]) -> str:
    """Return a sentence with a gap for each of its numbers that has one of these keys. Citations stay."""

    def replaced(match: re.Match[str]) -> str:
        return GAP if match["number"] and number_key(match["number"]) in keys else match[0]

    return _NUMBERS.sub(replaced, piece)

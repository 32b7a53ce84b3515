"""Flags in the answer: a figure, a quote or a name that stands in none of the cited texts is marked, by code."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.claims import sentences
from agents.entities import Entities
from agents.grounding import Grounds
from agents.passages import Passages, SourceText
from nodes.citations import Checked
from schemas.evidence import Source

_CITED = re.compile(r"\[(\d+)\]")
FLAG = {"en": " ⚠ (not in the cited sources: {})", "zh": " ⚠（所引来源中没有：{}）"}
MAX_NAMED = 8


@dataclass(frozen=True)
class Asked:
    """What an answer answers.

    Attributes:
        question: the objective and the tasks of the plan: to repeat them is no claim.
        groups: names of the groups of documents that the tools know.
    """

    question: str
    groups: Sequence[str] = ()


def flag_claims(
    checked: Checked, known: Sequence[Source], texts: Mapping[str, str], language: str, asked: Asked
) -> list[str]:
    """Mark each sentence of the answer that states what is not in what it cites; change `checked.text`.

    Args:
        checked: the answer, citations numbered.
        known: the sources that the writer was given; a sentence without citations is held against all of them.
        texts: full texts by source id.
        language: of the marks, "en" or "zh".
        asked: what the answer answers.

    Returns:
        What was flagged, each once.
    """
    # Each source is read once: an answer may have hundreds of sentences, a source megabytes.
    read = {source.id: Passages(_text(source, texts)) for source in known}
    entities = Entities(list(read.values()), asked.groups)
    grounds = Grounds(read.values(), entities, asked.question)
    flagged: list[str] = []
    pieces: list[str] = []
    for piece in sentences(checked.text):
        cited = [int(n) for n in _CITED.findall(piece)]
        sources = [read[checked.sources[n - 1].id] for n in cited if 0 < n <= len(checked.sources)]
        wrong = list(dict.fromkeys(grounds.held(piece, sources or None).doubted))
        flagged += [claim for claim in wrong if claim not in flagged]
        pieces.append(_marked(piece, wrong, language))
    checked.text = "".join(pieces)
    return flagged


def _text(source: Source, texts: Mapping[str, str]) -> SourceText:
    full = texts.get(source.id, "")
    # An excerpt may be more than the start of its text: a search shows the place that it found.
    return SourceText(
        source.title, source.locator, full if source.excerpt in full else f"{source.excerpt}\n{full}"
    )


def _marked(piece: str, wrong: Sequence[str], language: str) -> str:
    if not wrong:
        return piece
    # str.format would read braces in the claims of the next text it is given, not in its arguments.
    mark = FLAG[language].format(", ".join(wrong[:MAX_NAMED]))
    body = piece.rstrip()
    return body + mark + piece[len(body) :]

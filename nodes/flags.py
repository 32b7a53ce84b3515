"""Flags in the answer: a figure or a quote that stands in none of the cited texts is marked, by code."""

import re
from collections.abc import Mapping, Sequence

from agents.claims import Texts, sentences
from nodes.citations import Checked
from schemas.evidence import Source

_CITED = re.compile(r"\[(\d+)\]")
FLAG = {"en": " ⚠ (not in the cited sources: {})", "zh": " ⚠（所引来源中没有：{}）"}
MAX_NAMED = 8


def flag_claims(
    checked: Checked, known: Sequence[Source], texts: Mapping[str, str], language: str
) -> list[str]:
    """Mark each sentence of the answer whose figures or quotes are not in what it cites; change `checked.text`.

    Args:
        checked: the answer, citations numbered.
        known: the sources that the writer was given; a sentence without citations is held against all of them.
        texts: full texts by source id.
        language: of the marks, "en" or "zh".

    Returns:
        What was flagged, each once.
    """
    # Each source is read once: an answer may have hundreds of sentences, a source megabytes.
    whole = {source.id: Texts([_text(source, texts)]) for source in {s.id: s for s in known}.values()}
    everything = Texts.joined(whole.values())
    flagged: list[str] = []
    pieces: list[str] = []
    for piece in sentences(checked.text):
        cited = [int(n) for n in _CITED.findall(piece)]
        sources = [checked.sources[n - 1] for n in cited if 0 < n <= len(checked.sources)]
        against = Texts.joined(whole[s.id] for s in sources) if sources else everything
        wrong = list(dict.fromkeys(against.unsupported(piece)))
        flagged += [claim for claim in wrong if claim not in flagged]
        pieces.append(_marked(piece, wrong, language))
    checked.text = "".join(pieces)
    return flagged


def _text(source: Source, texts: Mapping[str, str]) -> str:
    return "\n".join((source.title, source.locator, source.excerpt, texts.get(source.id, "")))


def _marked(piece: str, wrong: Sequence[str], language: str) -> str:
    if not wrong:
        return piece
    # str.format would read braces in the claims of the next text it is given, not in its arguments.
    mark = FLAG[language].format(", ".join(wrong[:MAX_NAMED]))
    body = piece.rstrip()
    return body + mark + piece[len(body) :]

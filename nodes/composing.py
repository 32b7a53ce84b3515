"""What code itself writes of the answer: its lists of sources and gaps, and the whole of it where no writer can be asked."""

import re
from collections.abc import Mapping, Sequence

from nodes.citations import NO_BRACKETS, TEXTS, URL, Checked, without_own_lists
from schemas.evidence import Evidence, Gap, Source

MAX_DROPPED_NAMED = 50


def plain_answer(findings: Sequence[Evidence], known: Sequence[Source], language: str) -> str:
    """Return an answer made of the findings themselves, for when there is no writer to ask."""
    texts = TEXTS[language]
    numbers = {source.id: n for n, source in enumerate(known, start=1)}
    lines = [texts["finding"]]
    for record in findings:
        cites = "".join(f"[{numbers[i]}]" for i in record.source_ids if i in numbers)
        summary = _numbered(without_own_lists(record.summary).strip(), record.source_ids, numbers)
        lines.append(f"- {summary} {cites or '(' + texts['reasoning'] + ')'}")
    return "\n".join(lines)


def _numbered(summary: str, ids: Sequence[str], numbers: Mapping[str, int]) -> str:
    """Return a summary with the step's own ids as numbers; a worker's other numbers in brackets point to nothing."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name in ids and name in numbers:
            return f"[{numbers[name]}]"
        return f"({name})" if name.isdigit() else match[0]

    return re.sub(r"[\[【]([^\[\]【】\n]{1,200})[\]】]", replaced, summary)


def compose(
    checked: Checked,
    gaps: Sequence[Gap],
    assumptions: Sequence[str],
    reasoned: Sequence[Evidence],
    language: str,
) -> str:
    """Append what the text may not hide: sources, removed citations, reasoning, assumptions, open gaps.

    Code does it, not the model.
    """
    texts = TEXTS[language]
    parts = [_closed(checked.text)]
    if checked.sources:
        lines = [f"{n}. {_source_line(source)}" for n, source in enumerate(checked.sources, start=1)]
        parts.append(f"## {texts['sources']}\n\n" + "\n".join(lines))
    if checked.dropped:
        parts.append(f"{texts['dropped']}: " + _named(checked.dropped))
    if reasoned:
        lines = [f"- {_plain(record.summary)[:300]}" for record in reasoned]
        parts.append(f"## {texts['reasoned']}\n\n" + "\n".join(lines))
    if assumptions:
        parts.append(f"## {texts['assumptions']}\n\n" + "\n".join(f"- {_plain(a)}" for a in assumptions))
    if gaps:
        parts.append(f"## {texts['gaps']}\n\n" + "\n".join(f"- {_plain(gap.description)}" for gap in gaps))
    return "\n\n".join(part for part in parts if part.strip())


def _closed(text: str) -> str:
    """Return a text whose last code block ends, so that what is appended is no part of it."""
    opened = ""
    for fence in re.findall(r"^ {0,3}(`{3,}|~{3,})", text, re.MULTILINE):
        if not opened:
            opened = fence
        elif fence.startswith(opened):  # other fences are part of the code
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _named(dropped: Sequence[str]) -> str:
    names = ", ".join(f"`{name[:200].replace('`', chr(39))}`" for name in dropped[:MAX_DROPPED_NAMED])
    more = len(dropped) - MAX_DROPPED_NAMED
    return f"{names} (+{more})" if more > 0 else names


def _plain(text: str) -> str:
    """Return words for a list that code makes: on one line, with nothing in them that reads as a citation or a link."""
    return URL.sub(r"`\g<0>`", _one_line(text).replace("`", "'").translate(NO_BRACKETS))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _source_line(source: Source) -> str:
    title, locator = _one_line(source.title), _one_line(source.locator)
    if re.match(r"https?://\S+$", locator):
        return f"{title} ({locator})" if title and title != locator else locator
    # As code: a query holds asterisks, and a path underscores, that Markdown would read.
    shown = f"`{locator.replace('`', chr(39))}`"
    return f"{title} ({shown})" if title and title != locator else shown

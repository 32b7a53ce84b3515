"""What must hold of a run's answer: every citation points to a listed source, every listed source is real."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodes.citations import TEXTS
from tests.hostile.run import Run
from tests.hostile.world import INVENTED_FIGURE, UNKNOWN_IDS, UNKNOWN_URL


def answer(run: Run) -> Iterator[str]:
    """Each citation points to a listed source; each listed source is real; nothing unknown is left."""
    text = run.out["final_answer"]
    heads = {f"## {texts['sources']}" for texts in TEXTS.values()}
    lines = text.split("\n")
    at = [n for n, line in enumerate(lines) if line.strip() in heads]
    if len(at) > 1:
        yield "there are two lists of sources"
    listed = listed_sources(lines[at[-1] + 1 :]) if at else []
    if at and not listed:
        yield "a list of sources without a source"
    cited = {i for r in run.out["evidence"] if r.passed for i in r.source_ids}
    real = [locator_of(source.locator) for source in run.out["sources"] if source.id in cited]
    for line in listed:
        if not any(place in locator_of(line) for place in real):
            yield f"listed, and no passed step cites it: {line[:100]!r}"
    shown = [
        line
        for line in lines
        if not is_numbered(line)
        or not at
        or line[:200] not in {f"{n}. {s}"[:200] for n, s in enumerate(listed, 1)}
    ]
    prose = "\n".join(shown)
    for number in re.findall(r"(?<!\w)[\[【](\d+)[\]】]", prose):  # a[0] is code
        if not 1 <= int(number[:9]) <= len(listed):
            yield f"[{number[:20]}] points to nothing: {len(listed)} sources are listed"
    for unknown in UNKNOWN_IDS:
        if f"[{unknown}]" in prose:
            yield f"[{unknown}] is left in the answer"
    if re.search(f"(?i)(?<!`){re.escape(UNKNOWN_URL)}", prose):  # code names what it has removed, as code
        yield "an unknown address is left in the answer"
    body = "\n".join(lines[: at[0]] if at else lines)
    yield from flagged(f"\n{body}".split("\n## ")[0])
    yield from mapped(run, listed)


def flagged(body: str) -> Iterator[str]:
    for line in body.split("\n"):
        if INVENTED_FIGURE in line and "⚠" not in line:
            yield f"an invented figure is not marked: {line[:200]!r}"


def mapped(run: Run, listed: list[str]) -> Iterator[str]:
    if run.world.cited is None or not run.world.cited:
        return
    expected = list(dict.fromkeys(run.world.cited))
    if not all(any(locator_of(place) in locator_of(line) for line in listed) for place in expected):
        yield f"the writer cited {expected[:3]}, listed are {listed[:3]}"


def is_numbered(line: str) -> bool:
    return bool(re.match(r"\d+\. ", line))


def listed_sources(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if line.startswith(f"{len(found) + 1}. "):
            found.append(line.split(". ", 1)[1])
        elif line.strip():
            break
    return found


def locator_of(text: str) -> str:
    """Return a place without the marks that Markdown needs around it."""
    return " ".join(text.split()).replace("`", "").replace("'", "")

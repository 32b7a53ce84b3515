"""The embedded worker's steps without tools: set findings side by side, or name those to build on."""

from collections.abc import Sequence
from typing import Any

from agents.embedded import phrases
from agents.embedded.match import Wanted
from agents.embedded.requests import Dependency, WorkerRequest
from agents.embedded.text import Profile, coverage, cut, units
from agents.embedded.words import DIGIT, TROUBLE

MAX_NAMED = 8
MAX_COMPARED = 260  # characters of one quote; a request has room for a dozen
Line = tuple[str, str, str]


def reasoned(request: WorkerRequest, wanted: Sequence[Wanted], chinese: bool) -> dict[str, Any]:
    """Return the Finding of a step that only has its dependencies."""
    lines = [line for dependency in request.dependencies for line in _lines_of(dependency)]
    answering = _answering(lines, wanted) if not _has_template(request) else []
    if answering:
        lines = answering
    elif any(c in phrases.TO_BUILD_ON for c in request.step.success_criteria):
        lines = _telling(lines, request.objective)
    else:
        lines = _side_by_side(lines)
    cited = _cited(lines, request.dependencies)
    text = Profile("\n".join(f"{label} {quote}" for label, quote, _ in lines))
    verdicts: list[dict[str, Any]] = []
    for criterion, want in zip(request.step.success_criteria, wanted, strict=False):
        template = criterion in phrases.TEMPLATES or not want.units
        met = bool(lines) and (template or coverage(want.units, (text, 1.0)) >= 0.5)
        verdicts.append({"criterion": criterion, "met": met, "reason": _reason(met, len(lines), chinese)})
    return {
        "summary": _summary(lines)
        or ("前序步骤没有可用的发现。" if chinese else "The steps before this one found nothing to use."),
        "source_ids": cited[:50],
        "criteria": verdicts,
        "missing": [cut(w.label, 300) for w, v in zip(wanted, verdicts, strict=False) if not v["met"]],
    }


def _has_template(request: WorkerRequest) -> bool:
    return any(c in phrases.TEMPLATES for c in request.step.success_criteria)


def _answering(lines: Sequence[Line], wanted: Sequence[Wanted]) -> list[Line]:
    """Return for each criterion the lines that say it, those first that say it in their label: a file's section."""
    chosen: list[Line] = []
    for want in wanted:
        scored = [
            (coverage(want.units, (Profile(label), 1.0), (Profile(quote), 0.7)), (label, quote, locator))
            for label, quote, locator in lines
        ]
        best = [line for score, line in sorted(scored, key=lambda s: -s[0]) if score >= 0.5][:3]
        chosen += [line for line in best if line not in chosen]
    return chosen[:MAX_NAMED]


def _lines_of(dependency: Dependency) -> list[Line]:
    """Return a summary's lines: also one that was cut to fit, and one for the whole where another model wrote it."""
    lines = phrases.lines_in(dependency.summary)
    ids = [s.locator for s in dependency.sources] or list(dependency.source_ids)
    if not ids:
        return lines
    cut_line = phrases.cut_line_in(dependency.summary)
    if cut_line:
        name, quote = cut_line
        begins = quote[:40]
        locator = next(
            (s.locator for s in dependency.sources if begins in " ".join(s.excerpt.split())), ids[0]
        )
        return [*lines, (name, quote, locator)]
    if lines or not dependency.summary.strip():
        return lines
    return [(dependency.step_id or "step", cut(" ".join(dependency.summary.split()), 600), ids[0])]


def _side_by_side(lines: Sequence[Line]) -> list[Line]:
    """Order lines by aspect, one for each entity, so that like stands beside like; the rest is in the findings."""
    aspects: dict[str, dict[str, Line]] = {}
    for name, quote, locator in lines:
        entity, aspect = phrases.entity_and_aspect(name)
        key = entity or f"{name} {locator}"
        aspects.setdefault(aspect, {}).setdefault(key, (name, cut(quote, MAX_COMPARED), locator))
    return [line for group in aspects.values() for line in group.values()]


def _telling(lines: Sequence[Line], objective: str) -> list[Line]:
    """Choose the lines that bear most on a conclusion: trouble, figures, the objective's words; not all of one thing."""
    wanted = units(objective)

    def weight(line: Line) -> float:
        text = f"{line[0]} {line[1]}"
        share = coverage(wanted, (Profile(text), 1.0))
        # What a table counts weighs more than one person's words.
        counted = 1.0 if line[2].lstrip().upper().startswith("SELECT") else 0.0
        return (
            share + 0.5 * min(2, len(TROUBLE.findall(line[1]))) + 0.3 * bool(DIGIT.search(line[1])) + counted
        )

    chosen: list[Line] = []
    ranked = sorted(lines, key=weight, reverse=True)
    for most in (1, 2, 3):  # one line for each label first, then more
        for line in ranked:
            if len(chosen) < MAX_NAMED and line not in chosen and sum(c[0] == line[0] for c in chosen) < most:
                chosen.append(line)
    return chosen


def _cited(lines: Sequence[Line], dependencies: Sequence[Dependency]) -> list[str]:
    """Return the ids behind the lines, found by their locators; all that the dependencies carry if none is."""
    by_locator = {" ".join(s.locator.split()): s.id for d in dependencies for s in d.sources if s.id}
    found = [by_locator[locator] for _, _, locator in lines if locator in by_locator]
    return list(dict.fromkeys(found or [i for d in dependencies for i in d.source_ids]))


def _summary(lines: Sequence[Line]) -> str:
    rows: list[str] = []
    for line in lines:
        row = phrases.line(*line)
        if sum(map(len, rows)) + len(rows) + len(row) <= 7_500:
            rows.append(row)
    return "\n".join(rows)


def _reason(met: bool, count: int, chinese: bool) -> str:
    if met:
        return f"前序步骤提供了 {count} 条引文" if chinese else f"the steps before give {count} quotes for it"
    return "前序步骤没有相应内容" if chinese else "the steps before carry nothing for it"

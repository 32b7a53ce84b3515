"""What a report tells of a thread: read once from a checkpoint, the same for every format. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from langgraph.types import StateSnapshot

from cli.printable import one_line
from graph.runner import Outcome, outcome_of
from nodes.citations import TEXTS
from nodes.finish import with_reason
from nodes.readiness import active_seconds
from schemas.evidence import Evidence, Gap, Source
from schemas.limits import RunLimits
from schemas.plan import Plan
from schemas.state import latest

State = Literal["passed", "failed", "skipped", "waiting"]
_LISTED = re.compile(r"^(\d{1,6})\. (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Numbered:
    """A source with its number in the report; `source` is None for a citation that no record matches.

    Attributes:
        cited: whether the answer cites it; cited ones keep the answer's numbers.
        steps: ids of the steps that met it.
    """

    number: int
    source: Source | None
    label: str
    cited: bool
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Budget:
    """What was used of a limit; `allowed` None = no bound."""

    name: str
    used: float
    allowed: float | None


@dataclass(frozen=True)
class Facts:
    """Everything that a report shows.

    Attributes:
        status: as `planweave threads` gives it.
        as_of: when the state was stored, ISO 8601.
        answer: the answer without the lists of sources and gaps, which a report shows elsewhere.
        gaps: open ones, with the worker's reasons.
    """

    found: Outcome
    status: str
    as_of: str
    answer: str
    gaps: list[Gap]
    sources: list[Numbered]
    budgets: list[Budget]

    @property
    def plans(self) -> list[Plan]:
        """Every version, the first one first."""
        return self.found.plans or ([self.found.plan] if self.found.plan else [])

    def number_of(self, source_id: str) -> int | None:
        """Return the number of a source; None for one that is not recorded."""
        return next((n.number for n in self.sources if n.source and n.source.id == source_id), None)


def facts_of(snapshot: StateSnapshot, thread_id: str, status: str) -> Facts:
    """Return what a checkpoint tells."""
    found = outcome_of(snapshot, thread_id)
    values = cast("Mapping[str, Any]", snapshot.values or {})
    text, listed = _without_lists(found.final_answer)
    return Facts(
        found=found,
        status=status,
        as_of=snapshot.created_at or "",
        answer=text,
        gaps=_gaps(found),
        sources=numbered(listed, found.sources),
        budgets=_budgets(found, values.get("limits") or RunLimits(), values),
    )


def _gaps(found: Outcome) -> list[Gap]:
    records = latest(found.evidence)
    gaps = found.review.gaps if found.review is not None else []
    return [with_reason(gap, records.get(gap.step_id or "")) for gap in gaps]


def _without_lists(answer: str) -> tuple[str, str]:
    """Return the answer without what code appended about sources and gaps, and the lines of its list of sources."""
    listed = ""
    for texts in TEXTS.values():
        for key in ("gaps", "sources"):
            # The last one: code appended it behind everything that a model wrote.
            before, head, after = answer.rpartition(f"## {texts[key]}\n\n")
            if not head or not (before == "" or before.endswith("\n")):
                continue
            lines, gap, rest = after.partition("\n\n")
            if key == "sources":
                listed = lines
            answer = before + rest if gap else before.rstrip()
    return answer.strip(), listed


def numbered(listed: str, sources: Sequence[Source]) -> list[Numbered]:
    """Number the sources: those that the answer lists keep its numbers, the others follow.

    Args:
        listed: the answer's own list, one "n. title (locator)" on a line.
        sources: of the run; one id may be recorded by several steps.
    """
    steps: dict[str, list[str]] = {}
    first: dict[str, Source] = {}
    for source in sources:
        first.setdefault(source.id, source)
        steps.setdefault(source.id, []).append(source.step_id)
    left = dict(first)
    result: list[Numbered] = []
    for number, line in _LISTED.findall(listed):
        match = next((s for s in left.values() if _plain(line) in _names(s)), None)
        if match is not None:
            del left[match.id]
        label = (match.title or match.locator) if match else line
        result.append(Numbered(int(number), match, label, True, tuple(steps[match.id]) if match else ()))
    last = max((n.number for n in result), default=0)
    rest = [
        Numbered(last + i, s, s.title or s.locator, False, tuple(steps[s.id]))
        for i, s in enumerate(left.values(), start=1)
    ]
    return result + rest


def _names(source: Source) -> set[str]:
    title, locator = _plain(source.title), _plain(source.locator)
    return {f"{title} ({locator})", locator}


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").replace("'", "").split())


def _budgets(found: Outcome, limits: RunLimits, values: Mapping[str, Any]) -> list[Budget]:
    started = sum(e.finished_at > e.started_at for e in found.evidence)
    seconds = active_seconds(found.evidence, found.usage)
    return [
        Budget("tool_calls", found.usage.tool_calls, limits.total_tool_budget),
        Budget("seconds", round(seconds, 1), limits.deadline_seconds),
        Budget("tokens", found.usage.tokens, limits.max_tokens),
        Budget("steps", started, limits.max_attempted_steps),
        Budget("replans", values.get("replan_count", 0), values.get("max_replans", 0)),
    ]


def state_of(record: Evidence | None) -> State:
    """Return what became of a step."""
    if record is None:
        return "waiting"
    return "skipped" if record.skipped_because else "passed" if record.passed else "failed"


def seconds_of(record: Evidence) -> float:
    """Return how long an attempt took."""
    return (record.finished_at - record.started_at).total_seconds()


def title_of(facts: Facts) -> str:
    """Return the objective as a title."""
    return one_line(facts.found.objective, 160)

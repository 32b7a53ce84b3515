"""What a valid plan may still be improved in, and what it may cost. Pure; shown before approval and on the stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from nodes.readiness import wants_tools
from schemas.evidence import Evidence
from schemas.limits import RunLimits
from schemas.plan import Plan, Step

# Words that make a criterion a wish: nothing that a tool returns can show it.
VAGUE = frozenset(
    [
        "good",
        "well",
        "quality",
        "appropriate",
        "proper",
        "properly",
        "sufficient",
        "sufficiently",
        "nice",
        "thorough",
        "complete",
        "done",
        "finished",
        "好",
        "良好",
        "合适",
        "适当",
        "充分",
        "完善",
        "完成",
        "高质量",
    ]
)


@dataclass(frozen=True)
class Forecast:
    """What a plan comes to at worst.

    Attributes:
        waves: step ids by depth.
        critical_path: ids of the longest chain, by seconds; critical_seconds: its length.
        tool_calls: worst-case tool runs; model_calls: worst-case calls of workers.
    """

    waves: list[list[str]]
    critical_path: list[str]
    critical_seconds: float
    tool_calls: int
    model_calls: int


def waves(plan: Plan) -> list[list[str]]:
    """Return the step ids by depth: a step stands one behind the deepest of its dependencies."""
    depth: dict[str, int] = {}
    while len(depth) < len(plan.steps):
        for step in plan.steps:
            if step.id not in depth and all(d in depth for d in step.depends_on):
                depth[step.id] = 1 + max((depth[d] for d in step.depends_on), default=-1)
    return [
        [i for i, d in depth.items() if d == level] for level in range(max(depth.values(), default=-1) + 1)
    ]


def forecast(
    plan: Plan, limits: RunLimits, evidence: Sequence[Evidence] = (), budget_left: int | None = None
) -> Forecast:
    """Return what a plan comes to at worst; steps that have passed cost nothing more.

    Of the tool runs there are at most `budget_left`; None = the run's whole budget. Seconds come from the step's timeout, or, where the run has finished steps, from the slowest of those.
    """
    passed = {e.step_id for e in evidence if e.passed}
    history = [
        (e.finished_at - e.started_at).total_seconds() for e in evidence if e.finished_at > e.started_at
    ]
    usual = max(history, default=None)
    seconds = {s.id: 0.0 if s.id in passed else _seconds(s, limits, usual) for s in plan.steps}
    path, length = critical_path(plan, seconds)
    open_steps = [s for s in plan.steps if s.id not in passed]
    tool_calls = sum(s.tool_budget for s in open_steps if wants_tools(s))
    return Forecast(
        waves=waves(plan),
        critical_path=path,
        critical_seconds=length,
        tool_calls=min(tool_calls, limits.total_tool_budget if budget_left is None else budget_left),
        model_calls=sum(_model_calls(s, limits) for s in open_steps),
    )


def _seconds(step: Step, limits: RunLimits, usual: float | None) -> float:
    cap = limits.step_seconds(step.timeout_seconds)
    return attempts(step) * (cap if usual is None else min(cap, usual))


def attempts(step: Step) -> int:
    """Return how often a step may be tried. Its tool budget is for all attempts together."""
    return 2 if step.on_failure == "retry" else 1


def _model_calls(step: Step, limits: RunLimits) -> int:
    # One for each tool run, and three tries of the Finding.
    once = min(limits.max_model_calls_per_step, 3 + (step.tool_budget if wants_tools(step) else 0))
    return attempts(step) * once


def critical_path(plan: Plan, seconds: Mapping[str, float]) -> tuple[list[str], float]:
    """Return the chain of steps that takes longest, and how long it takes."""
    best: dict[str, tuple[float, list[str]]] = {}
    for wave in waves(plan):
        for step_id in wave:
            before = max((best[d] for d in plan.step(step_id).depends_on), default=(0.0, list[str]()))
            best[step_id] = (before[0] + seconds[step_id], [*before[1], step_id])
    length, path = max(best.values())
    return path, length


def lint(
    plan: Plan,
    limits: RunLimits,
    writers: Sequence[str] = (),
    passed: Mapping[str, str] | None = None,
    budget_left: int | None = None,
) -> list[str]:
    """Return one line for each thing that is allowed, but probably not meant.

    Args:
        plan: a valid plan.
        limits: of the run.
        writers: names of the tools that change something.
        passed: tasks of steps that have passed, by id.
        budget_left: tool runs that the run may still make; None = all.
    """
    ancestors = _ancestors(plan)
    lines = [*_redundant(plan, ancestors), *_vague(plan), *_conflicts(plan, ancestors, writers)]
    known = {" ".join(task.casefold().split()): i for i, task in (passed or {}).items()}
    for step in plan.steps:
        old = known.get(" ".join(step.task.casefold().split()))
        if old is not None and old != step.id:
            lines.append(f"{step.id} repeats the work of {old}, which has passed")
    wanted = sum(s.tool_budget for s in plan.steps if wants_tools(s) and s.id not in (passed or {}))
    left = limits.total_tool_budget if budget_left is None else budget_left
    if wanted > left:
        has = f"{left} left" if left < limits.total_tool_budget else str(left)
        lines.append(f"the steps ask for {wanted} tool runs, the run has {has}: some will wait or end short")
    return lines


def _ancestors(plan: Plan) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for wave in waves(plan):
        for step_id in wave:
            needs = plan.step(step_id).depends_on
            found[step_id] = set(needs).union(*(found[d] for d in needs))
    return found


def _redundant(plan: Plan, ancestors: Mapping[str, set[str]]) -> list[str]:
    lines: list[str] = []
    for step in plan.steps:
        for need in step.depends_on:
            if any(need in ancestors[other] for other in step.depends_on if other != need) and wants_tools(
                step
            ):
                lines.append(f"{step.id} need not wait for {need}: another of its dependencies already does")
    return lines


def _vague(plan: Plan) -> list[str]:
    lines: list[str] = []
    for step in plan.steps:
        if not step.checks and all(_is_vague(criterion) for criterion in step.success_criteria):
            lines.append(f"{step.id} has no criterion that can be checked: {step.success_criteria[0][:80]!r}")
    return lines


def _is_vague(criterion: str) -> bool:
    text = criterion.casefold().strip(" .。!！")
    if any("\u4e00" <= c <= "\u9fff" for c in text):
        return len(text) <= 2 or (len(text) <= 6 and any(text.endswith(word) for word in VAGUE))
    found = text.replace(",", " ").split()
    return len(found) <= 1 or (len(found) <= 4 and any(word in VAGUE for word in found))


def _conflicts(plan: Plan, ancestors: Mapping[str, set[str]], writers: Sequence[str]) -> list[str]:
    writing = [s for s in plan.steps if set(s.tools or ()) & set(writers)]
    return [
        f"{a.id} and {b.id} may write at the same time: let one depend on the other"
        for a, b in combinations(writing, 2)
        if a.id not in ancestors[b.id] and b.id not in ancestors[a.id]
    ]

"""Which steps may start, which never will, and what they may spend. Pure functions of plan and evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from schemas.evidence import ErrorType, Evidence, Source, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan, Step
from schemas.state import Dependency, StepTask, TaskState, latest


@dataclass(frozen=True)
class Grant:
    """A step that starts now, with its reserved tool runs."""

    step: Step
    tool_calls: int


@dataclass(frozen=True)
class Wave:
    """What `schedule` decides at once.

    Attributes:
        grants: steps that start now, in plan order.
        skipped: step id -> id of the failed ancestor.
        refused: step ids that cannot start, with the limit that forbids it.
    """

    grants: list[Grant]
    skipped: dict[str, str]
    refused: dict[str, str]


# Another attempt at the same step cannot change these.
FINAL: frozenset[ErrorType | None] = frozenset(
    {"auth", "refused", "deadline", "cancelled", "dependency_failed"}
)


def recorded(plan: Plan, evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    """Return each step's last record, if it passed or belongs to this version."""
    return {i: e for i, e in latest(evidence).items() if e.passed or e.plan_version == plan.version}


def settled(plan: Plan, evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    """Return the records that count for this version: what passed in any version, and all of this version.

    A failed attempt that is to be made again does not count yet.
    """
    counting = recorded(plan, evidence)
    again = {
        step.id
        for step in plan.steps
        if step.id in counting and _tries_again(step, counting[step.id], evidence)
    }
    return {i: e for i, e in counting.items() if i not in again}


def _tries_again(step: Step, record: Evidence, evidence: Sequence[Evidence]) -> bool:
    """One more attempt: where the model's server failed before any tool ran, and where the plan says retry."""
    if record.passed or record.finished_at == record.started_at or record.error_type in FINAL:
        return False
    if sum(e.step_id == step.id and e.plan_version == record.plan_version for e in evidence) > 1:
        return False
    if wants_tools(step) and tool_runs_left(step, evidence) == 0:
        return False
    return step.on_failure == "retry" or (record.error_type == "transient" and record.tool_calls == 0)


def tool_runs_left(step: Step, evidence: Sequence[Evidence]) -> int:
    """Return the tool runs of a step's budget that its earlier attempts have left."""
    used = sum(record.tool_calls for record in evidence if record.step_id == step.id)
    return max(0, step.tool_budget - used) if wants_tools(step) else 0


def wants_tools(step: Step) -> bool:
    """Return whether a step needs tool runs at all."""
    return step.tools != [] and step.tool_budget > 0


def tool_budget_left(limits: RunLimits, usage: Usage) -> int:
    """Return the tool runs that the run may still make."""
    return max(0, limits.total_tool_budget - usage.tool_calls)


def tokens_left(limits: RunLimits, usage: Usage) -> int | None:
    """Return the tokens that the run may still use; None where there is no bound."""
    return None if limits.max_tokens is None else max(0, limits.max_tokens - usage.tokens)


def active_seconds(evidence: Sequence[Evidence], usage: Usage) -> float:
    """Return the seconds in which the run worked: steps (overlaps once) and other nodes; waiting is free."""
    spans = sorted((e.started_at, e.finished_at) for e in evidence if e.finished_at > e.started_at)
    total = usage.seconds
    reached: datetime | None = None
    for start, end in spans:
        begin = start if reached is None else max(start, reached)
        if end > begin:
            total += (end - begin).total_seconds()
            reached = end
    return total


def seconds_left(limits: RunLimits, evidence: Sequence[Evidence], usage: Usage) -> float:
    """Return the active seconds left before the run's deadline."""
    return limits.deadline_seconds - active_seconds(evidence, usage)


def skipped_steps(plan: Plan, done: Mapping[str, Evidence]) -> dict[str, str]:
    """Return the steps that can never start, each with the failed step that is the root of it."""
    roots = {i: e.skipped_because or i for i, e in done.items() if not e.passed}
    skipped: dict[str, str] = {}
    changed = True
    while changed:  # plans are small, and a plan's order need not be topological
        changed = False
        for step in plan.steps:
            if step.id in done or step.id in skipped:
                continue
            root = next((roots[d] for d in step.depends_on if d in roots and not _may_fail(plan, d)), None)
            if root is not None:
                skipped[step.id] = roots[step.id] = root
                changed = True
    return skipped


def _may_fail(plan: Plan, step_id: str) -> bool:
    return any(step.id == step_id and step.optional for step in plan.steps)


def ready_steps(plan: Plan, done: Mapping[str, Evidence], skipped: Mapping[str, str]) -> list[Step]:
    """Return the steps whose dependencies are all settled, in plan order."""
    open_steps = [s for s in plan.steps if s.id not in done and s.id not in skipped]
    return [s for s in open_steps if all(d in done for d in s.depends_on)]


def next_wave(
    plan: Plan,
    evidence: Sequence[Evidence],
    usage: Usage,
    limits: RunLimits,
    running: Mapping[str, int] | None = None,
    left: float | None = None,
) -> Wave:
    """Decide what starts now.

    A step starts with its whole tool budget, or waits until running steps give theirs back; when nothing runs and
    nothing else starts, the first one starts with what is left. Where not all may start, the longest way goes first.

    Args:
        plan: in force.
        evidence: all there is.
        usage: all that finished work has spent.
        limits: of the run.
        running: steps at work, with their reserved tool runs.
        left: seconds before the deadline; None = computed from evidence and usage.
    """
    running = running or {}
    left = seconds_left(limits, evidence, usage) if left is None else left
    wave = _wave(plan, settled(plan, evidence), evidence, usage, limits, running, left)
    if wave.grants or running:
        return wave
    # Where no second attempt can start, the first one's record stands.
    return _wave(plan, recorded(plan, evidence), evidence, usage, limits, running, left)


def _wave(
    plan: Plan,
    done: Mapping[str, Evidence],
    evidence: Sequence[Evidence],
    usage: Usage,
    limits: RunLimits,
    running: Mapping[str, int],
    left: float,
) -> Wave:
    skipped = skipped_steps(plan, done)
    ready = [step for step in ready_steps(plan, done, skipped) if step.id not in running]
    if left <= 0:
        return Wave([], skipped, {s.id: "deadline" for s in ready})
    if tokens_left(limits, usage) == 0:
        return Wave([], skipped, {s.id: "max_tokens" for s in ready})
    room = limits.max_attempted_steps - len(running) - sum(e.finished_at > e.started_at for e in evidence)
    if room <= 0:
        return Wave([], skipped, {s.id: "attempted_steps" for s in ready})
    budget = max(0, tool_budget_left(limits, usage) - sum(running.values()))
    wanted = [Grant(step, tool_runs_left(step, evidence)) for step in ready]
    grants = _full_grants(wanted, budget)[:room]
    if not grants and not running and ready and budget > 0:
        grants = [Grant(ready[0], budget)]
    waits = bool(grants or running)
    return Wave(grants, skipped, {} if waits else {s.id: "tool_budget" for s in ready})


def remaining_seconds(plan: Plan) -> dict[str, float]:
    """Return, for each step, the longest way from its start to the plan's end, by timeouts: what to start first."""
    found: dict[str, float] = {}
    children = {step.id: [s for s in plan.steps if step.id in s.depends_on] for step in plan.steps}

    def way(step: Step) -> float:
        if step.id not in found:
            found[step.id] = step.timeout_seconds + max((way(c) for c in children[step.id]), default=0.0)
        return found[step.id]

    for step in plan.steps:
        way(step)
    return found


def _full_grants(wanted: Sequence[Grant], left: int) -> list[Grant]:
    grants: list[Grant] = []
    for grant in wanted:
        if grant.tool_calls <= left:
            grants.append(grant)
            left -= grant.tool_calls
    return grants


def step_task(state: TaskState, plan: Plan, grant: Grant) -> StepTask:
    """Return what a worker is given: the step, and the evidence of its direct dependencies."""
    step = grant.step
    records = latest(state["evidence"])
    needs = [s for s in plan.steps if s.id in step.depends_on and s.id in records and records[s.id].passed]
    return StepTask(
        objective=state["objective"],
        step=step,
        plan_version=plan.version,
        attempt=1 + sum(e.step_id == step.id for e in state["evidence"]),
        grant=grant.tool_calls,
        seconds_left=seconds_left(state["limits"], state["evidence"], state["usage"]),
        limits=state["limits"],
        dependencies=[dependency(s, records[s.id], state["sources"]) for s in needs],
    )


def dependency(step: Step, record: Evidence, sources: Sequence[Source]) -> Dependency:
    """Return one dependency as a step sees it: what it found and the sources that it carries."""
    carried: dict[str, Source] = {}
    for source in sources:
        if source.id in record.source_ids:
            carried.setdefault(source.id, source)
    return Dependency(
        step_id=step.id,
        task=step.task,
        summary=record.summary,
        source_ids=record.source_ids,
        sources=[carried[i] for i in record.source_ids if i in carried],
    )

"""schedule: mark what can never run, and send out what is ready. Pure code; joins the branches of `execute`."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from nodes.parts import Node, Parts, emitter, thread_id
from nodes.plan import plan_ready
from nodes.readiness import Wave, next_wave
from schemas.context import RunContext
from schemas.errors import InvariantBroken
from schemas.events import StepReady, StepSkipped
from schemas.evidence import ErrorType, Evidence
from schemas.plan import Plan
from schemas.state import TaskState

# Why a version was made by more budget (nodes/extend.py).
RAISED = "the run's limits were raised"
REASONS: dict[str, tuple[ErrorType, str]] = {
    "deadline": ("deadline", "the run's deadline was reached before the step could start"),
    "tool_budget": ("tool_budget", "the run's tool budget was spent before the step could start"),
    "max_tokens": ("model_limit", "the run's max_tokens were used before the step could start"),
    "attempted_steps": ("model_limit", "max_attempted_steps was reached before the step could start"),
}


def make_schedule(parts: Parts) -> Node:
    """Return the node. Routing (`route_schedule`) sends out the steps that this node has announced."""

    async def schedule(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        plan = current_plan(state)
        await parts.sweep(thread_id())
        emit = emitter(runtime.stream_writer)
        if begins(plan, state["evidence"]):
            emit(plan_ready(plan, []))
        skips: list[Evidence] = []
        while (
            True
        ):  # a refused step's descendants are skipped with it; what an optional one held up may start
            wave = next_wave(plan, [*state["evidence"], *skips], state["usage"], state["limits"])
            more = skip_records(plan, wave, state, parts)
            if not more:
                break
            skips += more
        for record in skips:
            emit(StepSkipped(step_id=record.step_id, because=record.skipped_because or record.detail))
        for grant in wave.grants:
            attempt = 1 + sum(e.step_id == grant.step.id for e in state["evidence"])
            emit(StepReady(step_id=grant.step.id, grant=grant.tool_calls, attempt=attempt))
        return ordered_update(state, skips)

    return schedule


def begins(plan: Plan, evidence: list[Evidence]) -> bool:
    """Return whether a version that raised limits have made begins now: no node has told of it, as of all others."""
    return plan.reason == RAISED and not any(record.plan_version == plan.version for record in evidence)


def ordered_update(state: TaskState, skips: list[Evidence]) -> dict[str, Any]:
    """Return the new records; and, where lanes have finished in another order than the plan's, all records in its order.

    Which lane runs a step is chance, and a resume may choose otherwise: what a run leaves must not tell.
    """
    places = {
        (plan.version, step.id): (plan.version, n)
        for plan in state["plans"]
        for n, step in enumerate(plan.steps)
    }
    late = (len(state["plans"]) + 1, 0)

    def place(record: Evidence) -> tuple[tuple[int, int], int]:
        return places.get((record.plan_version, record.step_id), late), record.attempt

    whole = sorted([*state["evidence"], *skips], key=place)
    steps = {record.step_id: n for n, record in enumerate(whole)}
    sources = sorted(state["sources"], key=lambda source: steps.get(source.step_id, len(steps)))
    update: dict[str, Any] = {"evidence": skips}
    if whole[: len(state["evidence"])] != state["evidence"]:
        update["evidence"] = Overwrite(whole)
    if sources != state["sources"]:
        update["sources"] = Overwrite(sources)
    return update


def current_plan(state: TaskState) -> Plan:
    """Return the plan in force, the approved one where a person was asked.

    Raises:
        InvariantBroken: it is not the plan that was approved.
    """
    plan = state["plan"]
    if plan is None:
        raise InvariantBroken("there is no plan to run")
    approved = state.get("approved")
    if approved is not None and approved != plan.fingerprint:
        raise InvariantBroken(f"plan {plan.version} is not the one that was approved")
    return plan


def skip_records(plan: Plan, wave: Wave, state: TaskState, parts: Parts) -> list[Evidence]:
    """Return a record for each step that will not run, naming the failed ancestor or the limit."""
    now = parts.now()

    def record(step_id: str, error_type: ErrorType, detail: str, because: str | None) -> Evidence:
        return Evidence(
            step_id=step_id,
            plan_version=plan.version,
            attempt=1 + sum(e.step_id == step_id for e in state["evidence"]),
            passed=False,
            missing=plan.step(step_id).success_criteria,
            error_type=error_type,
            detail=detail,
            skipped_because=because,
            started_at=now,
            finished_at=now,
        )

    skipped = [
        record(i, "dependency_failed", f"skipped: step {root} did not pass", root)
        for i, root in wave.skipped.items()
    ]
    return skipped + [record(i, *REASONS[limit], None) for i, limit in wave.refused.items()]

"""Going on after a limit: more budget for a run that has ended, or is about to, without repeating what passed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nodes.verdict import choose_max_replans, open_failures
from schemas.errors import InputError
from schemas.evidence import Evidence
from schemas.plan import Plan, Step
from schemas.state import TaskState, latest


@dataclass(frozen=True)
class Extension:
    """A state update that lets a run go on.

    Attributes:
        update: of the state.
        after: the node as which to write it: the run goes on behind it. "replan" = the steps that a limit kept from
            starting run now; "review" = the gaps are planned again.
    """

    update: dict[str, Any]
    after: Literal["replan", "review"]


def extension(state: TaskState, *, tool_calls: int = 0, replans: int = 0, seconds: float = 0) -> Extension:
    """Return the update for a run that has ended with gaps.

    Args:
        state: of the run.
        tool_calls: to add to the run's tool budget.
        replans: to add; without any, a run whose replans are spent gets as many as its open steps allow.
        seconds: to add to the deadline.

    Raises:
        InputError: nothing is added, the plan is missing, or the run has no gap.
    """
    if tool_calls < 0 or replans < 0 or seconds < 0 or not (tool_calls or replans or seconds):
        raise InputError("say what to add: tool calls, replans or seconds, each above 0")
    plan = state["plan"]
    if plan is None:
        raise InputError("the run has no plan to go on with: start a new objective")
    review = state["review"]
    if review is not None and review.approved:
        raise InputError("the run is completed: there is no gap to close")
    limits = state["limits"]
    limits = limits.model_copy(
        update={
            "total_tool_budget": limits.total_tool_budget + tool_calls,
            "deadline_seconds": limits.deadline_seconds + seconds,
        }
    )
    update: dict[str, Any] = {"limits": limits, "stop_reason": None, "status": "running", "approved": None}
    waiting = unstarted_steps(plan, latest(state["evidence"]))
    update["max_replans"] = max(state["max_replans"], 0) + replans
    if waiting:
        new = resumed_plan(plan, waiting, state)
        return Extension(update | {"plan": new, "plans": [*state["plans"], new]}, "replan")
    if not replans and state["replan_count"] >= state["max_replans"]:
        left = limits.total_tool_budget - state["usage"].tool_calls
        failures = open_failures(state["plans"], state["evidence"])
        update["max_replans"] = state["replan_count"] + max(1, choose_max_replans(len(failures), left))
    return Extension(update, "review")


def unstarted_steps(plan: Plan, records: Mapping[str, Evidence]) -> list[Step]:
    """Return the steps that a limit of the run kept from starting, and those that were skipped only because of them."""
    ready = {i for i, e in records.items() if e.passed} | {
        s.id for s in plan.steps if s.optional and s.id in records
    }
    found: list[Step] = []
    progress = True
    while progress:
        progress = False
        for step in plan.steps:
            record = records.get(step.id)
            if (
                step in found
                or step.id in ready
                or (record is not None and record.finished_at > record.started_at)
            ):
                continue
            if all(need in ready or any(need == f.id for f in found) for need in step.depends_on):
                found.append(step)
                progress = True
    return found


def resumed_plan(plan: Plan, waiting: list[Step], state: TaskState) -> Plan:
    """Return the next version: what has passed, and what may start now. No id is new, and no step is changed."""
    records = latest(state["evidence"])
    kept = [
        s for s in plan.steps if s.id in records and (records[s.id].passed or s.optional) and s not in waiting
    ]
    return Plan(
        goal=plan.goal,
        assumptions=plan.assumptions,
        steps=[*kept, *waiting],
        version=len(state["plans"]) + 1,
        parent_version=plan.version,
        created_by="human",
        reason="the run's limits were raised",
    )

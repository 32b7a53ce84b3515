"""Going on after a limit: more budget for a run that has ended, or is about to, without repeating what passed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from nodes.replan import within
from nodes.schedule import RAISED
from nodes.verdict import choose_max_replans, open_failures
from schemas.errors import InputError
from schemas.evidence import Evidence, Review
from schemas.limits import RunLimits
from schemas.plan import Plan, Step, validation_lines
from schemas.state import TaskState, latest


@dataclass(frozen=True)
class Extension:
    """A state update that lets a run go on.

    Attributes:
        update: of the state.
        after: the node as which to write it: the run goes on behind it. "replan" = the steps that a limit kept from
            starting run now; "review" = the gaps are planned again; "schedule" = what there is gets its missing review.
    """

    update: dict[str, Any]
    after: Literal["replan", "review", "schedule"]


def extension(
    state: TaskState,
    *,
    tool_calls: int = 0,
    replans: int = 0,
    seconds: float = 0,
    tokens: int = 0,
    steps: int = 0,
) -> Extension:
    """Return the update for a run that has ended with gaps.

    Args:
        state: of the run.
        tool_calls: to add to the run's tool budget.
        replans: to add; without any, a run whose replans are spent gets as many as its open steps allow.
        seconds: to add to the deadline.
        tokens: to add to max_tokens.
        steps: to add to max_attempted_steps.

    Raises:
        InputError: nothing is added, or more than a run may have; the plan is missing or was turned down; no gap is left.
    """
    review = state["review"]
    plan = plan_to_go_on_with(state)
    more = {
        "tool_calls": tool_calls,
        "replans": replans,
        "seconds": seconds,
        "tokens": tokens,
        "steps": steps,
    }
    limits = raised(state["limits"], more)
    update: dict[str, Any] = {"limits": limits, "stop_reason": None, "status": "running", "approved": None}
    update["max_replans"] = state["max_replans"] + replans
    if review is not None and seconds:
        update["review"] = with_time(review, latest(state["evidence"]))
    waiting = unstarted_steps(plan, latest(state["evidence"]))
    if waiting:
        new = resumed_plan(plan, waiting, state)
        return Extension(update | {"plan": new, "plans": [*state["plans"], new]}, "replan")
    if state["stop_reason"] == "review_unavailable":
        return Extension(update, "schedule")
    if not replans and state["replan_count"] >= state["max_replans"]:
        left = limits.total_tool_budget - state["usage"].tool_calls
        failures = open_failures(state["plans"], state["evidence"])
        update["max_replans"] = state["replan_count"] + max(1, choose_max_replans(len(failures), left))
    return Extension(update, "review")


def plan_to_go_on_with(state: TaskState) -> Plan:
    """Return the plan of a run that has gaps left to close.

    Raises:
        InputError: it has no plan, or none that may run, or no gap.
    """
    plan, review = state["plan"], state["review"]
    if plan is None:
        raise InputError("the run has no plan to go on with: start a new objective")
    if state["stop_reason"] == "plan_rejected":
        raise InputError("the run's plan was turned down, and may not run: start the objective again")
    if review is not None and review.approved:
        raise InputError("the run is completed: there is no gap to close")
    return plan


def raised(limits: RunLimits, more: Mapping[str, float]) -> RunLimits:
    """Return the limits with more in them.

    Raises:
        InputError: nothing is added, something is taken away, or a sum is more than a run may have.
    """
    # Written so that NaN is refused.
    if not all(n >= 0 for n in more.values()) or not any(more.values()):
        raise InputError("say what to add: tool calls, replans, seconds, tokens or steps, each above 0")
    if more["tokens"] and limits.max_tokens is None:
        raise InputError("the run has no bound of tokens to raise")
    sums = {
        "total_tool_budget": limits.total_tool_budget + more["tool_calls"],
        "deadline_seconds": limits.deadline_seconds + more["seconds"],
        "max_attempted_steps": limits.max_attempted_steps + more["steps"],
    }
    if limits.max_tokens is not None:
        sums["max_tokens"] = limits.max_tokens + more["tokens"]
    try:
        return RunLimits.model_validate(limits.model_dump() | sums)
    except ValidationError as error:
        raise InputError("; ".join(validation_lines(error))) from None


def with_time(review: Review, records: Mapping[str, Evidence]) -> Review:
    """Return the review: gaps that the deadline left can be closed once there is time again."""
    late = {i for i, record in records.items() if record.error_type == "deadline"}
    gaps = [g.model_copy(update={"recoverable": True}) if g.step_id in late else g for g in review.gaps]
    return review.model_copy(update={"gaps": gaps})


def unstarted_steps(plan: Plan, records: Mapping[str, Evidence]) -> list[Step]:
    """Return the steps that a limit of the run kept from starting, and those that were skipped only because of them."""
    passed = {i for i, record in records.items() if record.passed}
    may_lack = {step.id for step in plan.steps if step.optional and step.id in records}
    pending = [s for s in plan.steps if s.id not in passed and not has_run(records.get(s.id))]
    found: list[Step] = []
    while True:
        there = passed | may_lack | {step.id for step in found}
        more = [s for s in pending if s not in found and there.issuperset(s.depends_on)]
        if not more:
            return found
        found += more


def has_run(record: Evidence | None) -> bool:
    """Return whether a step was started."""
    return record is not None and record.finished_at > record.started_at


def resumed_plan(plan: Plan, waiting: list[Step], state: TaskState) -> Plan:
    """Return the next version: what has passed, and what may start now. No id is new, and no task is changed."""
    records = latest(state["evidence"])
    kept = [s for s in plan.steps if s in waiting or (s.id in records and records[s.id].passed)]
    return Plan(
        goal=plan.goal,
        assumptions=plan.assumptions,
        steps=within(kept),
        version=len(state["plans"]) + 1,
        parent_version=plan.version,
        created_by="human",
        reason=RAISED,
    )

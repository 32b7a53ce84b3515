"""Where a run goes next: pure functions of the state, one for each conditional edge."""

from typing import Literal

from langgraph.types import Send

from nodes.readiness import Grant, next_wave
from nodes.schedule import current_plan
from nodes.verdict import asking_steps
from schemas.state import LaneTask, StopReason, TaskState

ESCALATED: frozenset[StopReason] = frozenset(
    {"replan_limit", "not_recoverable", "no_progress", "tool_budget", "deadline", "attempted_steps"}
)


def route_plan(state: TaskState) -> Literal["clarify", "approve", "schedule", "finish"]:
    """Questions go to a person; a valid plan to its reviewer, if one is wanted; no plan ends the run."""
    if state["stop_reason"] is not None:
        return "finish"
    if state["questions"]:
        return "clarify"
    return "schedule" if state["choices"].review_plan == "never" else "approve"


def route_approve(state: TaskState) -> Literal["schedule", "plan", "replan", "finish"]:
    """An approved plan runs; a remark leads to another plan, or to another repair when steps have run."""
    if state["stop_reason"] is not None:
        return "finish"
    if state.get("approved") is not None:
        return "schedule"
    return "replan" if state["evidence"] else "plan"


def route_schedule(state: TaskState) -> list[Send] | Literal["review"]:
    """One Send for each step that starts now; review when none does."""
    plan = current_plan(state)
    wave = next_wave(plan, state["evidence"], state["usage"], state["limits"])
    return [Send("execute", lane_task(grant)) for grant in wave.grants] or "review"


def lane_task(grant: Grant) -> LaneTask:
    """Return what a lane is sent out with."""
    return LaneTask(step_id=grant.step.id, task=grant.step.task)


def route_review(state: TaskState) -> Literal["replan", "escalate", "finish"]:
    """Replan while something can be repaired; ask a person where one wants to be asked; else finish."""
    if asking_steps(state):
        return "escalate"
    reason = state["stop_reason"]
    if reason is None:
        return "replan"
    return "escalate" if reason in ESCALATED and state["choices"].on_gaps == "ask" else "finish"


def route_escalate(state: TaskState) -> Literal["schedule", "replan", "finish"]:
    """Go on with the steps that a raised limit lets start, or plan the gaps again, or end."""
    if state["stop_reason"] is not None:
        return "finish"
    wave = next_wave(current_plan(state), state["evidence"], state["usage"], state["limits"])
    # What a limit still refuses is refused there, and ends the run once more; so does a run without replans left.
    spent = state["replan_count"] >= state["max_replans"]
    return "schedule" if wave.grants or wave.refused or spent else "replan"


def route_replan(state: TaskState) -> Literal["approve", "schedule", "finish"]:
    """A repaired plan runs, after review where every version is reviewed."""
    if state["stop_reason"] is not None:
        return "finish"
    return "approve" if state["choices"].review_plan == "always" else "schedule"

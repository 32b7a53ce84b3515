"""Where a run goes next: pure functions of the state, one for each conditional edge."""

from typing import Literal

from langgraph.types import Send

from nodes.readiness import next_wave, step_task
from nodes.schedule import current_plan
from schemas.state import TaskState


def route_plan(state: TaskState) -> Literal["approve", "schedule", "finish"]:
    """A valid plan goes to its reviewer, if one is wanted; no plan ends the run."""
    if state["stop_reason"] is not None:
        return "finish"
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
    return [Send("execute", step_task(state, plan, grant)) for grant in wave.grants] or "review"


def route_review(state: TaskState) -> Literal["replan", "finish"]:
    """Replan while something can be repaired; the review has set the stop reason otherwise."""
    return "replan" if state["stop_reason"] is None else "finish"


def route_replan(state: TaskState) -> Literal["approve", "schedule", "finish"]:
    """A repaired plan runs, after review where every version is reviewed."""
    if state["stop_reason"] is not None:
        return "finish"
    return "approve" if state["choices"].review_plan == "always" else "schedule"

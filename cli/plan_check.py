"""A person's plan at the terminal, checked before it is sent: by the same rules by which the run will take it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from nodes.approve import edited, question
from nodes.verdict import all_steps
from schemas.errors import PlanInvalid
from schemas.plan import Plan, parse_draft
from schemas.state import TaskState

if TYPE_CHECKING:
    from graph.threads import TaskGraph

# Takes a plan; returns the question that would be asked with it, or what is wrong with it.
Recheck = Callable[[Any], "Mapping[str, Any] | list[str]"]


def recheck(graph: "TaskGraph", values: Mapping[str, Any]) -> Recheck:
    """Return the check of plans for a run that waits with these state values."""
    state = cast("TaskState", values)

    def checked(raw: Any) -> Mapping[str, Any] | list[str]:
        plan = state["plan"]
        if plan is None:
            return ["there is no plan to edit"]
        problems = _violations(raw, plan, state, graph)
        if problems:
            return problems
        update = edited(raw, plan, state, graph.parts)
        if isinstance(update, str):
            return [update]
        return question(update["plan"], state, graph.parts, None)

    return checked


def _violations(raw: Any, plan: Plan, state: TaskState, graph: "TaskGraph") -> list[str]:
    known = set(all_steps(state["plans"]))
    try:
        parse_draft(
            raw,
            tools=graph.parts.registry.names(state["choices"].autonomy),
            max_steps=state["limits"].max_plan_steps,
            taken=known - {step.id for step in plan.steps},
            replaceable=known,
        )
    except PlanInvalid as error:
        return error.problems
    return []

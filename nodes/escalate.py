"""escalate: ask a person what to do about gaps that the run cannot close alone. Calls no model."""

from typing import Any, cast

from langgraph.types import interrupt

from nodes.extend import extension
from nodes.parts import QuietNode
from nodes.verdict import asking_steps
from schemas.errors import InputError
from schemas.state import TaskState
from tools.results import clean_text

HOW = (
    'answer {"decision": "accept"}, {"decision": "extend", "tool_calls": 0, "replans": 0, "seconds": 0, '
    '"tokens": 0, "steps": 0}, '
    '{"decision": "hint", "hint": "..."} or {"decision": "stop"}'
)


def make_escalate() -> QuietNode:
    """Return the node. It pauses until one of the four decisions comes; anything else asks again, with the reason."""

    async def escalate(state: TaskState) -> dict[str, Any]:
        error: str | None = None
        while True:
            update = decide(interrupt(question(state, error)), state)
            if isinstance(update, dict):
                asked = [*state["asked"], *asking_steps(state)]
                return update | {"asked": list(dict.fromkeys(asked))}
            error = update

    return escalate


def question(state: TaskState, error: str | None) -> dict[str, Any]:
    """Return the interrupt's value: the gaps, why the run would stop, what is left, and what can be answered."""
    review = state["review"]
    limits, usage = state["limits"], state["usage"]
    return {
        "kind": "escalate",
        "gaps": [gap.model_dump(mode="json") for gap in review.gaps] if review else [],
        "stop_reason": state["stop_reason"],
        "tool_calls": {"used": usage.tool_calls, "allowed": limits.total_tool_budget},
        "replans": {"used": state["replan_count"], "allowed": state["max_replans"]},
        "error": error,
        "how": HOW,
    }


def decide(answer: Any, state: TaskState) -> dict[str, Any] | str:
    """Return the state update of a decision, or why it is none."""
    data = cast("dict[str, Any]", answer if isinstance(answer, dict) else {})
    match data.get("decision"):
        case "accept":
            return {"stop_reason": state["stop_reason"] or "not_recoverable"}
        case "stop":
            return {"stop_reason": "cancelled"}
        case "extend":
            return _extended(data, state)
        case "hint" if isinstance(data.get("hint"), str) and data["hint"].strip():
            most = max(state["max_replans"], state["replan_count"] + 1)
            feedback = [*state["feedback"], clean_text(data["hint"])[:2000]]
            return {"feedback": feedback, "max_replans": most, "stop_reason": None}
        case _:
            return HOW


def _extended(data: dict[str, Any], state: TaskState) -> dict[str, Any] | str:
    kinds = {"tool_calls": int, "replans": int, "seconds": int | float, "tokens": int, "steps": int}
    amounts = {key: data.get(key, 0) for key in kinds}
    if not all(isinstance(amounts[k], kinds[k]) and not isinstance(amounts[k], bool) for k in kinds):
        return "tool_calls, replans, tokens and steps are whole numbers, seconds a number"
    try:
        more = extension(state, **amounts)
    except InputError as error:
        return str(error)
    return more.update

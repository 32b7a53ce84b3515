"""A person's yes for tools that write, execute or send."""

from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import ToolCall
from langgraph.types import interrupt

from tools.registry import ToolSpec


@dataclass(frozen=True)
class ToolDecision:
    """What a person said of a call: `arguments` are the ones to run it with."""

    rejected: bool
    reason: str = ""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


def ask_person(step_id: str, spec: ToolSpec, call: ToolCall) -> ToolDecision:
    """Pause until a person answers {"decision": "approve"}, {"decision": "edit", "arguments": {...}} or
    {"decision": "reject", "reason": "..."}. Anything else asks again, with the reason, and runs nothing.
    """  # noqa: D205
    error: str | None = None
    while True:
        question = {
            "kind": "tool_approval",
            "step_id": step_id,
            "tool": spec.name,
            "permission": spec.permission,
            "arguments": call["args"],
            "error": error,
        }
        answer = interrupt(question)
        decision = read_decision(answer, call["args"])
        if isinstance(decision, ToolDecision):
            return decision
        error = decision


def read_decision(answer: Any, arguments: dict[str, Any]) -> ToolDecision | str:
    """Return the decision in a resume value, or why there is none."""
    data = cast("dict[str, Any]", answer if isinstance(answer, dict) else {})
    match data.get("decision"):
        case "approve":
            return ToolDecision(rejected=False, arguments=arguments)
        case "edit" if isinstance(data.get("arguments"), dict):
            return ToolDecision(rejected=False, arguments=data["arguments"])
        case "reject":
            return ToolDecision(rejected=True, reason=str(data.get("reason") or "no reason given")[:1000])
        case _:
            return 'answer {"decision": "approve"}, {"decision": "edit", "arguments": {...}} or {"decision": "reject"}'

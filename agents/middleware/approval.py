"""A person's yes for tools that write, execute or send."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import ToolCall
from langgraph.config import get_config
from langgraph.store.base import BaseStore
from langgraph.types import interrupt

from schemas.context import Autonomy
from tools.registry import ToolSpec

# Where LangGraph keeps what a task has been answered.
SCRATCHPAD = "__pregel_scratchpad"


class Approvals:
    """Which tools may run without asking: by the run's autonomy, or because a person said "always for this run".

    Args:
        autonomy: of the run.
        store: keeps what was said, so that a resume need not ask again; namespace: of the run in it.
    """

    def __init__(self, autonomy: Autonomy, store: BaseStore, namespace: tuple[str, ...]) -> None:
        self.autonomy: Autonomy = autonomy
        self._store = store
        self._namespace = namespace
        self._earlier: set[str] = set()
        self._now: set[str] = set()

    async def load(self) -> None:
        """Read what has been allowed earlier in the run."""
        self._earlier = {
            str(item.value["tool"]) for item in await self._store.asearch(self._namespace, limit=1000)
        }

    def given(self, tool: str) -> bool:
        """Return whether the calling task's tool may run without asking."""
        if self.autonomy == "all" or tool in self._earlier:
            return True
        # Said a moment ago, of another call: one that was answered together with it goes by its own answer.
        return tool in self._now and not is_answered()

    async def allow(self, tool: str) -> None:
        """Let a tool run without asking until the run's end."""
        self._now.add(tool)
        await self._store.aput(self._namespace, tool, {"tool": tool}, index=False)


@dataclass(frozen=True)
class ToolDecision:
    """What a person said of a call: `arguments` are the ones to run it with; `always`: do not ask again in this run."""

    rejected: bool
    always: bool = False
    reason: str = ""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


def is_answered() -> bool:
    """Return whether a person's answer waits for the calling task."""
    scratchpad = get_config().get("configurable", {}).get(SCRATCHPAD)
    return bool(getattr(scratchpad, "resume", None))


def ask_person(
    step_id: str, spec: ToolSpec, call: ToolCall, problem_of: Callable[[dict[str, Any]], str]
) -> ToolDecision:
    """Pause until a person answers {"decision": "approve"} (with "always": true for the rest of the run), {"decision": "edit", "arguments": {...}} or
    {"decision": "reject", "reason": "..."}. Anything else asks again, with the reason, and runs nothing.

    Args:
        step_id: of the step that asks.
        spec: of the tool.
        call: what the model wants of it.
        problem_of: what is wrong with arguments, or "".
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
        if isinstance(decision, str):
            error = decision
            continue
        error = "" if decision.rejected else problem_of(decision.arguments)
        if not error:
            return decision


def read_decision(answer: Any, arguments: dict[str, Any]) -> ToolDecision | str:
    """Return the decision in a resume value, or why there is none."""
    data = cast("dict[str, Any]", answer if isinstance(answer, dict) else {})
    match data.get("decision"):
        case "approve":
            return ToolDecision(rejected=False, arguments=arguments, always=data.get("always") is True)
        case "edit" if isinstance(data.get("arguments"), dict):
            return ToolDecision(rejected=False, arguments=data["arguments"])
        case "reject":
            return ToolDecision(rejected=True, reason=str(data.get("reason") or "no reason given")[:1000])
        case _:
            return 'answer {"decision": "approve"}, {"decision": "edit", "arguments": {...}} or {"decision": "reject"}'

"""A chat model for benchmarks whose answer is a function of the request, and how to read Planweave's requests."""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from typing_extensions import override


class Scripted(BaseChatModel):
    """Subclasses say what is answered."""

    @property
    @override
    def _llm_type(self) -> str:
        return "planweave-benchmark"

    @override
    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(bound=list(tools))

    @override
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        message = self.answer(messages, kwargs.get("bound", []))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def answer(self, messages: list[BaseMessage], bound: list[Any]) -> AIMessage:
        """Return the answer to a request; `bound` are the tools offered with it."""
        raise NotImplementedError


def brief_of(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Return the JSON object that opens a request."""
    return json.loads(next(m.text for m in messages if isinstance(m, HumanMessage)))


def names_of(bound: Sequence[Any]) -> list[str]:
    """Return the names of bound tools."""
    return [tool["function"]["name"] if isinstance(tool, dict) else tool.name for tool in bound]


def texts_of(messages: Sequence[BaseMessage]) -> str:
    """Return what the tools have answered."""
    return "\n".join(m.text for m in messages if isinstance(m, ToolMessage))


def call(name: str, **arguments: Any) -> AIMessage:
    """Return one tool call; a structured answer is one too, named after its schema."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def finding(summary: str, ids: Sequence[str], verdicts: Sequence[tuple[str, bool]]) -> AIMessage:
    """Return a Finding with (criterion, met) verdicts."""
    criteria = [
        {"criterion": c, "met": met, "reason": "found" if met else "not found"} for c, met in verdicts
    ]
    return call("Finding", summary=summary, source_ids=list(ids), criteria=criteria, missing=[])

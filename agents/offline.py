"""The embedded model: a deterministic chat model without weights, so that a first run needs no key and no network.

It reads the role and the data from the first human message that is a JSON object with "role", and answers as any
model would: tool calls, a structured answer, or text. It matches words and quotes; it does not reason, and says so.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.base import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import override

from agents.embedded import plan as planning
from agents.embedded import review as reviewing
from agents.embedded import work as working
from agents.embedded import write as writing
from agents.embedded.offered import Offered, offered_tools
from agents.embedded.requests import (
    PlannerRequest,
    ReplannerRequest,
    Request,
    ReviewerRequest,
    WorkerRequest,
    WriterRequest,
    read_request,
)

CHARS_PER_TOKEN = 4
WHAT_IT_IS = (
    "I am Planweave's embedded model: I match words and quote documents for Planweave's own requests, and cannot "
    "answer this; set AGENT_MODEL to use a language model."
)


class OfflineChatModel(BaseChatModel):
    """Answers Planweave's requests by matching words: same request, same answer, everywhere."""

    @property
    @override
    def _llm_type(self) -> str:
        return "planweave-offline"

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools: LangChain tools, pydantic classes, functions, or OpenAI's format."""
        offered = [convert_to_openai_tool(tool) for tool in tools]
        unasked = [tool.name for tool in tools if isinstance(tool, BaseTool) and _only_reads(tool)]
        return self.bind(tools=offered, unasked=unasked, tool_choice=tool_choice, **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        bound = offered_tools(kwargs.get("tools") or [], kwargs.get("unasked") or [])
        message = _answer(messages, bound)
        message.usage_metadata = _usage(messages, message)  # pyright: ignore[reportAttributeAccessIssue]
        message.response_metadata = {"model_name": self._llm_type, "finish_reason": "stop"}
        return ChatResult(generations=[ChatGeneration(message=message)])


def _only_reads(tool: BaseTool) -> bool:
    return (tool.metadata or {}).get("permission", "read") == "read"


def _answer(messages: Sequence[BaseMessage], bound: Mapping[str, Offered]) -> AIMessage:
    found = read_request(messages)
    if found is None:
        return AIMessage(WHAT_IT_IS)
    request, later = found
    if isinstance(request, WriterRequest):
        return AIMessage(writing.write(request))
    turn = sum(isinstance(m, AIMessage) for m in later)
    if isinstance(request, WorkerRequest):
        tools = {name: tool for name, tool in bound.items() if name != "Finding"}
        move = working.next_move(request, later, tools)
        if isinstance(move, list):
            return _calls(move, f"{request.step.id}-{turn}")
        return _structured("Finding", move, bound, f"{request.step.id}-{turn}")
    name, value = _decided(request, again=any(isinstance(m, HumanMessage) for m in later))
    return _structured(name, value, bound, f"{name.casefold()}-{turn}")


def _decided(request: Request, *, again: bool) -> tuple[str, dict[str, Any]]:
    """Return schema and value; `again`: an earlier answer was not accepted."""
    if isinstance(request, ReplannerRequest):
        return "Plan", reviewing.replan(request)
    if isinstance(request, PlannerRequest):
        return "Plan", planning.plan(request, simplest=again)
    assert isinstance(request, ReviewerRequest)
    return "Review", reviewing.review(request)


def _calls(calls: Sequence[tuple[str, dict[str, Any]]], prefix: str) -> AIMessage:
    # Ids must be unique in a conversation and the same when a step is run again after a crash.
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", prefix)[:50]
    tool_calls = [
        ToolCall(name=name, args=args, id=f"call_{safe}_{i}") for i, (name, args) in enumerate(calls)
    ]
    return AIMessage(content="", tool_calls=tool_calls)


def _structured(name: str, value: dict[str, Any], bound: Mapping[str, Offered], prefix: str) -> AIMessage:
    if name in bound:
        return _calls([(name, value)], prefix)
    return AIMessage(json.dumps(value, ensure_ascii=False))


def _usage(messages: Sequence[BaseMessage], answer: AIMessage) -> dict[str, int]:
    """Return token counts estimated from characters: there is no tokenizer here."""
    given = -(-sum(_size(m) for m in messages) // CHARS_PER_TOKEN)
    made = -(-_size(answer) // CHARS_PER_TOKEN)
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}


def _size(message: BaseMessage) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return len(message.text) + sum(len(json.dumps(c["args"], ensure_ascii=False, default=str)) for c in calls)

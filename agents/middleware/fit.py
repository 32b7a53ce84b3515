"""Requests that fit: the oldest tool results give way first, visibly, to a note."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from typing_extensions import override

from agents.brief import capped
from agents.middleware.at_work import at_work
from tools.results import cut

SHORT = 200


class FitRequest(AgentMiddleware[AgentState[Any], Any, Any]):
    """Keeps each model request within `max_request_chars` (RunLimits).

    Order of trimming: long arguments of calls that were made; tool results from the oldest on, to their first 200
    characters; then, if that is not enough, the longest remaining texts but the brief. The full texts stay in the artifact store.
    """

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        room = at_work().max_request_chars - len(request.system_prompt or "")
        return await handler(request.override(messages=fit(request.messages, room)))


def size(message: AnyMessage) -> int:
    """Return the characters a message holds, tool-call arguments included."""
    calls = getattr(message, "tool_calls", [])
    text = message.content if isinstance(message.content, str) else message.text
    return len(text) + sum(len(str(call["args"])) for call in calls)


def fit(messages: list[AnyMessage], max_chars: int) -> list[AnyMessage]:
    """Return the messages, cut so that together they hold at most about `max_chars` characters."""
    fitted = list(messages)
    over = sum(map(size, fitted)) - max_chars
    last_round = len(fitted) - 1
    for index, message in enumerate(fitted):
        if over > 0 and isinstance(message, AIMessage) and message.tool_calls:
            fitted[index] = _short_calls(message)
            over -= size(message) - size(fitted[index])
    for index, message in enumerate(fitted):
        if over <= 0:
            return fitted
        if isinstance(message, ToolMessage) and index < last_round and len(message.text) > SHORT:
            fitted[index] = message.model_copy(update={"content": cut(message.text, SHORT)})
            over -= size(message) - size(fitted[index])
    while over > 0:
        # Not the first: the brief is one JSON object, and was made to fit when it was written.
        index = max(range(1, len(fitted)), key=lambda i: len(fitted[i].text), default=0)
        longest = fitted[index]
        if index == 0 or len(longest.text) <= SHORT:
            break
        fitted[index] = longest.model_copy(
            update={"content": cut(longest.text, max(SHORT, len(longest.text) - over))}
        )
        gained = size(longest) - size(fitted[index])
        if gained <= 0:
            break
        over -= gained
    return fitted


def _short_calls(message: AIMessage) -> AIMessage:
    calls = [{**call, "args": capped(call["args"], SHORT)} for call in message.tool_calls]
    return message.model_copy(update={"tool_calls": calls})

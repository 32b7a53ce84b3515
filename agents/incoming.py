"""What a model's client gives back, made safe to keep and to send on: valid text, usable call ids, an AIMessage.

Whatever stands in a checkpoint or in the next request must be valid UTF-8 and small integers, and each call needs an
id of its own: servers refuse a request whose calls share an id or have none, and an answer could not be matched.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall

from tools.results import clean_text

MAX_DEPTH = 40
MAX_ID_CHARS = 64
MAX_INT = 2**63 - 1
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def received(message: BaseMessage, marks: Mapping[str, Any] | None = None) -> AIMessage:
    """Return a model's answer, safe to keep and to send on; see the module. `marks` join its response_metadata."""
    marks = marks or {}
    if not isinstance(message, AIMessage):
        return AIMessage(clean_text(message.text), response_metadata={**marks})
    taken: set[str] = set()
    calls = [_call(call, taken) for call in message.tool_calls]
    unreadable = [_unreadable(call, taken) for call in message.invalid_tool_calls]
    metadata = {**clean_data(message.response_metadata), **marks}
    return message.model_copy(
        update={
            "content": clean_data(message.content),
            "tool_calls": calls,
            "invalid_tool_calls": unreadable,
            # Clients send these on in place of tool_calls, as they came.
            "additional_kwargs": _without(
                clean_data(message.additional_kwargs), "tool_calls", "function_call"
            ),
            "response_metadata": metadata,
        }
    )


def clean_data(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return JSON data with every text valid UTF-8 and without NUL, and no integer above 64 bits.

    What is nested deeper than `depth` is left out as "…"; other values are returned as they are.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INT:
        return float(value) if abs(value) < 10**300 else "…"
    if isinstance(value, dict | list | tuple) and depth == 0:
        return "…"
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {clean_data(key, 1): clean_data(item, depth - 1) for key, item in items}
    if isinstance(value, list | tuple):
        return [clean_data(item, depth - 1) for item in cast("list[Any]", value)]
    return value


def _call(call: ToolCall, taken: set[str]) -> ToolCall:
    return ToolCall(
        name=_name(call["name"]),
        args=clean_data(call["args"]),
        id=_own_id(call["id"], taken),
        type="tool_call",
    )


def _unreadable(call: InvalidToolCall, taken: set[str]) -> InvalidToolCall:
    return InvalidToolCall(
        type="invalid_tool_call",
        name=_name(call.get("name")),
        args=clean_text(str(call.get("args") or "")),
        id=_own_id(call.get("id"), taken),
        error=clean_text(str(call.get("error") or "the arguments are not a JSON object")),
    )


def _name(name: str | None) -> str:
    return _NOT_IN_NAMES.sub("_", name or "")[:64] or "unnamed"


def _own_id(given: str | None, taken: set[str]) -> str:
    """Return the id that a call came with, or another one where it cannot be told apart by it."""
    wanted = clean_text(given or "")
    if not wanted or len(wanted) > MAX_ID_CHARS or wanted in taken:
        wanted = next(name for n in range(len(taken) + 1) if (name := f"call-{n}") not in taken)
    taken.add(wanted)
    return wanted


def _without(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}

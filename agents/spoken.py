"""Tool calls as models and servers really send them: written as text, cut short, with no arguments.

Where a server does not read its model's own format for calls, they arrive as text: Hermes and Qwen write
<tool_call>{"name": ..., "arguments": {...}}</tool_call>, Llama <function=name>{...}</function>, Qwen-Coder
<function=name><parameter=key>value</parameter></function>, others plain or fenced JSON.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

from agents.candidates import objects_in_order, repaired, without_thinking, written_call

MAX_CALLS = 16
PROSE_CHARS = 300
_TAGGED = re.compile(r"(?s)<tool_call>(.*?)(?:</tool_call>|\Z)")
_FUNCTION = re.compile(r"(?s)<function=([\w.-]{1,64})>(.*?)(?:</function>|\Z)")
_PARAMETER = re.compile(r"(?s)<parameter=([\w.-]{1,64})>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)")
CUT = "the call was cut at the model's token limit (max_tokens)"


def finish_reason(message: AIMessage) -> str:
    """Return why the model stopped, as its provider says it."""
    meta = cast("dict[str, Any]", message.response_metadata)
    return str(meta.get("finish_reason") or meta.get("stop_reason") or "")


def is_truncated(message: AIMessage) -> bool:
    """Return whether the provider cut the answer at the token limit."""
    return finish_reason(message) in ("length", "max_tokens")


def stream_broke(message: AIMessage) -> bool:
    """Return whether a streamed answer ended without its end.

    The client says nothing of it, and completes half a tool call to valid JSON: half a plan would pass for a plan.
    """
    meta = cast("dict[str, Any]", message.response_metadata)
    ends = ("finish_reason", "stop_reason", "status")
    return meta.get("model_provider") == "openai" and not any(key in meta for key in ends)


def sound(message: AIMessage, offered: Collection[str]) -> AIMessage:
    """Return a message with its tool calls as they were meant.

    A call without arguments has none; one whose arguments need a small repair gets it; the last one of a cut message
    is no call, because a client may have completed it. Without any call, those written as text count.

    Args:
        message: as received.
        offered: names of the tools that the model was offered.
    """
    calls, unreadable = list(message.tool_calls), list(message.invalid_tool_calls)
    if is_truncated(message):
        if calls:
            last = calls.pop()
            text = json.dumps(last["args"], ensure_ascii=False)
            unreadable.append(_invalid(last["name"], text, last["id"]))
    elif calls and not unreadable:
        return message  # nothing to mend
    else:
        for call in [*unreadable]:
            args = _meant(call) if call.get("name") in offered else None
            if args is not None:
                unreadable.remove(call)
                name = str(call.get("name") or "")
                calls.append(ToolCall(name=name, args=args, id=call.get("id"), type="tool_call"))
        if not calls and not unreadable:
            calls = list(spoken_calls(message.text, offered))
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": unreadable})


def _invalid(name: str, args: str, call_id: str | None) -> InvalidToolCall:
    return InvalidToolCall(type="invalid_tool_call", name=name, args=args, id=call_id, error=CUT)


def _meant(call: InvalidToolCall) -> dict[str, Any] | None:
    text = str(call.get("args") or "").strip()
    return {} if text in ("", "null", "{}") else repaired(text)


def spoken_calls(text: str, offered: Collection[str]) -> Iterator[ToolCall]:
    """Yield the calls of offered tools that a model wrote as text.

    Only what opens the message, after a little prose, or stands in a tag for calls: a call quoted from a document
    further down is not the model's own.
    """
    text = without_thinking(text)
    mark = hashlib.sha256(text.encode()).hexdigest()[:10]  # ids differ from turn to turn
    found = 0
    for name, args in _written(text):
        if name in offered and found < MAX_CALLS:
            yield ToolCall(name=name, args=args, id=f"spoken-{mark}-{found}", type="tool_call")
            found += 1


def _written(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tagged = _TAGGED.findall(text)
    functions = [pair for part in tagged or [text] for pair in _FUNCTION.findall(part)]
    if functions:
        for name, body in functions:
            yield name, _arguments(body)
        return
    if not tagged and text.find("{") > PROSE_CHARS:
        return
    for part in tagged or [text]:
        for value in objects_in_order(part):
            if isinstance(value, Mapping):
                yield from _calls_in(cast("Mapping[str, Any]", value))


def _calls_in(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    inside = data.get("tool_calls")
    for item in cast("list[Any]", inside) if isinstance(inside, list) else [data]:
        call = written_call(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else None
        if call is not None:
            yield call


def _arguments(body: str) -> dict[str, Any]:
    parameters = _PARAMETER.findall(body)
    if parameters:
        return {key: _value(text) for key, text in parameters}
    objects = objects_in_order(body)  # each begins with a brace: it is a mapping
    return dict(cast("Mapping[str, Any]", objects[0])) if objects else {}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

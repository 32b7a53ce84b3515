"""What in a model's message may be the answer: tool calls, JSON in text, JSON that needs a small repair, wrapped JSON."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import json_repair
from langchain_core.messages import AIMessage

from agents.incoming import clean_data

# json-repair takes quadratic time on hostile texts: this many characters cost it at most about three seconds.
MAX_REPAIRED_CHARS = 8_000
MAX_REPAIRS = 2
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_NAMES = ("name", "tool", "function", "tool_name")
_FENCE = re.compile(r"```[A-Za-z]*")


def candidates(message: AIMessage, name: str) -> Iterator[Any]:
    """Yield what may be the answer of that schema, most explicit first.

    The named tool call, other calls, JSON in text, and last what a repair makes of text or arguments that are no JSON.
    """
    calls = sorted(message.tool_calls, key=lambda call: call["name"] != name)
    for value in [*(call["args"] for call in calls), *json_objects(message.text)]:
        yield from unwrapped(value, name)
    if calls:
        return
    broken = [str(call.get("args") or "") for call in message.invalid_tool_calls[:MAX_REPAIRS]]
    for text in [*broken, without_thinking(message.text)]:
        value = repaired(text)
        if value is not None:
            yield from unwrapped(value, name)


def unwrapped(value: Any, name: str) -> Iterator[Any]:
    """Yield what a mapping carries, if it is a call written as JSON, or {name: answer}; then the value itself."""
    if isinstance(value, Mapping):
        data = cast("Mapping[str, Any]", value)
        call = written_call(data)
        inner = call[1] if call is not None and call[0] == name else data.get(name)
        if isinstance(inner, Mapping):
            yield inner
    yield value


def written_call(data: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return name and arguments of a call that a model wrote as a JSON object, or None."""
    function = data.get("function")
    if isinstance(function, Mapping):
        return written_call(cast("Mapping[str, Any]", function))
    name = next((data[key] for key in _NAMES if isinstance(data.get(key), str)), None)
    arguments = next((data[key] for key in _ARGUMENTS if key in data), None)
    if isinstance(arguments, str):
        arguments = next(iter(json_objects(arguments)), None)
    if name is None or not isinstance(arguments, Mapping):
        return None
    return str(name), dict(cast("Mapping[str, Any]", arguments))


def without_thinking(text: str) -> str:
    """Return a text without what stands inside <think>; some chat templates hold the opening tag back."""
    head, closing, rest = text.partition("</think>")
    if closing and "<think>" not in head:
        text = rest
    return re.sub(r"(?s)<think>.*?(</think>|\Z)", " ", text)


def prose(text: str) -> str:
    """Return an answer in text without the thinking before it, and without a Markdown fence around the whole of it.

    Only before it: further down <think> may be what the answer is about. A fence without a name, or with another
    one, holds code.
    """
    head, closing, rest = text.partition("</think>")
    if text.lstrip().startswith("<think>") or (closing and "<think>" not in head):
        text = rest
    fenced = re.fullmatch(r"(?s)\s*```(?:markdown|md)[ \t]*\n(.*?)\n?```\s*", text)
    return (fenced[1] if fenced and "```" not in fenced[1] else text).strip()


def json_objects(text: str) -> list[Any]:
    """Return the JSON objects in a text, largest first; what stands inside <think> comes last."""
    found = _scan(without_thinking(text)) or _scan(text)
    return [value for _, value in sorted(found, key=lambda pair: -pair[0])]


def objects_in_order(text: str) -> list[Any]:
    """Return the JSON objects in a text outside <think>, first to last."""
    return [value for _, value in _scan(without_thinking(text))]


def _scan(text: str) -> list[tuple[int, Any]]:
    decoder = json.JSONDecoder(strict=False)
    found: list[tuple[int, Any]] = []
    at = text.find("{")
    tries = 0
    while at != -1 and tries < 200:  # a text of a million braces must not take forever
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found.append((end - at, clean_data(value)))  # an escape may stand for a lone surrogate
        at = text.find("{", end)
    return found


def repaired(text: str) -> Any | None:
    """Return the object that a text with small faults means (quotes, commas, comments), or None.

    A text that is JSON needs none. Only what is wrong inside is repaired: a text whose brackets do not close was cut,
    and completing it would turn half a plan into a whole one.
    """
    text = _FENCE.sub("", text)
    start, end = text.find("{"), text.rfind("}")
    if start == -1 or end < start or end - start > MAX_REPAIRED_CHARS or text[end + 1 :].strip("`;.\n\r\t "):
        return None
    text = text[start : end + 1]
    if _parses(text):
        return None
    if any(text.count(a) != text.count(b) for a, b in ("{}", "[]")):
        return None
    try:
        value: Any = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, TypeError, RecursionError, IndexError):
        return None
    return clean_data(value) if isinstance(value, dict) and value else None


def _parses(text: str) -> bool:
    try:
        json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return True

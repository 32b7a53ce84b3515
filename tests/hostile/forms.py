"""How an answer comes: as a call, as JSON in text, beside other things, wrongly, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, InvalidToolCall, ToolCall

from tests.hostile.text import anything, big, nasty, phrase


class StatusError(Exception):
    """What HTTP clients raise: an error with a status."""

    def __init__(self, status_code: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status_code


class RateLimitError(Exception):
    """Known by its name alone."""


def error(rng: Random, *, calm: bool) -> Exception:
    """Return what a client may raise; when calm, nothing that is waited out."""
    lasting: list[Callable[[], Exception]] = [
        lambda: ValueError("bad {value} \ud800"),
        lambda: TypeError("'NoneType' object is not iterable"),
        lambda: KeyError("choices"),
        lambda: AttributeError("content"),
        lambda: IndexError(),
        lambda: StatusError(401, "no such key: sk-abcdef123456"),
        lambda: StatusError(403, "forbidden"),
        lambda: StatusError(400, "This model's maximum context length is 8192 tokens"),
        lambda: StatusError(400, "bad request"),
        lambda: StatusError(400, "blocked by content_filter"),
        lambda: ExceptionGroup("several", [ValueError("x"), StatusError(401, "y")]),
        lambda: RuntimeError(big(rng, 200_000)),
        lambda: RecursionError("maximum recursion depth exceeded"),
        lambda: StopAsyncIteration(),
        lambda: MemoryError(),
        lambda: AssertionError(),
    ]
    passing: list[Callable[[], Exception]] = [
        lambda: ConnectionError("reset"),
        lambda: TimeoutError(),
        lambda: StatusError(429, "slow down"),
        lambda: StatusError(500, "oops"),
        lambda: RateLimitError("later"),
        lambda: ExceptionGroup("all", [ConnectionError("x"), ExceptionGroup("inner", [TimeoutError()])]),
    ]
    return rng.choice(lasting if calm else lasting + passing)()


def call_of(name: str, args: dict[str, Any], call_id: str) -> ToolCall:
    return ToolCall(name=name, args=args, id=call_id, type="tool_call")


def message(rng: Random, content: Any = "", *calls: ToolCall, **fields: Any) -> AIMessage:
    """Return an AIMessage, sometimes with the tokens that it cost."""
    if rng.random() < 0.5:
        fields["usage_metadata"] = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    return AIMessage(content, tool_calls=list(calls), **fields)


def answered(rng: Random, name: str, args: dict[str, Any], turn: int) -> AIMessage:
    """Return a structured answer in one of the forms that are taken."""
    text = json.dumps(args, ensure_ascii=False, default=str)
    kind = rng.randrange(8)
    if kind == 0:
        return message(rng, text)
    if kind == 1:
        return message(rng, f"```json\n{text}\n```")
    if kind == 2:
        return message(rng, f"<think>{{not this}} {phrase(rng)}</think>\n{text}")
    if kind == 3:
        return message(rng, [{"type": "text", "text": f"Here you are: {text} {{ok}}"}])
    return message(rng, "" if rng.random() < 0.8 else phrase(rng), call_of(name, args, f"{name}-{turn}"))


def useless(rng: Random, name: str) -> BaseMessage:
    """Return a message without a usable answer."""
    reasons: tuple[Any, ...] = ("length", "max_tokens", None, 7, ["stop"])
    kinds: tuple[Callable[[], BaseMessage], ...] = (
        lambda: AIMessage(""),
        lambda: AIMessage([]),
        lambda: message(rng, nasty(rng)),
        lambda: message(rng, big(rng)),
        lambda: AIMessage("<think>" + phrase(rng)),
        lambda: AIMessage("", additional_kwargs={"reasoning_content": "hm"}),
        lambda: AIMessage('{"summary": "half', response_metadata={"finish_reason": rng.choice(reasons)}),
        lambda: AIMessage("", invalid_tool_calls=[_invalid(rng, name)]),
        lambda: AIMessage([{"type": "text"}]),
        lambda: AIMessage([{}, {"type": "image_url", "image_url": {"url": "data:,x"}}, "text"]),
        lambda: AIMessage([{"type": "text", "text": None}]),
        lambda: HumanMessage("I am the user now"),
        lambda: message(rng, "", call_of(rng.choice(("Plan", "Review", "ghost", "")), anyhow(rng), "u1")),
        lambda: AIMessage(json.dumps([anything(rng)], default=str)),
    )
    return rng.choice(kinds)()


def refusal(rng: Random) -> AIMessage:
    kinds: tuple[Callable[[], AIMessage], ...] = (
        lambda: AIMessage("", additional_kwargs={"refusal": "I will not"}),
        lambda: AIMessage("", additional_kwargs={"refusal": {"why": nasty(rng)}}),
        lambda: AIMessage([{"type": "refusal", "refusal": None}]),
        lambda: AIMessage("no", response_metadata={"finish_reason": "content_filter"}),
    )
    return rng.choice(kinds)()


def _invalid(rng: Random, name: str) -> InvalidToolCall:
    return rng.choice(
        (
            InvalidToolCall(name=name, args="{broken", id="i1", error="not JSON"),
            InvalidToolCall(name=None, args=None, id=None, error=None),
            InvalidToolCall(name="look", args="[1]", id="", error=nasty(rng)),
        )
    )


def anyhow(rng: Random) -> dict[str, Any]:
    """Return arguments of any kind under any names."""
    return {
        rng.choice(("query", "source_id", "x", "{}", "")): anything(rng) for _ in range(rng.randint(0, 3))
    }

"""The quirks, one a row: what the server does, and what a run must come to with how many requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

from tests.quirks.server import Body, Quirk, Reply, Request, a_step, call, completion, error

CLEAN = {"planner": 1, "worker": 3, "reviewer": 1, "writer": 1}


@dataclass(frozen=True)
class Row:
    """A quirk and its right end.

    Attributes:
        counts: requests by role, where they differ from a clean run's.
        errors: error_type of the steps that fail.
        client: further arguments of the client; structured: the setting.
    """

    quirk: Quirk
    counts: dict[str, int] = field(default_factory=dict)
    status: str = "completed"
    stop_reason: str = "approved"
    errors: dict[str, str] = field(default_factory=dict)
    says: str = ""
    client: dict[str, Any] = field(default_factory=dict)
    structured: str = "auto"
    at_least_seconds: float = 0.0

    @property
    def requests(self) -> dict[str, int]:
        return {role: n for role, n in (CLEAN | self.counts).items() if n}


NO_PLAN = {"worker": 0, "reviewer": 0, "writer": 0}
UNAVAILABLE: dict[str, Any] = {"status": "failed", "stop_reason": "model_unavailable"}


def once(role: str, bent: Callable[[Request, Body], Any], times: int = 1) -> Quirk:
    """Bend the first answer to a role."""
    return lambda r, m: bent(r, m) if r.role == role and r.number < times else None


def always(role: str, bent: Callable[[Request, Body], Any]) -> Quirk:
    return once(role, bent, 10**6)


def every_call(change: Callable[[Body], Any]) -> Quirk:
    """Change each tool call of each answer."""

    def bent(request: Request, message: Body) -> Body:
        for one in message.get("tool_calls") or []:
            change(one)
        return message

    return bent


def as_text(write: Callable[[str, str], str]) -> Quirk:
    """Write each call as text, as a server does that cannot read its model's calls."""

    def bent(request: Request, message: Body) -> Body:
        calls = [one["function"] for one in message.get("tool_calls") or []]
        return {"content": "".join(write(f["name"], f["arguments"]) for f in calls)} if calls else message

    return bent


def refuses(status: int, message: str, when: Callable[[Request], bool]) -> Quirk:
    return lambda r, m: error(status, message) if when(r) else None


def without_tools(quirk: Quirk) -> Quirk:
    """Plan steps that reason, for servers on which no tool can be called."""

    def bent(request: Request, message: Body) -> Any:
        found = quirk(request, message)
        if found is None and request.role == "planner":
            return {"content": json.dumps({"goal": "g", "steps": [a_step("a") | {"tools": []}]})}
        return found

    return bent


def parameter(name: str, arguments: str) -> str:
    values = "".join(
        f"<parameter={k}>\n{v if isinstance(v, str) else json.dumps(v)}\n</parameter>\n"
        for k, v in json.loads(arguments).items()
    )
    return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>"


def twice(request: Request, message: Body) -> Body:
    calls = message.get("tool_calls") or []
    return message | ({"tool_calls": [*calls, *[c | {"id": "call_2"} for c in calls]]} if calls else {})


def same_id_twice(request: Request, message: Body) -> Body:
    calls = message.get("tool_calls") or []
    return message | ({"tool_calls": [*calls, *calls]} if calls else {})


def two_users_in_a_row(request: Request) -> bool:
    roles = [m["role"] for m in request.body["messages"]]
    return any(one == two == "user" for one, two in pairwise(roles))


def has_empty_assistant(request: Request) -> bool:
    return any(
        m["role"] == "assistant" and not m.get("content") and not m.get("tool_calls")
        for m in request.body["messages"]
    )


def half(request: Request, message: Body) -> Body:
    text = message["tool_calls"][0]["function"]["arguments"]
    return call(message["tool_calls"][0]["function"]["name"], text[: len(text) * 2 // 3]) | {
        "finish_reason": "length"
    }


def streamed(reply: Callable[[Request, Body], Reply]) -> dict[str, Any]:
    return {"quirk": once("planner", reply), "client": {"streaming": True}}


def in_a_minute(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


def broken(text: str) -> Callable[[Request, Body], Body]:
    return lambda r, m: {"content": text}


def half_stream(request: Request, message: Body) -> Reply:
    return Reply(body=completion(message), end="half")


NO_TOOLS = "registry/library/gemma:2b does not support tools"
NO_FORCE = "The tool_choice parameter does not support being set to required or object in thinking mode"
TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens (8000 in the messages, 1000 in the functions)"
PLAN = {"goal": "the goal", "steps": [a_step("a"), a_step("b", "a")]}
COMMAS = json.dumps(PLAN).replace("}]", "},]")
ROWS: dict[str, Row] = {
    "none": Row(lambda r, m: None),
    # ways of asking that are refused
    "json_schema refused": Row(
        refuses(400, "This response_format type is unavailable now", lambda r: "response_format" in r.body),
        {"planner": 2}, structured="json_schema",
    ),
    "json_schema taken": Row(lambda r, m: None, structured="json_schema"),
    "forced tool_choice refused": Row(refuses(400, NO_FORCE, lambda r: r.forced), {"planner": 3}),
    "tool_choice only as a string": Row(
        refuses(422, "tool_choice: input should be a valid string", lambda r: isinstance(r.choice, dict)), {"planner": 2}
    ),
    "auto without a parser refused": Row(
        without_tools(refuses(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set; "required" is not supported', lambda r: bool(r.tools))),
        {"planner": 4, "worker": 1},
    ),
    "tools refused": Row(without_tools(refuses(400, NO_TOOLS, lambda r: bool(r.tools))), {"planner": 2, "worker": 1}),
    "tools refused by a 500": Row(
        without_tools(refuses(500, "tools param requires --jinja flag", lambda r: bool(r.tools))), {"planner": 2, "worker": 1}
    ),
    "references in schemas refused": Row(refuses(400, "cannot resolve $ref", lambda r: "$ref" in json.dumps(r.body.get("tools")))),
    "two user messages in a row refused": Row(
        lambda r, m: error(400, "Conversation roles must alternate user/assistant") if two_users_in_a_row(r) else once("planner", broken(""))(r, m),
        {"planner": 2},
    ),
    "an empty assistant message refused": Row(
        lambda r, m: error(400, "assistant content must not be empty") if has_empty_assistant(r) else once("planner", broken(""))(r, m),
        {"planner": 2},
    ),
    # calls
    "null call ids": Row(every_call(lambda c: c.update(id=None))),
    "empty call ids": Row(every_call(lambda c: c.update(id=""))),
    "one id for two calls": Row(same_id_twice),
    "every call twice": Row(twice),
    "empty arguments": Row(once("worker", lambda r, m: call("look", "")), {"worker": 4}),
    "null arguments": Row(once("worker", lambda r, m: call("look", "null")), {"worker": 4}),
    "a tool that does not exist": Row(once("worker", lambda r, m: call("search", {"query": "x"})), {"worker": 4}),
    "calls in <tool_call>": Row(as_text(lambda n, a: f'<tool_call>\n{{"name": "{n}", "arguments": {a}}}\n</tool_call>')),
    "calls in a fence": Row(as_text(lambda n, a: f'```json\n{{"name": "{n}", "arguments": {a}}}\n```')),
    "calls as <function=>": Row(as_text(lambda n, a: f"<function={n}>{a}</function>")),
    "calls with <parameter=>": Row(as_text(parameter)),
    "calls as text with text arguments": Row(as_text(lambda n, a: json.dumps({"function": {"name": n, "arguments": a}}))),
    "an answer wrapped in its name": Row(once("planner", broken(json.dumps({"Plan": PLAN})))),
    "lone surrogates in arguments": Row(once("worker", lambda r, m: call("look", '{"query": "\\ud800 \\u0000"}'))),
    # texts
    "thinking first": Row(once("planner", broken(f"<think>{{maybe}} so</think>{json.dumps(PLAN)}"))),
    "thinking first, its opening tag held back": Row(
        once("planner", broken(f'I could say {{"steps": 1}}.</think>{json.dumps(PLAN)}'))
    ),
    "a writer that thinks aloud": Row(
        once("writer", broken("<think>What shall I say?</think>```markdown\nIt is known [1].\n```")),
        says="It is known [1].\n\n##",
    ),
    "a writer that only thinks": Row(once("writer", broken("<think>What shall I")), says="a found [1]"),
    "a comma too many": Row(once("planner", broken(COMMAS))),
    "python's quotes": Row(once("planner", broken(str(PLAN)))),
    "reasoning without content": Row(once("planner", lambda r, m: {"content": None, "reasoning_content": "hm"}), {"planner": 2}),
    "a worker that only thinks, once": Row(once("worker", lambda r, m: {"content": None, "reasoning_content": "hm"}), {"worker": 4}),
    "content as blocks": Row(once("planner", lambda r, m: {"content": [{"type": "text", "text": json.dumps(PLAN)}]})),
    "fields that nobody knows": Row(lambda r, m: completion(m | {"annotations": [1], "audio": None}) | {"timings": {"x": 1}, "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12, "extra": {"y": 2}}}),
    "no usage": Row(lambda r, m: completion(m) | {"usage": None}),
    "no finish_reason": Row(lambda r, m: m | {"finish_reason": None}),
    "prose from the planner, once": Row(once("planner", broken("Certainly! I will plan that.")), {"planner": 2}),
    "prose from the planner": Row(
        always("planner", broken("Certainly!")), {"planner": 3} | NO_PLAN, "failed", "plan_invalid", says="there was no Plan"
    ),
    "prose from the reviewer": Row(always("reviewer", broken("Fine.")), {"reviewer": 3}, "partial", "review_unavailable"),
    "prose from the worker": Row(always("worker", broken("Done.")), {"worker": 2, "writer": 0}, "failed", "replan_limit", {"a": "schema"}),
    # cut
    "a cut call": Row(once("planner", half), {"planner": 2}),
    "always cut": Row(always("planner", half), {"planner": 3} | NO_PLAN, "failed", "plan_invalid", says="max_tokens"),
    "a cut call in a stream": Row(once("planner", half), {"planner": 2}, client={"streaming": True}),
    "a stream that stops half-way": Row(**streamed(half_stream), counts={"planner": 2}),
    "an empty stream": Row(**streamed(lambda r, m: Reply(body=b"", headers={"content-type": "text/event-stream"})), counts={"planner": 2}),
    "an error inside a stream": Row(
        **streamed(lambda r, m: Reply(body=b'data: {"error": {"message": "overloaded", "code": 503}}\n\n', headers={"content-type": "text/event-stream"})),
        counts={"planner": 2},
    ),
    "every stream stops half-way": Row(always("planner", half_stream), {"planner": 3} | NO_PLAN, **UNAVAILABLE, client={"streaming": True}),
    "everything streams": Row(lambda r, m: None, client={"streaming": True}),
    # faults that pass
    "429 with seconds": Row(once("planner", lambda r, m: error(429, "slow down", **{"retry-after": "1"})), {"planner": 2}, at_least_seconds=1),
    "429 with milliseconds": Row(once("planner", lambda r, m: error(429, "slow down", **{"retry-after-ms": "700"})), {"planner": 2}, at_least_seconds=0.7),
    "429 with a date": Row(once("planner", lambda r, m: error(429, "slow down", **{"retry-after": in_a_minute(2)})), {"planner": 2}, at_least_seconds=1),
    "429 for an hour": Row(always("planner", lambda r, m: error(429, "quota", **{"retry-after": "3600"})), NO_PLAN, **UNAVAILABLE),
    "429 in a 200": Row(once("planner", lambda r, m: Reply(body={"error": {"code": 429, "message": "busy"}, "choices": None})), {"planner": 2}),
    "429 for a worker": Row(once("worker", lambda r, m: error(429, "slow down")), {"worker": 4}),
    "500": Row(once("worker", lambda r, m: error(500, "oops")), {"worker": 4}),
    "500 always": Row(always("planner", lambda r, m: error(500, "oops")), {"planner": 3} | NO_PLAN, **UNAVAILABLE),
    "503 for the writer": Row(always("writer", lambda r, m: error(503, "oops")), {"writer": 3}),
    "a reset": Row(once("worker", lambda r, m: Reply(end="reset")), {"worker": 4}),
    "resets": Row(always("planner", lambda r, m: Reply(end="reset")), {"planner": 3} | NO_PLAN, **UNAVAILABLE),
    "half a body": Row(once("planner", lambda r, m: Reply(body=completion(m), end="half")), {"planner": 2}),
    "hangs": Row(always("planner", lambda r, m: Reply(end="hang")), {"planner": 3} | NO_PLAN, **UNAVAILABLE, client={"timeout": 0.4}),
    "hangs once": Row(once("worker", lambda r, m: Reply(end="hang")), {"worker": 4}, client={"timeout": 0.4}),
    # faults that do not
    "401": Row(always("planner", lambda r, m: error(401, "bad key sk-abcdef123456")), NO_PLAN, **UNAVAILABLE, says="401"),
    "403 for the worker": Row(always("worker", lambda r, m: error(403, "no")), {"worker": 1, "writer": 0}, "failed", "replan_limit", {"a": "auth"}),
    "404": Row(always("planner", lambda r, m: error(404, "model 'x' not found")), NO_PLAN, **UNAVAILABLE, says="not found"),
    "400": Row(always("planner", lambda r, m: error(400, "temperature is out of range")), NO_PLAN, **UNAVAILABLE, says="temperature"),
    "too long for the planner": Row(always("planner", lambda r, m: error(400, TOO_LONG)), NO_PLAN, **UNAVAILABLE, says="context length"),
    "too long for the worker": Row(always("worker", lambda r, m: error(400, TOO_LONG)), {"worker": 1, "writer": 0}, "failed", "replan_limit", {"a": "context_overflow"}),
    # bodies that are none
    "no JSON, once": Row(once("planner", lambda r, m: Reply(body=b'{"choices": [')), {"planner": 2}),
    "no JSON": Row(always("planner", lambda r, m: Reply(body=b"not json")), {"planner": 3} | NO_PLAN, "failed", "plan_invalid"),
    "a page": Row(once("planner", lambda r, m: Reply(body=b"<html>", headers={"content-type": "text/html"})), {"planner": 2}),
    "choices null": Row(once("worker", lambda r, m: completion(m) | {"choices": None}), {"worker": 4}),
    "choices empty": Row(once("planner", lambda r, m: completion(m) | {"choices": []}), {"planner": 2}),
    # refusals
    "a refusal": Row(always("planner", lambda r, m: {"refusal": "I cannot help."}), NO_PLAN, "failed", "model_refused", says="I cannot help."),
    "a refusal of the worker's": Row(always("worker", lambda r, m: {"refusal": "I cannot."}), {"worker": 1, "writer": 0}, "failed", "replan_limit", {"a": "refused"}),
    "a filter under json_schema": Row(
        always("planner", lambda r, m: {"content": "No.", "finish_reason": "content_filter"}), NO_PLAN, "failed", "model_refused", structured="json_schema"
    ),
    "cut under json_schema": Row(
        once("planner", lambda r, m: {"content": '{"goal": ', "finish_reason": "length"}), {"planner": 2}, structured="json_schema"
    ),
}  # fmt: skip

"""C01, C02, C04: what a model's server answers, through the real client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

from graph import build_graph
from tests.conftest import Look
from tests.fake_server import FakeServer, body, serving, tool_call
from tests.running import context, of
from tests.scripted import ScriptedModel, finding, look, models, plan, review, step

PLAN = {"goal": "the goal", "steps": [step("a")]}
JSON = json.dumps(PLAN, ensure_ascii=False)


def client(server: FakeServer) -> ChatOpenAI:
    return ChatOpenAI(
        base_url=server.base_url, api_key="sk-test-123456", model="fake", max_retries=0, max_tokens=100
    )


async def planned_by(server: FakeServer) -> tuple[dict[str, Any], ScriptedModel]:
    worker = ScriptedModel(by_step={"a": [look(), finding("a", "s1")]})
    roles = models(
        client(server), worker, ScriptedModel(always=review()), ScriptedModel(always=AIMessage("Yes [1]."))
    )
    graph = build_graph(roles, [Look().tool()])
    return await graph.ainvoke({"objective": "find it"}), worker


WRAPPED = {
    "tool call": tool_call("Plan", PLAN),
    "tool call of another name": tool_call("submit_plan", PLAN),
    "json": {"content": JSON},
    "fence": {"content": f"```json\n{JSON}\n```"},
    "bare fence": {"content": f"```\n{JSON}\n```"},
    "think": {"content": f'<think>{{x}} maybe {{"steps": 1}}</think>{JSON}'},
    "open think": {"content": f"{JSON}<think>was that {{right}}?"},
    "prose": {"content": f"Here is {{my}} plan:\n{JSON}\nI hope it helps {{you}}."},
    "indented": {"content": json.dumps(PLAN, indent=4)},
    "blocks": {"content": [{"type": "text", "text": JSON}]},
    "reasoning beside it": {"content": JSON, "reasoning_content": "hm {"},
    "thinking in a call": tool_call("Plan", PLAN) | {"content": "<think>{x}</think>"},
}


@pytest.mark.parametrize("form", WRAPPED)
async def test_c01_the_same_plan_comes_out_of_every_wrapping(form: str) -> None:
    with serving(WRAPPED[form]) as server:
        out, _ = await planned_by(server)
    assert out["status"] == "completed"
    assert out["plan"].steps[0].id == "a"
    assert out["plan"].goal == "the goal"
    assert len(server.requests) <= 2


UNUSABLE: dict[str, Any] = {
    "null with reasoning": {"content": None, "reasoning_content": "I think so"},
    "empty": {"content": ""},
    "null": {"content": None},
    "blank": {"content": " \n "},
    "call without arguments": tool_call("Plan", ""),
    "call of broken json": tool_call("Plan", '{"steps": ['),
    "call of a list": tool_call("Plan", "[1, 2]"),
    "call of null": tool_call("Plan", "null"),
    "no calls": {"content": None, "tool_calls": []},
    "null calls": {"content": None, "tool_calls": None},
    "choices null": {"choices": None},
    "choices empty": {"choices": []},
    "message null": {"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]},
    "an error in a 200": {"error": {"message": "overloaded"}, "choices": None},
    "not an object": (200, [1]),
    "html": (200, b"<html>busy</html>"),
    "null body": (200, None),
}


@pytest.mark.parametrize("form", UNUSABLE)
async def test_c02_nothing_usable_gets_the_bounded_re_asks_and_a_typed_end(form: str) -> None:
    with serving(UNUSABLE[form]) as server:
        out, worker = await planned_by(server)
    assert out["status"] == "failed"
    assert out["stop_reason"] in ("plan_invalid", "model_unavailable")
    assert 1 <= len(server.requests) <= 3
    assert worker.asked == []
    assert out["final_answer"]
    assert "Traceback" not in out["final_answer"]


# A body that is not the protocol's, or says itself that it is an error, may end the run at once.
NOT_ANSWERS = {"html", "not an object", "null body", "an error in a 200"}


@pytest.mark.parametrize("form", sorted(UNUSABLE.keys() - NOT_ANSWERS))
async def test_c02_one_unusable_answer_does_not_end_a_run(form: str) -> None:
    with serving(UNUSABLE[form], tool_call("Plan", PLAN)) as server:
        out, _ = await planned_by(server)
    assert out["status"] == "completed"
    assert out["usage"].model_calls >= 2


@pytest.mark.parametrize("where", ["worker", "reviewer", "writer"])
@pytest.mark.parametrize("form", ["null with reasoning", "choices null", "empty", "call of broken json"])
async def test_c02_no_role_crashes_the_run(where: str, form: str) -> None:
    with serving(UNUSABLE[form]) as server:
        roles: dict[str, Any] = {
            "planner": ScriptedModel(answers=[_plan_call()]),
            "worker": ScriptedModel(by_step={"a": [look(), finding("a", "s1")]}),
            "reviewer": ScriptedModel(always=review()),
            "writer": ScriptedModel(always=AIMessage("Yes [1].")),
        } | {where: client(server)}
        out = await build_graph(models(**roles), [Look().tool()]).ainvoke(
            {"objective": "find it"}, context=context(max_replans=0)
        )
    assert out["status"] == {"worker": "failed", "reviewer": "partial", "writer": "completed"}[where]
    assert len(server.requests) <= 4
    if where == "worker":
        assert of(out, "a").error_type == "schema"


def _plan_call() -> AIMessage:
    return plan(step("a"))


REFUSALS: dict[str, Any] = {
    "refusal field": {"content": None, "refusal": "I cannot help with that."},
    "content filter": {"content": "I cannot help with that.", "finish_reason": "content_filter"},
    "block": {"content": [{"type": "refusal", "refusal": "I cannot help with that."}]},
}


@pytest.mark.parametrize("form", REFUSALS)
async def test_c02_a_refusal_ends_the_run_at_once_and_is_quoted(form: str) -> None:
    with serving(REFUSALS[form]) as server:
        out, worker = await planned_by(server)
    assert (out["status"], out["stop_reason"]) == ("failed", "model_refused")
    assert "I cannot help with that." in out["final_answer"]
    assert len(server.requests) == 1
    assert worker.asked == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_c02_a_request_that_is_refused_as_such_is_not_sent_again(status: int) -> None:
    error = {"error": {"message": "wrong key sk-abcdef123456", "type": "invalid_request_error"}}
    with serving((status, error)) as server:
        out, _ = await planned_by(server)
    assert (out["status"], out["stop_reason"]) == ("failed", "model_unavailable")
    assert len(server.requests) == 1
    assert "sk-abcdef123456" not in out["final_answer"]
    assert str(status) in out["final_answer"]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_c02_a_passing_fault_of_the_server_is_waited_out(status: int) -> None:
    with serving((status, {"error": {"message": "busy"}}), tool_call("Plan", PLAN)) as server:
        out, _ = await planned_by(server)
    assert out["status"] == "completed"
    assert len(server.requests) == 2


HALF = JSON[: len(JSON) // 2]


@pytest.mark.parametrize(
    "cut",
    [
        {"content": HALF, "finish_reason": "length"},
        tool_call("Plan", HALF) | {"finish_reason": "length"},
        {"content": "<think>" + "so " * 50, "finish_reason": "length"},
        {"content": "", "finish_reason": "length"},
    ],
    ids=["text", "call", "thinking", "empty"],
)
async def test_c04_a_cut_answer_names_truncation_and_is_not_simply_sent_again(cut: dict[str, Any]) -> None:
    with serving(cut) as server:
        out, _ = await planned_by(server)
    assert (out["status"], out["stop_reason"]) == ("failed", "plan_invalid")
    assert "token limit" in out["final_answer"]
    assert "max_tokens" in out["final_answer"]
    sent = [json.dumps(request["messages"]) for request in server.requests]
    assert len(sent) == len(set(sent)) <= 3
    assert "token limit" in sent[1]


async def test_c04_a_shorter_answer_after_a_cut_one_counts() -> None:
    with serving({"content": HALF, "finish_reason": "length"}, tool_call("Plan", PLAN)) as server:
        out, _ = await planned_by(server)
    assert out["status"] == "completed"


async def test_c01_tokens_that_the_server_reports_add_up() -> None:
    with serving(body(tool_call("Plan", PLAN))) as server:
        out, _ = await planned_by(server)
    assert (out["usage"].input_tokens, out["usage"].output_tokens) == (7, 5)


async def test_c01_a_worker_over_the_wire_answers_every_call_it_made() -> None:
    arguments = {
        "summary": "a found",
        "source_ids": ["s1"],
        "criteria": [{"criterion": "a is known", "met": True}],
    }
    with serving(tool_call("look", {"query": "q"}), tool_call("Finding", arguments)) as server:
        roles = models(
            ScriptedModel(answers=[_plan_call()]), client(server), ScriptedModel(always=review()), ScriptedModel(always=AIMessage("Yes [1]."))
        )  # fmt: skip
        out = await build_graph(roles, [Look().tool()]).ainvoke({"objective": "find it"})
    assert of(out, "a").passed
    second = server.requests[1]["messages"]
    assert [m["tool_call_id"] for m in second if m["role"] == "tool"] == ["call_1"]

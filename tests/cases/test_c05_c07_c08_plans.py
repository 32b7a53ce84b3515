"""C05, C07, C08: plans that break the rules, and plans that are large."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from tests.conftest import Look
from tests.running import Bench, bench
from tests.scripted import ScriptedModel, call, calls, finding, look, plan, review, step


def raw_plan(**fields: Any) -> AIMessage:
    return calls(call("Plan", "p1", **({"goal": "g", "steps": [step("a")]} | fields)))


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in step("a").items() if k != key}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "steps as text": ({"steps": json.dumps([step("a")])}, "steps"),
    "steps as a mapping": ({"steps": {"a": step("a")}}, "steps"),
    "steps null": ({"steps": None}, "steps"),
    "no steps": ({"steps": []}, "steps"),
    "budget 50": ({"steps": [step("a", tool_budget=50)]}, "steps.0.tool_budget"),
    "budget as text": ({"steps": [step("a", tool_budget="3")]}, "steps.0.tool_budget"),
    "budget -1": ({"steps": [step("a", tool_budget=-1)]}, "steps.0.tool_budget"),
    "budget 2.5": ({"steps": [step("a", tool_budget=2.5)]}, "steps.0.tool_budget"),
    "budget true": ({"steps": [step("a", tool_budget=True)]}, "steps.0.tool_budget"),
    "no task": ({"steps": [without("task")]}, "steps.0.task"),
    "blank task": ({"steps": [step("a", task="  ")]}, "steps.0.task"),
    "long task": ({"steps": [step("a", task="x" * 2001)]}, "steps.0.task"),
    "no criteria": ({"steps": [step("a", success_criteria=[])]}, "steps.0.success_criteria"),
    "blank criterion": ({"steps": [step("a", success_criteria=["ok", " "])]}, "steps.0.success_criteria.1"),
    "blank id": ({"steps": [step("")]}, "steps.0.id"),
    "id of spaces": ({"steps": [step("  ")]}, "steps.0.id"),
    "id with a slash": ({"steps": [step("a/b")]}, "steps.0.id"),
    "id with a line end": ({"steps": [step("a\n")]}, "steps.0.id"),
    "long id": ({"steps": [step("a" * 65)]}, "steps.0.id"),
    "number as id": ({"steps": [without("id") | {"id": 1}]}, "steps.0.id"),
    "timeout 0": ({"steps": [step("a", timeout_seconds=0)]}, "steps.0.timeout_seconds"),
    "timeout -1": ({"steps": [step("a", timeout_seconds=-1)]}, "steps.0.timeout_seconds"),
    "timeout 1e9": ({"steps": [step("a", timeout_seconds=1e9)]}, "steps.0.timeout_seconds"),
    "timeout nan": ({"steps": [step("a", timeout_seconds=float("nan"))]}, "steps.0.timeout_seconds"),
    "timeout as text": ({"steps": [step("a", timeout_seconds="90")]}, "steps.0.timeout_seconds"),
    "unknown field": ({"steps": [step("a", passed=True)]}, "steps.0.passed"),
    "unknown tool": ({"steps": [step("a", tools=["ghost"])]}, "ghost"),
    "unknown check": ({"steps": [step("a", checks=[{"type": "shell", "cmd": "rm"}])]}, "steps.0.checks.0"),
    "optional as text": ({"steps": [step("a", optional="yes")]}, "steps.0.optional"),
    "a step that is text": ({"steps": ["look it up"]}, "steps.0"),
    "a fingerprint of its own": ({"fingerprint": "abc"}, "fingerprint"),
    "created by a human": ({"created_by": "human"}, "created_by"),
}


def planned(*answers: Any, **build: Any) -> Bench:
    worker = ScriptedModel(by_step={"a": [look(), finding("a", "s1")]})
    return bench(planner=answers, worker=worker, tools=[Look().tool()], **build)


@pytest.mark.parametrize("name", BAD)
async def test_c05_a_bad_plan_is_asked_for_again_with_the_fields_path(name: str) -> None:
    fields, path = BAD[name]
    b = planned(raw_plan(**fields), raw_plan(**fields), plan(step("a")))
    out = await b.run()
    assert out["status"] == "completed"
    for asked in b.planner.asked[1:]:
        assert path in asked.messages[-1].text
    assert out["plan"].steps[0].tool_budget == 4  # the valid plan as it was given


@pytest.mark.parametrize("name", BAD)
async def test_c05_a_plan_that_is_never_valid_fails_and_nothing_runs(name: str) -> None:
    fields, path = BAD[name]
    b = planned(*[raw_plan(**fields)] * 3)
    out = await b.run()
    assert (out["status"], out["stop_reason"], out["plan"]) == ("failed", "plan_invalid", None)
    assert (b.worker.asked, out["evidence"]) == ([], [])
    assert len(b.planner.asked) == 3
    assert path in out["final_answer"]


async def test_c05_every_problem_is_named_at_once() -> None:
    b = planned(
        raw_plan(steps=[step("a", tool_budget=50), step("b", "b", timeout_seconds=0), step("c", "ghost")])
    )
    b.planner.answers.append(plan(step("a")))
    await b.run()
    problems = b.planner.asked[1].messages[-1].text
    for word in ("steps.0.tool_budget", "steps.1.timeout_seconds", "'b' depends on itself", "'ghost'"):
        assert word in problems


BAD_GRAPHS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "two in a circle": ([step("a", "b"), step("b", "a")], ["'a'", "'b'"]),
    "three in a circle": ([step("a", "c"), step("b", "a"), step("c", "b"), step("d")], ["'a'", "'b'", "'c'"]),
    "itself": ([step("a", "a")], ["'a'"]),
    "a ghost": ([step("a", "ghost")], ["'a'", "'ghost'"]),
    "two a": ([step("a"), step("a")], ["'a'"]),
    "a and ' A '": ([step("a"), step(" A ")], ["'a'", "' A '"]),
    "a and A": ([step("a"), step("A")], ["'a'", "'A'"]),
    "everything at once": (
        [step("a", "b"), step("b", "a"), step("c", "c"), step("d", "ghost"), step("D")],
        ["'a'", "'b'", "'c'", "'ghost'", "'D'"],
    ),
}


@pytest.mark.parametrize("name", BAD_GRAPHS)
async def test_c07_a_bad_graph_from_the_planner_is_named_before_any_worker(name: str) -> None:
    steps, ids = BAD_GRAPHS[name]
    b = planned(*[plan(*steps)] * 3)
    out = await b.run()
    assert out["stop_reason"] == "plan_invalid"
    assert b.worker.asked == []
    for step_id in ids:
        assert step_id in b.planner.asked[1].messages[-1].text
        assert step_id in out["final_answer"]


@pytest.mark.parametrize("name", BAD_GRAPHS)
async def test_c07_a_bad_graph_from_the_replanner_is_named_and_nothing_of_it_runs(name: str) -> None:
    steps, ids = BAD_GRAPHS[name]
    renamed = json.loads(json.dumps(steps).replace("do a", "task a"))
    b = planned(plan(step("first")), *[plan(*renamed)] * 3)
    b.worker.by_step = {"first": [finding("first", met=False)]}
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("failed", "plan_invalid")
    assert {e.step_id for e in out["evidence"]} == {"first"}
    for step_id in ids:
        assert step_id in b.planner.asked[2].messages[-1].text


@pytest.mark.parametrize("name", BAD_GRAPHS)
async def test_c07_a_bad_graph_from_a_persons_edit_asks_again_and_runs_nothing(name: str) -> None:
    steps, ids = BAD_GRAPHS[name]
    b = planned(plan(step("a")))
    await b.run(review_plan="always")
    again = await b.go_on(Command(resume={"decision": "edit", "plan": {"goal": "g", "steps": steps}}))
    question = again["__interrupt__"][0].value
    for step_id in ids:
        assert step_id in question["error"]
    assert b.worker.asked == []
    out = await b.go_on(Command(resume={"decision": "approve"}))
    assert out["status"] == "completed"


async def test_c08_a_hundred_steps_are_over_a_stated_cap() -> None:
    b = planned(*[plan(*(step(f"s{n}") for n in range(100)))] * 3)
    out = await b.run()
    assert out["stop_reason"] == "plan_invalid"
    assert "20" in b.planner.asked[1].messages[-1].text


async def test_c08_a_smaller_cap_of_the_run_is_stated_to_the_planner_and_kept() -> None:
    b = planned(plan(*(step(f"s{n}") for n in range(4))), plan(step("a")))
    out = await b.run(max_plan_steps=3)
    assert b.planner.asked[0].brief["limits"]["max_steps"] == 3
    assert "at most 3" in b.planner.asked[1].messages[-1].text
    assert out["status"] == "completed"


async def test_c08_twenty_steps_at_once_and_a_chain_of_twenty_complete() -> None:
    ids = [f"s{n}" for n in range(20)]
    for needs in ([[] for _ in ids], [[], *([i] for i in ids[:-1])]):
        work = {i: [look(), finding(i, "s1")] for i in ids}
        steps = [step(i, *need, tool_budget=1) for i, need in zip(ids, needs, strict=True)]
        out = await bench(*steps, work=work, tools=[Look().tool()]).run()
        assert out["status"] == "completed"
        assert [e.step_id for e in out["evidence"]] == ids


@pytest.mark.parametrize("role", ["worker", "reviewer", "replanner"])
async def test_c08_a_model_that_never_stops_ends_on_a_product_limit(role: str) -> None:
    count = [0]

    def fresh(asked: Any) -> AIMessage:
        count[0] += 1
        return plan(step(f"s{count[0]}", task=f"try {count[0]}"))

    def search(asked: Any) -> AIMessage:
        return look(f"c{len(asked.messages)}", query=f"q{len(asked.messages)}")

    b = bench(planner=[], tools=[Look().tool()], reviewer=[])
    b.planner.always = fresh
    b.worker.always = (
        search if role == "worker" else (lambda asked: finding(asked.brief["step"]["id"], met=False))
    )
    b.reviewer.always = (
        review(False, {"description": "more"}) if role != "reviewer" else AIMessage("more, more")
    )
    out = await b.run(max_replans=8, total_tool_budget=10_000)
    assert out["status"] == "failed"
    assert out["stop_reason"] in (
        "replan_limit",
        "review_unavailable",
        "attempted_steps",
        "tool_budget",
        "no_progress",
    )
    assert out["usage"].model_calls < 400

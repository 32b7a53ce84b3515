"""Invariant 9: every loop has a bound, and no run ends by a recursion limit."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.conftest import Look
from tests.running import bench, config, context, of
from tests.scripted import ScriptedModel, call, calls, finding, look, plan, step


async def test_invariant_09_a_worker_that_repeats_itself_is_stopped_after_three_rounds() -> None:
    tool = Look()

    def again(asked: Any) -> AIMessage:
        if asked.tools == ["Finding"]:
            return finding("a", "s1")
        return calls(call("look", f"c{len(asked.messages)}", query="same"))

    b = bench(step("a", tool_budget=10), worker=ScriptedModel(always=again), tools=[tool.tool()])
    out = await b.run()
    assert len(b.worker.asked) == 4
    assert of(out, "a").source_ids == ["s1"]
    assert len(tool.runs) <= 3


async def test_invariant_09_a_worker_that_never_concludes_ends_by_a_product_limit() -> None:
    endless = ScriptedModel(always=lambda asked: calls(call("ghost", f"g{len(asked.messages)}", x=1)))
    out = await bench(step("a"), worker=endless, tools=[Look().tool()]).run()
    assert len(endless.asked) <= 16
    assert of(out, "a").error_type in ("no_progress", "model_limit")
    assert (out["status"], out["usage"].tool_calls) == ("failed", 0)


async def test_invariant_09_the_number_of_started_steps_is_bound_over_all_versions() -> None:
    fail = ScriptedModel(always=lambda asked: finding(asked.brief["step"]["id"], met=False))
    replies = [plan(step("a"), step("b"), step("c")), plan(step("a2"), step("b2")), plan(step("a3"))]
    b = bench(worker=fail, planner=replies, tools=[Look().tool()])
    out = await b.run(max_attempted_steps=4, max_replans=10)
    started = [e.step_id for e in out["evidence"] if e.model_calls]
    assert started == ["a", "b", "c", "a2"]
    assert out["stop_reason"] == "attempted_steps"
    assert of(out, "b2").error_type == "model_limit"


async def test_invariant_09_steps_that_wait_for_a_place_have_less_time_left() -> None:
    seconds = [0.0]
    tool = Look()

    def spend(query: str) -> None:
        seconds[0] += 80

    tool.before = spend
    b = bench(
        step("a"),
        step("b"),
        work={i: [look(), finding(i, "s1")] for i in "ab"},
        tools=[tool.tool()],
        parts={"clock": lambda: seconds[0]},
    )
    started: list[float] = []
    async for event in b.graph.astream(
        {"objective": "x"},
        config(),
        context=context(deadline_seconds=100, max_parallel_steps=1),
        stream_mode="custom",
    ):
        if event["type"] == "step_started":
            started.append(event["timeout_seconds"])
    assert started == [90, 20]


async def test_invariant_09_a_run_ends_at_its_deadline_with_what_it_has() -> None:
    now = [0.0]
    tool = Look()
    b = bench(
        step("a"),
        step("b", "a"),
        work={"a": [look(), finding("a", "s1")]},
        tools=[tool.tool()],
        parts={"now": lambda: at(now[0]), "clock": lambda: now[0]},
    )
    tool.before = lambda query: now.__setitem__(0, 1000.0)
    out = await b.run(deadline_seconds=500)
    assert of(out, "a").passed
    assert of(out, "b").error_type == "deadline"
    assert (out["status"], out["stop_reason"]) == ("partial", "deadline")


def at(seconds: float) -> datetime:
    return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize("which", ["verify_step", "verify_goal"])
async def test_invariant_09_a_verifier_that_never_ends_does_not_hold_the_run(which: str) -> None:
    async def never(*args: Any) -> bool:
        await asyncio.Event().wait()
        return True

    work = {"a": [look(), finding("a", "s1")]}
    b = bench(step("a"), work=work, tools=[Look().tool()], **{which: never})
    out = await b.run(deadline_seconds=1)
    assert out["status"] in ("failed", "partial")
    assert which in out["final_answer"]


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({}, 90.0),
        ({"step_timeout_floor": 300}, 300.0),
        ({"step_timeout_floor": 30}, 90.0),
        ({"step_timeout_floor": 300, "step_timeout_cap": 60}, 60.0),
        ({"step_timeout_floor": 300, "deadline_seconds": 50}, 50.0),
    ],
)
async def test_a_floor_gives_slow_models_more_time_for_a_step(limits: dict[str, Any], seconds: float) -> None:
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()])
    told = [
        part["timeout_seconds"]
        async for part in b.graph.astream(
            {"objective": "find it"}, config(), context=context(**limits), stream_mode="custom"
        )
        if part["type"] == "step_started"
    ]
    assert told == [pytest.approx(seconds, abs=2)]

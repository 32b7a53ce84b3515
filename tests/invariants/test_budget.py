"""Invariants 5, 6, 9: what a step and a run may spend, and that what was gathered is kept."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import ScriptedModel, call, calls, finding, look, step


def searches(*call_ids: str, tool: str = "look") -> AIMessage:
    return calls(*(call(tool, i, query=f"q{i}") for i in call_ids))


@pytest.mark.parametrize(("budget", "asked"), [(1, 3), (2, 3), (3, 3), (1, 1), (4, 10)])
async def test_invariant_05_parallel_calls_in_one_message_never_exceed_the_step_budget(
    budget: int, asked: int
) -> None:
    tool = Look()
    ids = [f"c{n}" for n in range(asked)]
    b = bench(
        step("a", tool_budget=budget), work={"a": [searches(*ids), finding("a", "s1")]}, tools=[tool.tool()]
    )
    out = await b.run()
    assert len(tool.runs) == min(budget, asked)
    assert of(out, "a").tool_calls == out["usage"].tool_calls == len(tool.runs)
    replies = [m.tool_call_id for m in b.worker.asked[-1].messages if isinstance(m, ToolMessage)]
    assert sorted(replies) == sorted(ids)


async def test_invariant_05_every_retry_counts_and_none_runs_past_the_budget() -> None:
    tool = Look(idempotent=True)
    tool.before = lambda query: (_ for _ in ()).throw(ConnectionError("down"))
    b = bench(step("a", tool_budget=2), work={"a": [look(), finding("a", met=False)]}, tools=[tool.tool()])
    out = await b.run()
    assert len(tool.runs) == of(out, "a").tool_calls == 2


async def test_invariant_05_calls_over_several_messages_share_one_budget() -> None:
    tool = Look()
    work = [searches("1"), searches("2"), searches("3"), searches("4"), finding("a", "s1")]
    b = bench(step("a", tool_budget=2), work={"a": work}, tools=[tool.tool()])
    out = await b.run()
    assert len(tool.runs) == 2
    assert of(out, "a").error_type == "tool_budget"


async def test_invariant_05_the_structured_answer_and_impossible_calls_cost_nothing() -> None:
    tool = Look()
    wrong = calls(call("look", "w1", nonsense=1), call("ghost", "w2", x=1))
    b = bench(step("a", tool_budget=1), work={"a": [wrong, look(), finding("a", "s1")]}, tools=[tool.tool()])
    out = await b.run()
    assert of(out, "a").passed
    assert out["usage"].tool_calls == len(tool.runs) == 1


async def test_invariant_05_tools_are_taken_away_once_they_are_spent() -> None:
    b = bench(step("a", tool_budget=1), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()])
    await b.run()
    assert "look" in b.worker.asked[0].tools
    assert b.worker.asked[1].tools == ["Finding"]


@pytest.mark.parametrize("total", [0, 1, 3, 5, 7])
async def test_invariant_05_parallel_steps_reserve_from_the_run_budget_and_give_back(total: int) -> None:
    tool = Look()
    ids = ["a", "b", "c"]
    greedy = {i: [searches("1", "2", "3"), finding(i, "s1")] for i in ids}
    b = bench(*(step(i, tool_budget=3) for i in ids), work=greedy, tools=[tool.tool()], reviewer=[])
    b.reviewer.always = AIMessage('{"approved": false, "gaps": []}')
    out = await b.run(total_tool_budget=total, max_replans=0)
    assert len(tool.runs) == out["usage"].tool_calls == sum(e.tool_calls for e in out["evidence"])
    assert len(tool.runs) == min(total, 9)
    assert {e.step_id for e in out["evidence"]} == set(ids)


async def test_invariant_05_what_a_step_leaves_is_given_to_the_next() -> None:
    tool = Look()
    work = {"a": [look(), finding("a", "s1")], "b": [searches("1", "2", "3"), finding("b", "s1")]}
    steps = (step("a", tool_budget=4), step("b", "a", tool_budget=4))
    out = await bench(*steps, work=work, tools=[tool.tool()]).run(total_tool_budget=4)
    assert [of(out, i).tool_calls for i in "ab"] == [1, 3]


async def test_invariant_05_a_budget_binds_across_a_resume() -> None:
    tool, gate = Look(), asyncio.Event()

    async def hang(query: str) -> None:
        if query == "q2" and not gate.is_set():
            gate.set()
            await asyncio.Event().wait()

    tool.before = hang
    b = bench(step("a", tool_budget=3), tools=[tool.tool()])
    b.worker.by_step = {"a": [searches("1"), searches("2"), searches("3", "4", "5"), finding("a", "s1")]}
    run = asyncio.ensure_future(b.run())
    await gate.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    out = await b.go_on()
    # q1 is not repeated; q2 was cut off, reads only, and is run again, which counts.
    assert tool.runs == ["q1", "q2", "q2"]
    assert of(out, "a").tool_calls == 3
    assert of(out, "a").passed


async def test_invariant_05_an_approved_write_counts_and_a_rejected_one_does_not() -> None:
    tool = Look("send", permission="write")
    work = {"a": [look(tool="send"), look("c2", "q2", tool="send"), finding("a", "s1")]}
    b = bench(step("a", tools=["send"], tool_budget=1), work=work, tools=[tool.tool()])
    await b.run()
    await b.go_on(Command(resume={"decision": "reject"}))
    out = await b.go_on(Command(resume={"decision": "approve"}))
    assert tool.runs == ["q2"]
    assert of(out, "a").tool_calls == 1


async def test_invariant_06_at_the_tool_budget_the_worker_concludes_without_tools() -> None:
    work = {"a": [searches("1", "2"), finding("a", "s1", missing=["the rest"])]}
    b = bench(step("a", tool_budget=1), work=work, tools=[Look().tool()])
    out = await b.run()
    evidence = of(out, "a")
    assert (evidence.summary, evidence.source_ids) == ("a found", ["s1"])
    assert evidence.error_type == "tool_budget"
    assert "the rest" in evidence.missing
    assert any("q2" in line for line in evidence.missing)


async def test_invariant_06_after_a_timeout_the_evidence_holds_the_recorded_sources() -> None:
    tool = Look()

    def never(asked: Any) -> AIMessage:
        raise AssertionError("the second search does not return")

    async def hang_second(query: str) -> None:
        if query == "q2":
            await asyncio.Event().wait()

    tool.before = hang_second
    b = bench(step("a"), work={"a": [searches("1"), searches("2"), never]}, tools=[tool.tool()])
    out = await b.run(step_timeout_cap=0.5)
    evidence = of(out, "a")
    assert evidence.error_type == "timeout"
    assert evidence.source_ids == ["s1"]
    assert "text about q1" in evidence.summary
    assert [s.id for s in out["sources"]] == ["s1"]
    assert out["status"] == "failed"


async def test_invariant_06_a_worker_that_fails_after_its_search_keeps_what_it_found() -> None:
    work = {"a": [look(), ValueError("the model broke")]}
    out = await bench(step("a"), work=work, tools=[Look().tool()]).run()
    assert of(out, "a").source_ids == ["s1"]
    assert of(out, "a").error_type == "model"


async def test_invariant_06_at_the_model_call_limit_the_last_call_has_no_tools() -> None:
    answers = [searches(str(n)) for n in range(3)] + [finding("a", "s1")]
    b = bench(step("a", tool_budget=10), work={"a": answers}, tools=[Look().tool()])
    out = await b.run(max_model_calls_per_step=4)
    assert b.worker.asked[-1].tools == ["Finding"]
    assert of(out, "a").passed
    assert of(out, "a").model_calls == 4


async def test_invariant_06_a_step_over_its_model_calls_ends_with_what_it_has() -> None:
    worker = ScriptedModel(always=lambda asked: searches(f"n{len(asked.messages)}"))
    b = bench(step("a", tool_budget=10), worker=worker, tools=[Look().tool()])
    out = await b.run(max_model_calls_per_step=4)
    evidence = of(out, "a")
    assert len(b.worker.asked) == 4
    assert evidence.error_type == "model_limit"
    assert evidence.source_ids == ["s1"]


async def test_invariant_06_a_sync_tool_that_blocks_does_not_hold_up_its_sibling() -> None:
    free = threading.Event()

    def block(query: str) -> str:
        """Block until the test frees it."""
        free.wait(20)
        return "late"

    slow = StructuredTool.from_function(block, name="block")
    work = {"a": [look(tool="block")], "b": [look(), finding("b", "s1")]}
    b = bench(step("a"), step("b"), work=work, tools=[slow, Look().tool()])
    try:
        out = await b.run(step_timeout_cap=0.5)
    finally:
        free.set()
    assert of(out, "a").error_type == "timeout"
    assert of(out, "a").source_ids == []
    assert of(out, "b").passed

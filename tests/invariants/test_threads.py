"""Invariants 14 and 16: one run at a time on a thread, and checkpoints that stay readable and small."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from schemas.errors import InputError, NothingToResume, ThreadBusy
from schemas.evidence import Evidence, Review, Source, Usage
from schemas.plan import Plan
from tests.conftest import Look
from tests.running import Bench, bench, config
from tests.scripted import finding, look, plan, step

ROOT = Path(__file__).parents[2]


def two_runs(**build: Any) -> Bench:
    b = bench(planner=[plan(step("a")), plan(step("a"))], tools=[Look().tool()], **build)
    b.worker.by_step = {"a": [look(), finding("a", "s1"), look(), finding("a", "s1", summary="second")]}
    return b


async def test_invariant_14_a_new_objective_on_the_thread_starts_clean() -> None:
    b = two_runs()
    first = await b.run("first", max_replans=3, total_tool_budget=9)
    second = await b.run("second")
    assert [e.summary for e in second["evidence"]] == ["second"]
    assert len(second["sources"]) == 1
    assert second["usage"].tool_calls == first["usage"].tool_calls == 1
    state = await b.values()
    assert len(state["plans"]) == 1
    assert state["limits"].total_tool_budget == 32
    assert [m.text for m in second["messages"] if isinstance(m, HumanMessage)] == ["first", "second"]
    assert sum(isinstance(m, AIMessage) for m in second["messages"]) == 2


async def test_invariant_14_a_new_objective_replaces_a_run_that_waits_for_a_person() -> None:
    b = two_runs()
    await b.run("first", review_plan="always")
    out = await b.run("second", review_plan="never")
    assert out["status"] == "completed"
    with pytest.raises(NothingToResume):
        await b.go_on(Command(resume={"decision": "approve"}))


async def test_invariant_14_a_new_objective_replaces_a_run_that_was_stopped() -> None:
    b = two_runs()
    tool_reached = asyncio.Event()
    held = Look()

    async def hang(query: str) -> None:
        if not tool_reached.is_set():
            tool_reached.set()
            await asyncio.Event().wait()

    held.before = hang
    b = bench(planner=[plan(step("a")), plan(step("b"))], tools=[held.tool()])
    b.worker.by_step = {"a": [look()], "b": [look(), finding("b", "s1")]}
    run = asyncio.ensure_future(b.run("first"))
    await tool_reached.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    out = await b.run("second")
    assert [e.step_id for e in out["evidence"]] == ["b"]
    assert out["usage"].tool_calls == 1


async def test_invariant_14_two_runs_at_once_are_refused_and_the_first_goes_on() -> None:
    reached, free = asyncio.Event(), asyncio.Event()

    async def hold(query: str) -> None:
        reached.set()
        await free.wait()

    tool = Look()
    tool.before = hold
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[tool.tool()])
    first = asyncio.ensure_future(b.run("first"))
    await reached.wait()
    asked = len(b.planner.asked)
    for again in (b.run("second"), b.go_on(), b.go_on(Command(resume={"decision": "approve"}))):
        with pytest.raises(ThreadBusy):
            await again
    assert len(b.planner.asked) == asked
    free.set()
    assert (await first)["status"] == "completed"


async def test_invariant_14_the_lock_is_free_again_after_an_error_a_stop_and_an_early_close() -> None:
    b = two_runs()
    with pytest.raises(InputError):
        await b.run("   ")
    stream = b.graph.astream({"objective": "first"}, config(), stream_mode="custom")
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    out = await b.go_on()
    assert out["status"] == "completed"


@pytest.mark.parametrize(
    "value", [None, Command(resume={"decision": "approve"}), Command(resume={}), Command(resume=None)]
)
async def test_invariant_14_a_resume_of_nothing_is_an_error_before_any_model(value: Any) -> None:
    b = two_runs()
    with pytest.raises(NothingToResume):
        await b.go_on(value, thread="never-seen")
    await b.run("first")
    asked = [len(r.asked) for r in (b.planner, b.worker, b.reviewer, b.writer)]
    with pytest.raises(NothingToResume):
        await b.go_on(value)
    assert [len(r.asked) for r in (b.planner, b.worker, b.reviewer, b.writer)] == asked


@pytest.mark.parametrize("value", [Command(resume={"0" * 32: {"decision": "approve"}})])
async def test_invariant_14_an_answer_to_a_question_that_is_not_open_is_an_error(value: Any) -> None:
    b = two_runs()
    await b.run("first", review_plan="always")
    with pytest.raises(NothingToResume):
        await b.go_on(value)
    assert (await b.go_on(Command(resume={"decision": "approve"})))["status"] == "completed"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"objective": ""},
        {"objective": " \n"},
        {"objective": None},
        {"objective": 3},
        {"objective": ["x"]},
        {"messages": []},
        {"messages": [AIMessage("x")]},
    ],
)
async def test_invariant_14_an_unusable_objective_leaves_the_thread_as_it_was(given: dict[str, Any]) -> None:
    b = two_runs()
    await b.run("first")
    before = await b.values()
    with pytest.raises(InputError):
        await b.graph.ainvoke(given, config())
    assert await b.values() == before


async def test_invariant_14_messages_of_a_chat_front_end_carry_the_objective() -> None:
    b = two_runs()
    out = await b.graph.ainvoke(
        {
            "messages": [
                {"role": "user", "content": "old"},
                {"role": "assistant", "content": "x"},
                {"role": "user", "content": "查找价格"},
            ]
        },
        config(),
    )
    assert b.planner.asked[0].brief["objective"] == "查找价格"
    assert out["messages"][-1].text == out["final_answer"]


async def test_invariant_14_two_threads_run_side_by_side() -> None:
    work = {i: [look(), finding(i, "s1")] for i in "ab"}
    b = bench(planner=[plan(step("a")), plan(step("b"))], work=work, tools=[Look().tool()])
    outs = await asyncio.gather(b.run("one", "t1"), b.run("two", "t2"))
    assert [o["status"] for o in outs] == ["completed", "completed"]


SCRIPT = """
import asyncio, sys, warnings
warnings.simplefilter("error")
sys.path.insert(0, {root!r})
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from tests.conftest import Look
from tests.running import bench, config, context
from tests.scripted import finding, look, step

async def main():
    async with AsyncSqliteSaver.from_conn_string({db!r}) as saver:
        work = {{"a": [look(), finding("a", "s1")]}}
        b = bench(step("a"), work=work, tools=[Look().tool()], checkpointer=saver)
        if {first}:
            await b.run("查找", review_plan="always")
        else:
            out = await b.go_on(Command(resume={{"decision": "approve"}}))
            kinds = [type(out[k]).__name__ for k in ("plan", "review", "usage")] + [type(e).__name__ for e in out["evidence"]]
            print(out["status"], *kinds, out["plan"].fingerprint)
asyncio.run(main())
"""


@pytest.mark.parametrize("strict", ["true", "false"])
def test_invariant_16_a_new_process_reads_the_checkpoint_without_warnings(
    strict: str, tmp_path: Path
) -> None:
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": strict}
    done = []
    for first in (True, False):
        text = SCRIPT.format(root=str(ROOT), db=str(tmp_path / "db.sqlite"), first=first)
        done.append(
            subprocess.run(
                [sys.executable, "-c", text], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60
            )
        )
    assert [d.returncode for d in done] == [0, 0], done[-1].stderr
    assert [d.stderr for d in done] == ["", ""]
    assert done[1].stdout.split()[:5] == ["completed", "Plan", "Review", "Usage", "Evidence"]


async def test_invariant_16_state_comes_back_as_our_classes(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as saver:
        b = two_runs(checkpointer=saver)
        await b.run("first")
        values = await b.values()
    assert isinstance(values["plan"], Plan)
    assert all(isinstance(p, Plan) for p in values["plans"])
    assert isinstance(values["review"], Review)
    assert isinstance(values["usage"], Usage)
    assert {type(e) for e in values["evidence"]} == {Evidence}
    assert {type(s) for s in values["sources"]} == {Source}


async def test_invariant_16_large_results_are_stored_once_and_not_in_the_checkpoints() -> None:
    saver = InMemorySaver()
    tool = Look()
    tool.before = lambda query: [{"source_id": query, "text": f"{query} " + "定价" * 500_000}]
    work = {i: [look(query=i), finding(i, i)] for i in "abc"}
    b = bench(*(step(i) for i in "abc"), work=work, tools=[tool.tool()], checkpointer=saver)
    out = await b.run()
    assert out["status"] == "completed"
    kept = len(repr(saver.blobs)) + len(repr(saver.writes)) + len(repr(saver.storage))
    assert kept < 2_000_000, "three results of 1 M characters each stay outside"
    values = await b.values()
    assert len(repr(values)) < 50_000
    for source in out["sources"]:
        assert len(await b.graph.parts.artifacts.get(source.artifact)) > 1_000_000

"""Invariant 14: one run per thread at a time, clean starts, and nothing resumed that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from langgraph.types import Command

from graph import open_graph
from graph.locks import ThreadLocks
from graph.persistence import Kept
from graph.threads import TaskGraph
from schemas.errors import InputError, NothingToResume, ThreadBusy
from tests.backends import Backend, built_on
from tests.conftest import Look
from tests.running import Bench, bench, config
from tests.scripted import ScriptedModel, finding, look, models, plan, review, step


class Held(Look):
    """A tool whose body waits until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.running = asyncio.Event()
        self.release = asyncio.Event()
        self.before = self._hold

    async def _hold(self, query: str) -> None:
        self.running.set()
        await self.release.wait()


def one_step(tool: Look, runs: int = 1, **build: Any) -> Bench:
    answers = [answer for _ in range(runs) for answer in (look(), finding("a", "s1"))]
    return bench(
        planner=[plan(step("a")) for _ in range(runs)], work={"a": answers}, tools=[tool.tool()], **build
    )


async def test_invariant_14_two_runs_at_once_on_one_thread_are_refused(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, **built_on(where))
    first = asyncio.create_task(b.run())
    await tool.running.wait()
    with pytest.raises(ThreadBusy, match=r"^thread 't1' is busy: [^\n]*$"):
        await b.run("something else")
    with pytest.raises(ThreadBusy):
        await b.go_on()
    assert [t.status for t in await b.graph.threads()] == ["running"]
    tool.release.set()
    assert (await first)["status"] == "completed"
    assert len(b.planner.asked) == 1


async def test_invariant_14_another_thread_is_not_held_up(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, runs=2, **built_on(where))
    first = asyncio.create_task(b.run())
    await tool.running.wait()
    second = asyncio.create_task(b.run(thread="t2"))
    tool.release.set()
    assert [out["status"] for out in await asyncio.gather(first, second)] == ["completed", "completed"]


async def test_invariant_14_two_graphs_on_one_home_share_the_lock(backend: Backend) -> None:
    tool = Held()
    roles = models(
        ScriptedModel(answers=[plan(step("a"))]),
        ScriptedModel(answers=[look(), finding("a", "s1")]),
        ScriptedModel(always=review()),
        ScriptedModel(always=finding("a")),
    )
    settings = backend.settings()
    async with (
        open_graph(settings, models=roles, tools=[tool.tool()]) as one,
        open_graph(settings, models=models(), tools=[tool.tool()]) as other,
    ):
        first = asyncio.create_task(one.ainvoke({"objective": "find"}, config()))
        await tool.running.wait()
        with pytest.raises(ThreadBusy):
            await other.ainvoke({"objective": "find"}, config())
        assert [t.status for t in await other.threads()] == ["running"]
        tool.release.set()
        await first
        assert [t.status for t in await other.threads()] == ["completed"]


async def test_invariant_14_a_run_that_fails_or_is_left_frees_the_thread(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, runs=2, **built_on(where))
    first = asyncio.create_task(b.run())
    await tool.running.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    async with aclosing(b.graph.astream(None, config(), stream_mode="custom")) as events:
        async for _ in events:
            break  # a reader that goes away
    tool.release.set()
    assert (await b.go_on())["status"] == "completed"


@pytest.mark.parametrize("value", [None, Command(resume={"decision": "approve"}), Command(resume="x")])
async def test_invariant_14_a_thread_that_does_not_exist_has_nothing_to_resume(
    value: Any, where: Kept
) -> None:
    b = bench(**built_on(where))
    with pytest.raises(NothingToResume, match=r"^thread 't1' [^\n]*there is no such thread$"):
        await b.go_on(value)
    assert b.planner.asked == []
    assert await b.graph.threads() == []


@pytest.mark.parametrize("value", [None, Command(resume={"decision": "approve"})])
async def test_invariant_14_a_finished_thread_has_nothing_to_resume(value: Any, where: Kept) -> None:
    b = one_step(Look(), **built_on(where))
    out = await b.run()
    asked = [len(m.asked) for m in (b.planner, b.worker, b.reviewer, b.writer)]
    with pytest.raises(NothingToResume, match=r"its run has ended|does not wait for an answer"):
        await b.go_on(value)
    assert asked == [len(m.asked) for m in (b.planner, b.worker, b.reviewer, b.writer)]
    assert (await b.values())["final_answer"] == out["final_answer"]


async def test_invariant_14_an_answer_without_a_question_changes_nothing(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, **built_on(where))
    first = asyncio.create_task(b.run())
    await tool.running.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(NothingToResume, match="does not wait for an answer"):
        await b.go_on(Command(resume={"decision": "cancel"}))
    tool.release.set()
    assert (await b.go_on())["status"] == "completed"


async def test_invariant_14_going_on_with_a_paused_thread_puts_its_question_again(where: Kept) -> None:
    b = one_step(Look(), **built_on(where))
    paused = await b.run(review_plan="first")
    again = await b.go_on()
    assert again["__interrupt__"][0].value == paused["__interrupt__"][0].value
    assert len(b.planner.asked) == 1
    assert [t.status for t in await b.graph.threads()] == ["waiting"]
    out = await b.go_on(Command(resume={"decision": "approve"}))
    assert out["status"] == "completed"


async def test_invariant_14_a_new_objective_on_a_finished_thread_starts_clean(where: Kept) -> None:
    tool = Look()
    b = one_step(tool, runs=2, **built_on(where))
    await b.run("the first", total_tool_budget=10)
    out = await b.run("the second")
    assert len(out["evidence"]) == len(out["sources"]) == 1
    assert out["usage"].tool_calls == 1
    assert [m.text for m in out["messages"]][::2] == ["the first", "the second"]
    values = await b.values()
    assert len(values["plans"]) == 1
    assert values["limits"].total_tool_budget == 32, "the first run's choices are its own"
    assert "the first" not in b.planner.asked[-1].text


async def paused_in_approve(b: Bench, tool: Held) -> None:
    await b.run("the first", review_plan="first")


async def stopped_in_a_step(b: Bench, tool: Held) -> None:
    run = asyncio.create_task(b.run("the first"))
    await tool.running.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


@pytest.mark.parametrize("leave", [paused_in_approve, stopped_in_a_step])
async def test_invariant_14_a_new_objective_on_an_unfinished_thread_starts_clean(
    leave: Callable[[Bench, Held], Any], where: Kept
) -> None:
    tool = Held()
    b = bench(
        planner=[plan(step("old")), plan(step("a"))],
        work={"old": [look(query="old")], "a": [look(), finding("a", "s1")]},
        tools=[tool.tool()],
        **built_on(where),
    )
    await leave(b, tool)
    tool.release.set()
    out = await b.run("the second")
    assert [e.step_id for e in out["evidence"]] == ["a"]
    assert out["usage"].tool_calls == 1
    assert out["status"] == "completed"
    assert (await b.graph.aget_state(config())).next == ()


@pytest.mark.parametrize(
    "given", [{}, {"objective": "  "}, {"objective": 7}, {"messages": []}, {"objective": "x" * 20_001}]
)
async def test_an_unusable_objective_is_refused_before_anything_is_written(given: Any, where: Kept) -> None:
    b = bench(**built_on(where))
    with pytest.raises(InputError, match=r"^[^\n]+$"):
        await b.graph.ainvoke(given, config())
    assert await b.graph.threads() == []
    assert (await b.values()) == {}


async def test_a_context_that_cannot_be_used_is_refused_naming_the_field(where: Kept) -> None:
    b = bench(**built_on(where))
    with pytest.raises(InputError, match="review_plan"):
        await b.graph.ainvoke({"objective": "x"}, config(), context={"review_plan": "sometimes"})


async def test_a_graph_bound_to_a_thread_is_guarded_like_any_other(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, **built_on(where))
    bound = b.graph.with_config(config("bound"))
    first = asyncio.create_task(bound.ainvoke({"objective": "find"}))
    await tool.running.wait()
    with pytest.raises(ThreadBusy):
        await bound.ainvoke({"objective": "find"})
    tool.release.set()
    await first


async def test_the_list_of_threads_shows_how_each_run_stands(where: Kept) -> None:
    b = one_step(Look(), runs=2, **built_on(where))
    await b.run("wait", "waits", review_plan="first")
    await b.run("end", "ended")
    found = {t.thread_id: (t.objective, t.status, t.tool_calls) for t in await b.graph.threads()}
    assert found == {"waits": ("wait", "waiting", 0), "ended": ("end", "completed", 1)}
    assert [t.thread_id for t in await b.graph.threads()] == ["ended", "waits"]


async def test_what_only_running_steps_need_is_dropped_at_the_end(where: Kept) -> None:
    b = one_step(Look(), **built_on(where))
    await b.run()
    graph: TaskGraph = b.graph
    assert await graph.parts.store.asearch(("planweave", "ledger")) == []


def sent_in(run_id: str, thread: str = "t1") -> dict[str, Any]:
    """Return the config with which an Agent Server calls; it is the same when the run is given to another worker."""
    return {"configurable": {"thread_id": thread, "run_id": run_id}}


async def cut_off(b: Bench, tool: Held, value: Any, run_id: str, **kwargs: Any) -> None:
    run = asyncio.create_task(b.graph.ainvoke(value, sent_in(run_id), **kwargs))
    await tool.running.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_invariant_13_a_run_that_a_server_delivers_again_goes_on_where_it_was(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, **built_on(where))
    await cut_off(b, tool, {"objective": "find"}, "run-1")
    tool.release.set()
    out = await b.graph.ainvoke({"objective": "find"}, sent_in("run-1"))
    assert out["status"] == "completed"
    assert len(b.planner.asked) == 1
    again = await b.graph.ainvoke({"objective": "find"}, sent_in("run-1"))
    assert again["final_answer"] == out["final_answer"], "it died before it could say that it was done"
    assert len(b.planner.asked) == 1


async def test_invariant_13_an_answer_that_is_delivered_again_is_not_taken_twice(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, **built_on(where))
    approve: Command[Any] = Command(resume={"decision": "approve"})
    await b.graph.ainvoke({"objective": "find"}, sent_in("run-1"), context={"review_plan": "always"})
    await cut_off(b, tool, approve, "run-2")
    tool.release.set()
    out = await b.graph.ainvoke(approve, sent_in("run-2"))
    assert out["status"] == "completed"
    assert (await b.graph.ainvoke(approve, sent_in("run-2")))["status"] == "completed"
    with pytest.raises(NothingToResume):
        await b.graph.ainvoke(approve, sent_in("run-3"))


async def test_a_run_killed_after_its_answer_was_taken_is_listed_as_interrupted(where: Kept) -> None:
    tool = Held()
    b = one_step(tool, **built_on(where))
    await b.run(review_plan="first")
    going = asyncio.create_task(b.go_on(Command(resume={"decision": "approve"})))
    await tool.running.wait()
    # What another process reads while this one is at work, and would read if it were killed now.
    graph = one_step(tool, **built_on(replace(where, locks=ThreadLocks()))).graph
    assert [t.status for t in await graph.threads()] == ["interrupted"]
    tool.release.set()
    await going


async def test_a_refused_resume_leaves_the_thread_as_it_was(where: Kept) -> None:
    b = one_step(Look(), **built_on(where))
    await b.run()
    before = await b.graph.threads()
    with pytest.raises(NothingToResume):
        await b.go_on()
    assert await b.graph.threads() == before

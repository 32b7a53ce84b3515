"""Going on after a limit: the run gets more, goes on in a new process, and repeats nothing that has passed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph.choices import CHOICES
from graph.continuing import extend
from nodes.extend import extension
from schemas.errors import InputError, NothingToResume, ThreadBusy
from tests.conftest import Look
from tests.reopening import answer, asked_of, ran, reopened
from tests.running import Bench, bench, config, context, of
from tests.scripted import finding, look, plan, review, step


def chain(**build: Any) -> tuple[Bench, Look]:
    tool = Look()
    steps = (step("a"), step("b", "a"), step("c", "b"))
    work = {i: [look(query=i), finding(i, "s1")] for i in "abc"}
    return bench(*steps, work=work, tools=[tool.tool()], **build), tool


async def more(b: Bench, tool: Look, **amounts: Any) -> dict[str, Any]:
    """Add to the limits and go on, in a new graph object over the same threads."""
    again = reopened(b, [tool.tool()])
    await extend(again.graph, "t1", **amounts)
    return await again.go_on()


async def test_a_run_stopped_by_its_tool_budget_goes_on_and_repeats_nothing() -> None:
    b, tool = chain()
    first = await b.run(total_tool_budget=1)
    assert (first["status"], first["stop_reason"]) == ("partial", "tool_budget")
    out = await more(b, tool, tool_calls=10)
    assert (out["status"], out["stop_reason"]) == ("completed", "approved")
    assert tool.runs == ["a", "b", "c"]
    assert ran(b) == ["a", "b", "c"]
    assert len(b.planner.asked) == 1
    assert "Open gaps" not in out["final_answer"]
    assert [type(m) for m in out["messages"]].count(AIMessage) == 1  # the answer is replaced, not repeated
    assert out["usage"].tool_calls == 3


async def test_a_run_goes_on_from_its_file_in_another_life(tmp_path: Any) -> None:
    path = str(tmp_path / "c.sqlite")
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        b, tool = chain(checkpointer=saver)
        await b.run(total_tool_budget=2)
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        b.graph.checkpointer = saver
        again = reopened(b, [tool.tool()])
        await extend(again.graph, "t1", tool_calls=1)
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        b.graph.checkpointer = saver
        out = await reopened(b, [tool.tool()]).go_on()
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b", "c"]


async def test_more_can_be_added_again_and_again() -> None:
    b, tool = chain()
    await b.run(total_tool_budget=1)
    assert (await more(b, tool, tool_calls=1))["stop_reason"] == "tool_budget"
    out = await more(b, tool, tool_calls=1)
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b", "c"]
    plans = (await b.values())["plans"]
    assert [(p.version, p.parent_version, p.created_by) for p in plans] == [
        (1, None, "planner"),
        (2, 1, "human"),
        (3, 2, "human"),
    ]


async def test_update_state_does_the_same_as_documented() -> None:
    b, tool = chain()
    await b.run(total_tool_budget=1)
    again = reopened(b, [tool.tool()])
    state = await again.graph.aget_state(config())
    update = extension(state.values, tool_calls=10)
    await again.graph.aupdate_state(config(), update.update, as_node=update.after)
    assert (await again.go_on())["status"] == "completed"
    assert tool.runs == ["a", "b", "c"]


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def parts(self) -> dict[str, Any]:
        return {"now": self.now, "clock": lambda: self.seconds}


async def test_a_run_stopped_by_its_deadline_goes_on_with_more_seconds() -> None:
    clock = Clock()
    b, tool = chain(parts=clock.parts())

    def slow(query: str) -> None:
        clock.seconds += 100

    tool.before = slow
    first = await b.run(deadline_seconds=150)
    assert first["stop_reason"] == "deadline"
    assert [e.step_id for e in first["evidence"] if e.passed] == ["a", "b"]
    again = reopened(b, [tool.tool()], parts=clock.parts())
    await extend(again.graph, "t1", seconds=1000)
    out = await again.go_on()
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b", "c"]


async def test_a_run_whose_replans_were_spent_plans_its_gaps_again() -> None:
    tool = Look()
    work = {
        "a": [look(query="a"), finding("a", "s1")],
        "b": [finding("b", met=False)],
        "b2": [look(query="b2"), finding("b2", "s1")],
    }
    b = bench(
        planner=[plan(step("a"), step("b")), plan(step("b2", replaces="b"))], work=work, tools=[tool.tool()]
    )
    assert (await b.run(max_replans=0))["stop_reason"] == "replan_limit"
    out = await more(b, tool, replans=1)
    assert out["status"] == "completed"
    assert ran(b) == ["a", "b", "b2"]
    assert (await b.values())["max_replans"] == 1


async def test_replans_that_are_added_are_bounded_like_any_others() -> None:
    b = bench(planner=[plan(step("a"))], work={}, tools=[Look().tool()])
    b.worker.always = lambda asked: finding(asked.brief["step"]["id"], met=False)
    b.planner.always = lambda asked: plan(
        step(f"s{len(b.planner.asked)}", task=f"try {len(b.planner.asked)}")
    )
    await b.run(max_replans=1)
    out = await more(b, Look(), replans=2)
    assert out["stop_reason"] == "replan_limit"
    assert len(b.planner.asked) == 1 + 1 + 2


async def test_a_skipped_step_is_not_lost_by_going_on() -> None:
    """a fails and c waits for it; d waits for budget: after more budget, the repair of a lets c run too."""
    tool = Look()
    steps = (step("a"), step("c", "a"), step("d"))
    work = {
        "a": [look("1", "a"), finding("a", "s1", met=False)],
        **{i: [look(query=i), finding(i, "s1")] for i in ("a2", "c", "d")},
    }
    b = bench(planner=[plan(*steps), plan(step("a2", replaces="a"))], work=work, tools=[tool.tool()])
    first = await b.run(total_tool_budget=1)
    assert of(first, "d").error_type == "tool_budget"
    out = await more(b, tool, tool_calls=10, replans=1)
    assert out["status"] == "completed"
    assert out["plan"].step("c").depends_on == ["a2"]
    assert tool.runs == ["a", "d", "a2", "c"]


async def test_an_optional_step_that_failed_does_not_run_again() -> None:
    tool = Look()
    steps = (step("o", optional=True), step("a", "o"), step("b", "a"))
    work = {
        "o": [look(query="o"), finding("o", "s1", met=False)],
        **{i: [look(query=i), finding(i, "s1")] for i in "ab"},
    }
    b = bench(*steps, work=work, tools=[tool.tool()])
    assert (await b.run(total_tool_budget=2))["stop_reason"] == "tool_budget"
    out = await more(b, tool, tool_calls=5)
    assert out["status"] == "completed"
    assert tool.runs == ["o", "a", "b"]


async def test_a_completed_run_is_not_extended() -> None:
    b, _ = chain()
    before = (await b.run())["final_answer"]
    with pytest.raises(InputError, match="completed"):
        await extend(b.graph, "t1", tool_calls=10)
    with pytest.raises(NothingToResume):
        await b.go_on()
    assert (await b.values())["final_answer"] == before


async def test_a_paused_run_is_not_extended() -> None:
    b, _ = chain()
    await b.run(review_plan="first")
    with pytest.raises(InputError, match="has not ended"):
        await extend(b.graph, "t1", tool_calls=10)


async def test_a_running_run_is_not_extended() -> None:
    b, tool = chain()
    at_work, free = asyncio.Event(), asyncio.Event()

    async def hold(query: str) -> None:
        at_work.set()
        await free.wait()

    tool.before = hold
    run = asyncio.ensure_future(b.run())
    await at_work.wait()
    with pytest.raises(ThreadBusy):
        await extend(b.graph, "t1", tool_calls=10)
    free.set()
    assert (await run)["status"] == "completed"


async def test_an_unknown_thread_is_named() -> None:
    b, _ = chain()
    with pytest.raises(NothingToResume, match="ghost"):
        await extend(b.graph, "ghost", tool_calls=10)


async def test_a_plan_that_a_person_turned_down_never_runs_this_way() -> None:
    b, tool = chain()
    await b.run(review_plan="first")
    assert (await answer(b, {"decision": "cancel"}))["status"] == "cancelled"
    with pytest.raises(InputError, match="turned down"):
        await extend(b.graph, "t1", tool_calls=10)
    assert tool.runs == []


@pytest.mark.parametrize(
    "amounts", [{}, {"tool_calls": -5}, {"tool_calls": 10**6}, {"seconds": float("nan")}]
)
async def test_amounts_that_make_no_sense_change_nothing(amounts: dict[str, Any]) -> None:
    b, _ = chain()
    await b.run(total_tool_budget=1)
    before = await b.values()
    with pytest.raises(InputError):
        await extend(b.graph, "t1", **amounts)
    assert await b.values() == before


async def test_where_every_version_is_reviewed_the_one_that_goes_on_is_too() -> None:
    b, tool = chain()
    await b.run(review_plan="always", total_tool_budget=1)
    await answer(b, {"decision": "approve"}, [tool.tool()])
    shown = asked_of(await more(b, tool, tool_calls=10))
    assert (shown["kind"], [s["id"] for s in shown["plan"]["steps"]]) == ("approve", ["a", "b", "c"])
    out = await answer(b, {"decision": "approve"}, [tool.tool()])
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b", "c"]


async def test_a_run_whose_reviewer_was_down_is_reviewed_without_another_plan() -> None:
    b, tool = chain(reviewer=[ValueError("down"), review()])
    assert (await b.run())["stop_reason"] == "review_unavailable"
    out = await more(b, tool, seconds=60)
    assert out["status"] == "completed"
    assert (len(b.planner.asked), tool.runs) == (1, ["a", "b", "c"])


async def test_what_the_deadline_cut_is_planned_again_and_what_waited_runs() -> None:
    """a hangs until the deadline, b waits for c, which waits for nobody but never got its turn."""
    tool = Look()

    async def hang(query: str) -> None:
        if query == "a":
            await asyncio.Event().wait()

    tool.before = hang
    work = {"a": [look(query="a")], **{i: [look(query=i), finding(i, "s1")] for i in ("b", "c", "a2")}}
    steps = (step("a"), step("c", "o"), step("b", "c"), step("o", "a", optional=True))
    b = bench(planner=[plan(*steps), plan(step("a2", replaces="a"))], work=work, tools=[tool.tool()])
    b.worker.by_step["o"] = [look(query="o"), finding("o", "s1")]
    first = await b.run(deadline_seconds=0.6)
    assert of(first, "a").error_type == "deadline"
    assert of(first, "c").error_type == "deadline"
    assert first["stop_reason"] == "deadline"
    out = await more(b, tool, seconds=600)
    assert out["status"] == "completed"
    assert tool.runs == ["a", "c", "b", "a2", "o"]


async def test_a_run_that_had_started_too_many_steps_goes_on_with_more() -> None:
    b, tool = chain()
    assert (await b.run(max_attempted_steps=1))["stop_reason"] == "attempted_steps"
    assert (await more(b, tool, steps=1))["stop_reason"] == "attempted_steps"
    out = await more(b, tool, steps=10)
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b", "c"]
    assert (await b.values())["limits"].max_attempted_steps == 12


async def test_a_run_whose_tokens_were_used_goes_on_with_more() -> None:
    def costly(message: AIMessage) -> AIMessage:
        spent: Any = {"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}
        return message.model_copy(update={"usage_metadata": spent})

    tool = Look()
    steps = (step("a"), step("b", "a"))
    work = {i: [costly(look(query=i)), costly(finding(i, "s1"))] for i in "ab"}
    b = bench(*steps, work=work, tools=[tool.tool()])
    first = await b.run(max_tokens=1500)
    assert [e.step_id for e in first["evidence"] if e.passed] == ["a"]
    out = await more(b, tool, tokens=10_000)
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b"]
    assert (await b.values())["limits"].max_tokens == 11_500


async def test_tokens_cannot_be_added_where_there_is_no_bound_of_them() -> None:
    b, tool = chain()
    await b.run(total_tool_budget=1)
    with pytest.raises(InputError, match="no bound of tokens"):
        await more(b, tool, tokens=10)


async def test_what_a_run_was_started_with_stands_in_the_extended_checkpoint_too() -> None:
    b, _ = chain()
    named = config() | {"metadata": {"who": "a caller"}}
    await b.graph.ainvoke({"objective": "find"}, named, context=context(total_tool_budget=1))
    before = (await b.graph.aget_state(config())).metadata
    await extend(b.graph, "t1", tool_calls=10)
    after = (await b.graph.aget_state(config())).metadata
    kept = ("who", CHOICES)
    assert before is not None
    assert after is not None
    assert {key: dict(after)[key] for key in kept} == {key: dict(before)[key] for key in kept}
    assert after["source"] == "update"


async def test_invariant_19_a_version_made_by_more_budget_is_told_of_once() -> None:
    b, tool = chain()
    await b.run(total_tool_budget=1)
    again = reopened(b, [tool.tool()])
    await extend(again.graph, "t1", tool_calls=10)
    events = [event async for event in again.graph.astream(None, config(), stream_mode="custom")]
    ready = [event for event in events if event["type"] == "plan_ready"]
    assert [(event["version"], event["created_by"]) for event in ready] == [(2, "human")]
    assert events.index(ready[0]) < next(n for n, e in enumerate(events) if e["type"] == "step_ready")

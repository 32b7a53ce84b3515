"""Invariants 12 and 13: a run that is left at any moment can go on, as what it was started as."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph.persistence import Kept
from tests.backends import built_on
from tests.conftest import Look
from tests.running import Bench, bench, config, context
from tests.scripted import Asked, ScriptedModel, finding, look, plan, step

MOST_EVENTS = 60


def replanned(tool: Look, **build: Any) -> Bench:
    """Return a run of two steps, the second of which fails and is replanned."""
    work = {
        "a": [look(query="a"), finding("a", "s1")],
        "b": [finding("b", met=False)],
        "b2": [look(query="b2"), finding("b2", "s1")],
    }
    first, second = plan(step("a"), step("b", "a")), plan(step("b2", "a", replaces="b"))

    def planned(asked: Asked) -> AIMessage:
        return second if asked.brief["role"] == "replanner" else first

    def worked(asked: Asked) -> AIMessage:
        answers = work[asked.brief["step"]["id"]]
        return answers[min(sum(m.type == "ai" for m in asked.messages), len(answers) - 1)]

    planner, worker = ScriptedModel(always=planned), ScriptedModel(always=worked)
    return bench(planner=planner, worker=worker, tools=[tool.tool()], **build)


@pytest.mark.parametrize("how", ["left", "cancelled"])
async def test_invariant_13_a_run_left_after_any_event_goes_on_to_its_end(how: str, where: Kept) -> None:
    for number in range(1, MOST_EVENTS):
        tool, thread = Look(), f"{how}-{number}"
        b = replanned(tool, **built_on(where))
        events = b.graph.astream(
            {"objective": "x"}, config(thread), context=context(mode="plan"), stream_mode="custom"
        )
        if not await leave(events, number, how):
            break
        out = await b.go_on(thread=thread)
        assert (out["status"], out["stop_reason"]) == ("completed", "approved"), number
        # A body that was cut off runs once more.
        assert set(tool.runs) == {"a", "b2"}
        assert len(tool.runs) <= 3
        assert [e.step_id for e in out["evidence"]] == ["a", "b", "b2"]
    else:
        raise AssertionError("the run has no end")
    assert number > 15


async def leave(events: Any, number: int, how: str) -> bool:
    """Take events and leave behind one of them; return whether something is left to be done."""
    seen: list[Any] = []

    async def take() -> None:
        async with aclosing(events):
            async for event in events:
                seen.append(event)
                if len(seen) == number:
                    if how == "left":
                        return
                    task.cancel()

    task = asyncio.create_task(take())
    await asyncio.gather(task, return_exceptions=True)
    return not seen or seen[-1]["type"] not in ("answer_text", "run_finished")


async def test_invariant_05_choices_outlive_two_stops_before_the_plan(where: Kept) -> None:
    choices = context(mode="plan", review_plan="always", total_tool_budget=1)
    for given, chosen in (({"objective": "x"}, choices), (None, None)):
        await stopped_while_planning(given, chosen, **built_on(where))
    b = replanned(Look(), **built_on(where))
    out = await b.go_on()
    assert [q.value["kind"] for q in out["__interrupt__"]] == ["approve"]
    assert (await b.values())["limits"].total_tool_budget == 1


async def stopped_while_planning(given: Any, chosen: Any, **build: Any) -> None:
    loop = asyncio.get_running_loop()

    def planned(_: Asked) -> AIMessage:
        loop.call_soon_threadsafe(task.cancel)
        return AIMessage("too late")

    b = bench(planner=ScriptedModel(always=planned), **build)
    task = asyncio.create_task(b.graph.ainvoke(given, config(), context=chosen))
    with pytest.raises(asyncio.CancelledError):
        await task

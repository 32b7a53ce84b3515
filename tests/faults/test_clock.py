"""A wall clock that is set while a run works, or between two lives of it: time spent is what was spent, no more, no less."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graph import build_graph
from graph.persistence import Kept
from nodes.readiness import active_seconds
from tests.backends import built_on
from tests.conftest import Look
from tests.graph.test_persistence import scripted
from tests.running import config, context, of

HOUR = 3600.0


@dataclass
class Clocks:
    """The clocks of one process: its monotonic seconds, and a wall clock that is off by so many."""

    offset: float = 0.0
    seconds: float = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds + self.offset)

    def parts(self) -> dict[str, Any]:
        return {"now": self.now, "clock": lambda: self.seconds}


def built(where: Kept, clocks: Clocks, models: Any, tool: Look) -> Any:
    kept = built_on(where)
    return build_graph(models, [tool.tool()], **kept | {"parts": kept["parts"] | clocks.parts()})


def each_call(clocks: Clocks, tool: Look, *, seconds: float, jump: float = 0) -> None:
    """Let every tool call take so long, and the wall clock be set meanwhile."""

    def pass_time(query: str) -> None:
        clocks.seconds += seconds
        clocks.offset += jump

    tool.before = pass_time


def lasted(out: dict[str, Any]) -> list[float]:
    return [(e.finished_at - e.started_at).total_seconds() for e in out["evidence"]]


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_clock_that_is_set_while_steps_work_costs_and_gives_no_time(jump: float, where: Kept) -> None:
    clocks, tool = Clocks(), Look()
    each_call(clocks, tool, seconds=10, jump=jump)
    graph = built(where, clocks, scripted("a", "b", "c"), tool)
    out = await graph.ainvoke({"objective": "find"}, config(), context=context(deadline_seconds=600))
    assert out["stop_reason"] == "approved"
    assert lasted(out) == [10, 10, 10]
    assert active_seconds(out["evidence"], out["usage"]) == 30


@pytest.mark.parametrize("jump", [HOUR, -HOUR, -10])
async def test_a_deadline_comes_when_its_seconds_are_spent_whatever_the_clock_says(
    jump: float, where: Kept
) -> None:
    clocks, tool = Clocks(), Look()
    each_call(clocks, tool, seconds=10, jump=jump)
    graph = built(where, clocks, scripted("a", "b", "c"), tool)
    out = await graph.ainvoke({"objective": "find"}, config(), context=context(deadline_seconds=15))
    assert out["stop_reason"] == "deadline"
    assert [e.step_id for e in out["evidence"] if e.passed] == ["a", "b"]
    assert of(out, "c").error_type == "deadline"


async def test_a_step_that_ran_while_the_clock_was_set_back_has_run(where: Kept) -> None:
    clocks, tool = Clocks(), Look()
    each_call(clocks, tool, seconds=1, jump=-HOUR)
    graph = built(where, clocks, scripted("a", "b"), tool)
    out = await graph.ainvoke({"objective": "find"}, config(), context=context(max_attempted_steps=1))
    assert (out["stop_reason"], tool.runs) == ("attempted_steps", ["a"])


@pytest.mark.parametrize("jump", [0, HOUR, -HOUR, -15])
async def test_a_deadline_goes_on_with_a_run_into_a_process_with_another_clock(
    jump: float, where: Kept
) -> None:
    first, tool, models = Clocks(seconds=1000), Look(), scripted("a", "b", "c", "d")
    at_work = asyncio.Event()

    async def until_b(query: str) -> None:
        if query == "b":
            at_work.set()
            await asyncio.Event().wait()
        first.seconds += 10

    tool.before = until_b
    graph = built(where, first, models, tool)
    limits = context(deadline_seconds=25)
    run = asyncio.create_task(graph.ainvoke({"objective": "find"}, config(), context=limits))
    await at_work.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    # Another process: its monotonic clock begins anew. A step that a crash has cut off has cost no time.
    second = Clocks(offset=1010 + jump)
    each_call(second, tool, seconds=10)
    out = await built(where, second, models, tool).ainvoke(None, config())
    assert tool.runs == ["a", "b", "b", "c"]
    assert (out["stop_reason"], of(out, "d").error_type) == ("deadline", "deadline")
    assert lasted(out)[:3] == [10, 10, 10]
    assert active_seconds(out["evidence"], out["usage"]) == 30

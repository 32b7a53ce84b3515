"""Places for steps: how many, in which order, and that none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from nodes.slots import GLANCE, HEAD_START, StepSlots

PAUSE = 0.01


class Steps:
    """Steps that hold a place until they are told to go; `worked` is what they use of the processor."""

    def __init__(self, limit: int, worked: Callable[[], float] = lambda: 0.0) -> None:
        self.slots, self.limit = StepSlots(worked), limit
        self.inside: list[str] = []
        self.begun: list[tuple[str, float]] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.entered: dict[str, asyncio.Event] = {}

    def start(self, name: str, way: float, *, leads: bool = False) -> asyncio.Task[None]:
        self.entered[name] = asyncio.Event()
        return asyncio.create_task(self._work(name, way, leads=leads), name=name)

    async def _work(self, name: str, way: float, *, leads: bool) -> None:
        end = self.ends[name] = asyncio.Event()
        async with self.slots.slot("thread", self.limit, way, leads=leads):
            self.begun.append((name, asyncio.get_running_loop().time()))
            self.inside.append(name)
            self.entered[name].set()
            try:
                await end.wait()
            finally:
                self.inside.remove(name)

    async def end_all(self, tasks: list[asyncio.Task[None]]) -> None:
        for end in self.ends.values():
            end.set()
        await asyncio.gather(*tasks)


WAYS = (("a", 1), ("b", 2), ("c", 3))


async def test_of_steps_that_wait_the_longest_way_goes_first() -> None:
    steps = Steps(limit=1)
    tasks = [steps.start(name, way) for name, way in WAYS]
    for name in "cba":
        await asyncio.sleep(PAUSE)
        assert steps.inside == [name]
        steps.ends[name].set()
    await asyncio.gather(*tasks)


async def test_steps_that_no_other_waits_for_begin_together() -> None:
    steps = Steps(limit=3)
    tasks = [steps.start(name, way) for name, way in WAYS]
    for _ in range(3):  # turns of the loop: a timer would take more
        await asyncio.sleep(0)
    assert steps.inside == ["c", "b", "a"]
    await steps.end_all(tasks)


async def begun_one_by_one(worked: Callable[[], float]) -> list[float]:
    """Return the seconds from each beginning to the next, of three steps that others wait for."""
    steps = Steps(limit=3, worked=worked)
    tasks = [steps.start(name, way, leads=True) for name, way in WAYS]
    await steps.entered["a"].wait()
    assert [name for name, _ in steps.begun] == ["c", "b", "a"]
    await steps.end_all(tasks)
    return [later - earlier for (_, earlier), (_, later) in pairwise(steps.begun)]


async def test_a_step_that_others_wait_for_is_ahead_until_it_waits_itself() -> None:
    assert min(await begun_one_by_one(worked=lambda: 0.0)) >= 0.9 * GLANCE


async def test_a_head_start_has_an_end_where_the_processor_is_never_idle() -> None:
    busy = asyncio.get_running_loop().time  # as many seconds of work as there are
    assert min(await begun_one_by_one(worked=busy)) >= 0.9 * HEAD_START


async def test_a_head_start_ends_though_its_step_has_ended_or_was_cancelled() -> None:
    steps = Steps(limit=3)
    first, second, third = (steps.start(name, way, leads=True) for name, way in reversed(WAYS))
    await steps.entered["c"].wait()
    first.cancel()
    steps.ends["b"].set()
    await second
    await steps.entered["a"].wait()
    steps.ends["a"].set()
    await third
    assert first.cancelled()


@pytest.mark.parametrize("limit", [1, 2])
async def test_never_more_than_the_limit_are_inside(limit: int) -> None:
    steps = Steps(limit)
    tasks = [steps.start(str(n), n) for n in range(6)]
    for _ in range(6):
        await asyncio.sleep((limit + 1) * PAUSE)
        assert 0 < len(steps.inside) <= limit
        steps.ends[steps.inside[0]].set()
    await asyncio.gather(*tasks)
    assert len(steps.begun) == 6


async def test_a_step_cancelled_while_it_waits_takes_no_place_with_it() -> None:
    steps = Steps(limit=1)
    first, second, third = (steps.start(name, 1) for name in "abc")
    await asyncio.sleep(PAUSE)
    second.cancel()
    steps.ends["a"].set()
    await first
    await asyncio.sleep(3 * PAUSE)
    assert steps.inside == ["c"]
    steps.ends["c"].set()
    await third
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_a_place_that_comes_together_with_the_cancellation_is_handed_on() -> None:
    steps = Steps(limit=1)

    async def leave_and_cancel() -> None:
        async with steps.slots.slot("thread", 1):
            await asyncio.sleep(2 * PAUSE)
        second.cancel()  # it has its place now, and has not run yet

    first = asyncio.create_task(leave_and_cancel())
    await asyncio.sleep(0)
    second, third = steps.start("b", 2), steps.start("c", 1)
    await first
    await asyncio.sleep(3 * PAUSE)
    assert steps.inside == ["c"]
    steps.ends["c"].set()
    await third
    assert second.cancelled()

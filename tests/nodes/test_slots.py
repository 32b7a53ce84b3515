"""Places for steps: how many, in which order, and that none is lost."""

from __future__ import annotations

import asyncio

import pytest

from nodes.slots import StepSlots

PAUSE = 0.01


class Steps:
    """Steps that hold a place until they are told to go."""

    def __init__(self, limit: int) -> None:
        self.slots, self.limit = StepSlots(), limit
        self.inside: list[str] = []
        self.begun: list[tuple[str, float]] = []
        self.ends: dict[str, asyncio.Event] = {}

    def start(self, name: str, way: float) -> asyncio.Task[None]:
        return asyncio.create_task(self._work(name, way), name=name)

    async def _work(self, name: str, way: float) -> None:
        end = self.ends[name] = asyncio.Event()
        async with self.slots.slot("thread", self.limit, way):
            self.begun.append((name, asyncio.get_running_loop().time()))
            self.inside.append(name)
            await end.wait()
            self.inside.remove(name)


async def test_of_steps_that_wait_the_longest_way_goes_first() -> None:
    steps = Steps(limit=1)
    tasks = [steps.start(name, way) for name, way in (("a", 1), ("b", 2), ("c", 3))]
    for name in "acb":  # nobody else was there when a came
        await asyncio.sleep(PAUSE)
        assert steps.inside == [name]
        steps.ends[name].set()
    await asyncio.gather(*tasks)


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

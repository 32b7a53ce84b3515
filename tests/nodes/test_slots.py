"""Places for steps: how many, in which order, and that none is lost."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from nodes.slots import HEAD_START, Place, StepSlots


class Steps:
    """Steps that hold a place until they are told to go."""

    def __init__(self, limit: int) -> None:
        self.slots, self.limit = StepSlots(), limit
        self.inside: list[str] = []
        self.begun: list[tuple[str, float]] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.places: dict[str, Place] = {}

    def start(self, name: str, way: float) -> asyncio.Task[None]:
        return asyncio.create_task(self._work(name, way), name=name)

    async def _work(self, name: str, way: float) -> None:
        end = self.ends[name] = asyncio.Event()
        async with self.slots.slot("thread", self.limit, way) as self.places[name]:
            self.begun.append((name, asyncio.get_running_loop().time()))
            self.inside.append(name)
            await end.wait()
            self.inside.remove(name)


async def test_of_steps_that_begin_together_each_has_a_head_start_and_the_longest_way_goes_first() -> None:
    steps = Steps(limit=3)
    tasks = [steps.start(name, way) for name, way in (("a", 1), ("b", 2), ("c", 3))]
    await asyncio.sleep(5 * HEAD_START)
    assert [name for name, _ in steps.begun] == ["a", "c", "b"]  # nobody else was there when a came
    times = [at for _, at in steps.begun]
    assert all(later - earlier >= 0.9 * HEAD_START for earlier, later in pairwise(times))
    for end in steps.ends.values():
        end.set()
    await asyncio.gather(*tasks)


async def turns_until(steps: Steps, inside: list[str]) -> int:
    """Return how many turns of the loop it takes, 3 at most: a timer would take more."""
    for turns in range(3):
        if steps.inside == inside:
            return turns
        await asyncio.sleep(0)
    return 3


async def test_the_next_step_begins_as_soon_as_the_one_ahead_waits_for_a_tool() -> None:
    steps = Steps(limit=3)
    tasks = [steps.start(name, 1) for name in "abc"]
    assert await turns_until(steps, ["a"]) < 3
    steps.places["a"].waits()
    assert await turns_until(steps, ["a", "b"]) < 3
    steps.places["a"].waits()  # its second tool: the head start is b's now
    await asyncio.sleep(0)
    assert steps.inside == ["a", "b"]
    steps.ends["b"].set()  # it ends without any tool
    assert await turns_until(steps, ["a", "c"]) < 3
    for end in steps.ends.values():
        end.set()
    await asyncio.gather(*tasks)


async def test_a_step_that_begins_alone_does_not_wait() -> None:
    steps = Steps(limit=2)
    first = steps.start("a", 1)
    await asyncio.sleep(2 * HEAD_START)
    steps.ends["a"].set()
    await first
    second = steps.start("b", 1)
    assert await turns_until(steps, ["b"]) < 3
    steps.ends["b"].set()
    await second


@pytest.mark.parametrize("limit", [1, 2])
async def test_never_more_than_the_limit_are_inside(limit: int) -> None:
    steps = Steps(limit)
    tasks = [steps.start(str(n), n) for n in range(6)]
    for _ in range(6):
        await asyncio.sleep((limit + 1) * HEAD_START)
        assert 0 < len(steps.inside) <= limit
        steps.ends[steps.inside[0]].set()
    await asyncio.gather(*tasks)
    assert len(steps.begun) == 6


async def test_a_step_cancelled_while_it_waits_takes_no_place_with_it() -> None:
    steps = Steps(limit=1)
    first, second, third = (steps.start(name, 1) for name in "abc")
    await asyncio.sleep(HEAD_START)
    second.cancel()
    steps.ends["a"].set()
    await first
    await asyncio.sleep(3 * HEAD_START)
    assert steps.inside == ["c"]
    steps.ends["c"].set()
    await third
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_a_place_that_comes_together_with_the_cancellation_is_handed_on() -> None:
    steps = Steps(limit=1)

    async def leave_and_cancel() -> None:
        async with steps.slots.slot("thread", 1):
            await asyncio.sleep(2 * HEAD_START)
        second.cancel()  # it has its place now, and has not run yet

    first = asyncio.create_task(leave_and_cancel())
    await asyncio.sleep(0)
    second, third = steps.start("b", 2), steps.start("c", 1)
    await first
    await asyncio.sleep(3 * HEAD_START)
    assert steps.inside == ["c"]
    steps.ends["c"].set()
    await third
    assert second.cancelled()

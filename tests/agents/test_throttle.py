"""The gate before an endpoint: how many at once, in which order, over several event loops."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agents.throttle import Gate, gate_of


async def through(gate: Gate, inside: list[int], peak: list[int], free: asyncio.Event) -> None:
    async with gate.slot():
        inside.append(1)
        peak.append(len(inside))
        await free.wait()
        inside.pop()


async def pass_through(gate: Gate) -> None:
    async with gate.slot():
        pass


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("at_once", "callers"), [(1, 5), (3, 10), (8, 4)])
async def test_no_more_than_so_many_are_inside_and_all_get_in(at_once: int, callers: int) -> None:
    gate, inside, peak, free = Gate(at_once), list[int](), list[int](), asyncio.Event()
    tasks = [asyncio.create_task(through(gate, inside, peak, free)) for _ in range(callers)]
    await settled()
    assert len(inside) == min(at_once, callers)
    free.set()
    await asyncio.gather(*tasks)
    assert max(peak) == min(at_once, callers)
    assert len(peak) == callers


async def test_first_come_first_served() -> None:
    gate, order, free = Gate(1), list[int](), asyncio.Event()

    async def enter(number: int) -> None:
        async with gate.slot():
            order.append(number)
            await free.wait()

    tasks = [asyncio.create_task(enter(n)) for n in range(5)]
    await settled()
    free.set()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_one_that_gives_up_while_waiting_or_inside_takes_no_place_with_it() -> None:
    gate, inside, peak, free = Gate(1), list[int](), list[int](), asyncio.Event()
    tasks = [asyncio.create_task(through(gate, inside, peak, free)) for _ in range(3)]
    await settled()
    tasks[1].cancel()  # it waits
    tasks[0].cancel()  # it is inside
    await settled()
    free.set()
    await asyncio.wait_for(tasks[2], 5)
    await asyncio.wait_for(pass_through(gate), 5)


async def test_one_cancelled_in_the_moment_it_is_let_in_gives_its_place_back() -> None:
    gate, free = Gate(1), asyncio.Event()
    first = asyncio.create_task(through(gate, [], [], free))
    await settled()
    second = asyncio.create_task(through(gate, [], [], free))
    await settled()
    free.set()
    await first  # has just handed its place to the second
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    await asyncio.wait_for(pass_through(gate), 5)


def test_a_gate_serves_several_event_loops_at_once_and_one_after_the_other() -> None:
    gate, lock, inside, peaks = Gate(2), threading.Lock(), [0], [0]

    async def one() -> None:
        async with gate.slot():
            with lock:
                inside[0] += 1
                peaks.append(inside[0])
            await asyncio.sleep(0.001)
            with lock:
                inside[0] -= 1

    async def many() -> None:
        await asyncio.gather(*(one() for _ in range(20)))

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert max(peaks) <= 2
    assert len(peaks) == 81
    asyncio.run(asyncio.wait_for(many(), 10))


def test_a_loop_that_ended_without_unwinding_holds_no_place() -> None:
    gate, loop = Gate(1), asyncio.new_event_loop()

    async def stay() -> None:
        async with gate.slot():
            await asyncio.Event().wait()

    task = loop.create_task(stay())
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    loop.close()
    task._log_destroy_pending = False  # it is meant to be left behind
    asyncio.run(asyncio.wait_for(pass_through(gate), 5))


async def test_so_many_in_a_minute() -> None:
    gate = Gate(16, per_minute=2)
    for _ in range(2):
        await pass_through(gate)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pass_through(gate), 0.05)


def test_one_gate_for_an_endpoint_with_the_latest_bounds() -> None:
    first = gate_of(("here", "model"), 4, None)
    assert gate_of(("here", "model"), 2, 7) is first
    assert (first.at_once, first.rate and first.rate.per_minute) == (2, 7)
    assert gate_of(("there", "model"), 2, None) is not first


async def test_two_bounds_for_one_endpoint_do_not_forget_its_last_minute() -> None:
    for bound in (2, 3):
        await pass_through(gate_of(("busy", "model"), 16, bound))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pass_through(gate_of(("busy", "model"), 16, 2)), 0.05)

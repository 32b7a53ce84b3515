from __future__ import annotations

import asyncio

import pytest

from agents.draining import Drain


async def test_what_a_stop_held_back_goes_on_when_the_stop_is_taken_back() -> None:
    drain, inside, end = Drain(), asyncio.Event(), asyncio.Event()

    async def call() -> None:
        async with drain.work():
            inside.set()
            await end.wait()

    at_work = asyncio.create_task(call())
    await inside.wait()
    stopping = asyncio.create_task(drain.finish())
    await asyncio.sleep(0)
    held = asyncio.create_task(drain.gate())
    await asyncio.sleep(0)
    assert not held.done()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await asyncio.wait_for(held, 5)
    end.set()
    await at_work


async def test_what_is_held_back_may_be_cancelled() -> None:
    drain = Drain()
    await drain.finish()
    held = asyncio.create_task(drain.gate())
    await asyncio.sleep(0)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held

"""Reading long texts beside the event loop: a step whose pages have megabytes holds up no other step, and no other run."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
# About 20 ms of work. A thread for less would cost each step more than it saves the others.
LONG_CHARS = 50_000


async def read_beside(work: Callable[[], T], texts: Iterable[str]) -> T:
    """Return `work()`, pure code that reads these texts; in a thread where they are long."""
    if sum(map(len, texts)) < LONG_CHARS:
        return work()
    return await asyncio.to_thread(work)

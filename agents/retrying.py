"""Transient model errors: waited out, inside the time left."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agents.failures import is_transient

T = TypeVar("T")
RETRIES = 2
FIRST_DELAY = 0.5


async def with_retries(call: Callable[[], Awaitable[T]], seconds_left: Callable[[], float]) -> T:
    """Await `call()`; on a transient error wait (0.5 s, then 1 s) and try again, at most twice.

    A wait that would use more than half of the time left is not begun: the error is raised instead.
    """
    for attempt in range(RETRIES + 1):
        try:
            return await call()
        except Exception as error:
            delay = FIRST_DELAY * 2**attempt
            if attempt == RETRIES or not is_transient(error) or delay > seconds_left() / 2:
                raise
            await asyncio.sleep(delay)
    raise AssertionError("unreachable")

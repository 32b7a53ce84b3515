"""Foreign code, a tool's or a verifier's, awaited within its time; what takes too long is left behind, not forgotten."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def run_body(call: Callable[[], Awaitable[T]], name: str, seconds: float | None = None) -> T:
    """Await a body in a task of its own, so that one that ignores cancellation cannot hold up the step.

    Args:
        call: begins the body.
        name: whose it is.
        seconds: that it may take; None = no bound of its own.

    Raises:
        TimeoutError: it took longer. RuntimeError: it cancelled itself. Exception: what it raises.
    """
    task = asyncio.ensure_future(call())
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not done:
        _abandon(task)
        raise TimeoutError(f"{name} took longer than its {seconds:g} s")
    if task.cancelled():  # by itself: nobody has asked the step to stop
        raise RuntimeError(f"{name} ended by cancelling itself")
    return task.result()


def release_behind(lock: asyncio.Lock, bodies: "Sequence[asyncio.Future[None]]") -> None:
    """Release a lock when these have ended: a thread whose tool took too long still writes."""
    running = {body for body in bodies if not body.done()}
    if not running:
        lock.release()

    def ended(body: "asyncio.Future[None]") -> None:
        running.discard(body)
        if not running:
            lock.release()

    for body in [*running]:
        body.add_done_callback(ended)


def _abandon(task: "asyncio.Future[T]") -> None:
    task.add_done_callback(lambda late: late.cancelled() or late.exception())  # a late error has no reader
    task.cancel()

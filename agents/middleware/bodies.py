"""A tool's body, awaited within its time; one that takes too long is left behind, not forgotten."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tools.registry import ToolSpec

T = TypeVar("T")


async def run_body(call: Callable[[], Awaitable[T]], spec: ToolSpec) -> T:
    """Await a tool body in a task of its own, so that one that ignores cancellation cannot hold up the step."""
    task = asyncio.ensure_future(call())
    try:
        done, _ = await asyncio.wait({task}, timeout=spec.timeout_seconds)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not done:
        _abandon(task)
        raise TimeoutError(f"{spec.name} took longer than its {spec.timeout_seconds:g} s")
    if task.cancelled():  # by the tool itself: nobody has asked the step to stop
        raise RuntimeError(f"{spec.name} ended by cancelling itself")
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

"""An event loop whose clock jumps: a wait of ten minutes takes no time, and every run is the same run again.

When nothing is ready the clock moves to the next timer, unless a thread is at work: that one is waited for in real
time. A wait that nothing will ever end is an error at once, not a hang.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

LOOK_AGAIN = 0.01  # real seconds
BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


class NothingWillHappen(RuntimeError):
    """Everything waits, and there is no timer left."""


class _Selector(selectors.DefaultSelector):
    """Skips the wait for a timer.

    Attributes:
        skipped: virtual seconds so far; threads: how many results are awaited from the loop's thread pool.
    """

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout == 0:
            return super().select(timeout)
        if self.threads or _tools_in_threads():
            return super().select(LOOK_AGAIN)
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise NothingWillHappen
        self.skipped += timeout
        return []


def _tools_in_threads() -> bool:
    return any(thread.name.startswith("tool-") for thread in threading.enumerate())


class VirtualLoop(asyncio.SelectorEventLoop):
    """A selector loop on virtual seconds."""

    def __init__(self) -> None:
        self._waits = _Selector()
        self._ticks = 0
        super().__init__(self._waits)

    def time(self) -> float:
        return self._waits.skipped

    def now(self) -> datetime:
        """A wall clock that never shows the same time twice."""
        self._ticks += 1
        return BEGIN + timedelta(seconds=self.time(), microseconds=self._ticks)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        future = super().run_in_executor(executor, func, *args)
        self._waits.threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, future: Any) -> None:
        self._waits.threads -= 1

    async def shutdown_default_executor(self) -> None:
        self._waits.threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._waits.threads -= 1

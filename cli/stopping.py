"""Ctrl-C and SIGTERM: running tool calls end, then the run stops; a second signal ends the process at once."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from cli.exit_codes import ExitCode

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """A signal has stopped the run, and it has closed in good order."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = ExitCode.TERMINATED if number == signal.SIGTERM else ExitCode.INTERRUPTED


@dataclass
class SignalWatch:
    """What to do when a signal arrives.

    Attributes:
        drain: waits for what is not to be cut off.
        leave_screen: called before the task closes what it holds.
        task: the one to cancel.
        number: of the first signal, once one has arrived.
        ended: the body has ended by itself.
    """

    drain: Callable[[], Awaitable[object]]
    leave_screen: Callable[[], None]
    task: "asyncio.Task[object] | None"
    number: int | None = None
    stopping: "asyncio.Future[None] | None" = None
    ended: bool = False

    def arrived(self, number: int) -> None:
        """Stop in good order; at the second signal at once: a crash is no loss, the run can be resumed just the same."""
        if self.number is None:
            self.number = number
            self.stopping = asyncio.ensure_future(self._stop())
            return
        self.leave_screen()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    async def _stop(self) -> None:
        try:
            await self.drain()
        finally:
            if not self.ended:
                self._cancel()

    def _cancel(self) -> None:
        for each in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(each)
            # Closing waits for tools that cannot be cancelled, also when no loop is there to hear of a signal.
            signal.signal(each, signal.SIG_DFL)
        self.leave_screen()
        if self.task is not None:
            self.task.cancel()


@contextmanager
def cancelled_by_signals(
    drain: Callable[[], Awaitable[object]], leave_screen: Callable[[], None]
) -> Generator[None]:
    """Cancel the current task when SIGINT or SIGTERM has arrived, and what `drain` waits for has ended.

    Raises:
        Stopped: after the body has been cancelled by a signal.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    watch = SignalWatch(drain, leave_screen, task)
    for each in _SIGNALS:
        loop.add_signal_handler(each, watch.arrived, int(each))
    try:
        yield
    except asyncio.CancelledError:
        if watch.number is None or task is None:
            raise
        task.uncancel()
        raise Stopped(watch.number) from None
    finally:
        if watch.stopping is None or not watch.stopping.done():
            watch.ended = True
            for each in _SIGNALS:
                loop.remove_signal_handler(each)
            if watch.stopping is not None:
                watch.stopping.cancel()

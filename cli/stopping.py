"""Ctrl-C and SIGTERM: the run is asked to stop, once; a second signal ends the process at once."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from cli.exit_codes import ExitCode

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """A signal has stopped the run, and it has closed in good order."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = ExitCode.TERMINATED if number == signal.SIGTERM else ExitCode.INTERRUPTED


class SignalWatch:
    """Which signal has arrived, if any."""

    def __init__(self) -> None:
        self.number: int | None = None


@contextmanager
def cancelled_by_signals(at_once: Callable[[], None]) -> Generator[None]:
    """Cancel the current task when SIGINT or SIGTERM arrives.

    Args:
        at_once: called when the signal arrives, before the task has closed what it holds.

    Raises:
        Stopped: after the body has been cancelled by a signal.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    watch = SignalWatch()

    def stop(number: int) -> None:
        watch.number = number
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            # Closing waits for tools that cannot be cancelled. Whoever does not want to wait asks again; a crash is
            # no loss: the run can be resumed after it just the same.
            signal.signal(each, signal.SIG_DFL)
        at_once()
        if task is not None:
            task.cancel()

    for each in _SIGNALS:
        loop.add_signal_handler(each, stop, int(each))
    try:
        yield
    except asyncio.CancelledError:
        if watch.number is None or task is None:
            raise
        task.uncancel()
        raise Stopped(watch.number) from None
    finally:
        if watch.number is None:
            for each in _SIGNALS:
                loop.remove_signal_handler(each)

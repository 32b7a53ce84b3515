"""One gate for each endpoint: how many requests it gets at once and in a minute, over all steps and runs of a process.

A gate outlives event loops: an Agent Server, a notebook and a test may each bring several. Waiting is therefore done
on futures of the waiter's own loop, and the counts are kept under a lock of threads.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tools.rate_limit import RateLimit


@dataclass(eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    turn: "asyncio.Future[None]"
    granted: bool = False


class Gate:
    """Lets in at most `at_once` requests at a time, and at most `per_minute` in any minute.

    Attributes:
        at_once: may be changed while requests are inside.
        rate: None = no bound on requests in a minute.
    """

    def __init__(self, at_once: int, per_minute: int | None = None) -> None:
        self.at_once = at_once
        self.rate = RateLimit(per_minute) if per_minute else None
        self._guard = threading.Lock()
        self._inside: list[asyncio.AbstractEventLoop] = []
        self._waiting: deque[_Waiter] = deque()

    def set(self, at_once: int, per_minute: int | None) -> None:
        """Change the bounds; who is inside stays inside."""
        with self._guard:
            self.at_once = at_once
            if self.rate is not None and per_minute:
                self.rate.per_minute = per_minute  # what it remembers of the last minute counts for any bound
            else:
                self.rate = RateLimit(per_minute) if per_minute else None

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Hold a place while a request runs; first come, first served."""
        loop = asyncio.get_running_loop()
        await self._enter(loop)
        try:
            if self.rate is not None:
                await self.rate.turn()
            yield
        finally:
            self._leave(loop)

    async def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            self._forget_closed()
            if len(self._inside) < self.at_once and not self._waiting:
                self._inside.append(loop)
                return
            waiter = _Waiter(loop, loop.create_future())
            self._waiting.append(waiter)
            self._let_in()
        try:
            await waiter.turn
        except asyncio.CancelledError:
            with self._guard:
                if not waiter.granted:
                    self._waiting.remove(waiter)
                    raise
            self._leave(loop)
            raise

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            if loop in self._inside:
                self._inside.remove(loop)
            self._let_in()

    def _let_in(self) -> None:
        while self._waiting and len(self._inside) < self.at_once:
            waiter = self._waiting.popleft()
            try:
                waiter.loop.call_soon_threadsafe(_wake, waiter.turn)
            except RuntimeError:  # its loop is closed: nobody waits any more
                continue
            waiter.granted = True
            self._inside.append(waiter.loop)

    def _forget_closed(self) -> None:
        # A loop that ended without unwinding its tasks must not keep its places forever.
        self._inside = [loop for loop in self._inside if not loop.is_closed()]
        self._waiting = deque(waiter for waiter in self._waiting if not waiter.loop.is_closed())


def _wake(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)


_gates: dict[tuple[str, ...], Gate] = {}
_gates_guard = threading.Lock()


def gate_of(endpoint: tuple[str, ...], at_once: int, per_minute: int | None) -> Gate:
    """Return the process's one gate of an endpoint; the latest bounds count."""
    with _gates_guard:
        gate = _gates.get(endpoint)
        if gate is None:
            gate = _gates[endpoint] = Gate(at_once, per_minute)
    gate.set(at_once, per_minute)
    return gate

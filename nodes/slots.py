"""How many steps of a run are at work at once, and which goes first."""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

# How often it is looked whether the step ahead has come to wait, and how long it is ahead at most.
GLANCE, HEAD_START = 0.001, 0.02


@dataclass(order=True)
class _Turn:
    """A step that waits for its place; those with the longest way come first, then those that came first."""

    minus_way: float
    number: int
    leads: bool = field(compare=False)
    given: "asyncio.Future[None]" = field(compare=False)


@dataclass
class _Places:
    """The places of one run.

    Attributes:
        worked: CPU seconds of the event loop's thread.
        ahead: a step has a head start; no place is given before its end.
    """

    free: int
    worked: Callable[[], float]
    waiting: list[_Turn] = field(default_factory=list[_Turn])
    exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    ahead: bool = False

    def give(self) -> None:
        """Give free places to those that wait.

        Steps share one event loop. Begun together, all would come to their first request as late as the last one. So a
        step that others wait for has a head start: the next one begins when it waits for a model or a tool itself.
        """
        while self.free > 0 and self.waiting and not self.ahead:
            turn = heapq.heappop(self.waiting)
            if turn.given.done():  # its step was cancelled
                continue
            self.free -= 1
            turn.given.set_result(None)
            if turn.leads and self.waiting:
                loop = asyncio.get_running_loop()
                self.ahead = True
                self._look_again(loop, loop.time() + HEAD_START)

    def take_back(self) -> None:
        """Take a place back, and give it to who waits."""
        self.free += 1
        self.give()

    def _look_again(self, loop: asyncio.AbstractEventLoop, end: float) -> None:
        loop.call_later(GLANCE, self._glance, loop, loop.time(), self.worked(), end)

    def _glance(self, loop: asyncio.AbstractEventLoop, since: float, worked: float, end: float) -> None:
        now = loop.time()
        if now < end and self.worked() - worked > (now - since) / 2:
            self._look_again(loop, end)
        else:  # the loop was idle: the step ahead waits
            self.ahead = False
            self.give()


class StepSlots:
    """At most `limit` steps of a thread at work at once, the longest way first; and one lock for tools that change something.

    LangGraph's max_concurrency is set by the caller's config; this is the run's own limit, whoever calls.

    Args:
        worked: CPU seconds of the calling thread: by them it is seen that a step has come to wait.
    """

    def __init__(self, worked: Callable[[], float] = time.thread_time) -> None:
        self._worked = worked
        self._places: dict[tuple[int, str], _Places] = {}
        self._order = itertools.count()

    @asynccontextmanager
    async def slot(
        self, thread_id: str, limit: int, way: float = 0, *, leads: bool = False
    ) -> AsyncGenerator[asyncio.Lock]:
        """Wait for a place; yield the thread's lock for tools that change something.

        Args:
            thread_id: of the run.
            limit: max_parallel_steps.
            way: the larger, the earlier among those that wait.
            leads: whether other steps wait for this one.
        """
        loop = asyncio.get_running_loop()
        key = (id(loop), thread_id)
        places = self._places.setdefault(key, _Places(limit, self._worked))
        places.users += 1
        try:
            turn = _Turn(-way, next(self._order), leads, loop.create_future())
            heapq.heappush(places.waiting, turn)
            loop.call_soon(places.give)  # not yet: others may come in the same moment
            try:
                await turn.given
            except asyncio.CancelledError:
                if turn.given.done() and not turn.given.cancelled():
                    places.take_back()  # the place came together with the cancellation: hand it on
                raise
            try:
                yield places.exclusive
            finally:
                places.take_back()
        finally:
            places.users -= 1
            if not places.users:
                self._places.pop(key, None)

"""How many steps of a run are at work at once, and which goes first."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

# About what it takes a step to come to its first wait for a model or a tool.
HEAD_START = 0.005


@dataclass
class _Places:
    """The places of one run.

    Attributes:
        free: how many nobody has.
        waiting: (minus the way that is left, order of arrival, the future that gives the place).
        head_start: the one that runs now; no place is given away before its end.
    """

    free: int
    waiting: list[tuple[float, int, "asyncio.Future[None]"]] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    head_start: asyncio.TimerHandle | None = None

    def give(self) -> None:
        """Give one free place away, and the next one after a head start.

        Steps share one event loop. Begun together, all would come to their first model call as late as the last;
        one after the other, the one with the longest way comes to it at once, and the last no later than before.
        """
        while self.waiting and self.waiting[0][2].done():  # its step was cancelled
            heapq.heappop(self.waiting)
        if not self.waiting or self.free <= 0 or self.head_start is not None:
            return
        _, _, turn = heapq.heappop(self.waiting)
        self.free -= 1
        turn.set_result(None)
        self.head_start = asyncio.get_running_loop().call_later(HEAD_START, self._over)

    def _over(self) -> None:
        self.head_start = None
        self.give()

    def take_back(self) -> None:
        """Take a place back, and give it to who waits."""
        self.free += 1
        self.give()


class StepSlots:
    """At most `limit` steps of a thread at work at once, the longest way first; and one lock for tools that change something.

    LangGraph's max_concurrency is set by the caller's config; this is the run's own limit, whoever calls.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[int, str], _Places] = {}
        self._order = itertools.count()

    @asynccontextmanager
    async def slot(self, thread_id: str, limit: int, first: float = 0) -> AsyncGenerator[asyncio.Lock]:
        """Wait for a place; yield the thread's lock for tools that change something.

        Args:
            thread_id: of the run.
            limit: max_parallel_steps.
            first: the larger, the earlier among those that wait.
        """
        key = (id(asyncio.get_running_loop()), thread_id)
        places = self._places.setdefault(key, _Places(limit))
        places.users += 1
        try:
            await self._enter(places, first)
            try:
                yield places.exclusive
            finally:
                places.take_back()
        finally:
            places.users -= 1
            if not places.users:
                self._places.pop(key, None)

    async def _enter(self, places: _Places, first: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(places.waiting, (-first, next(self._order), turn))
        places.give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                places.take_back()  # it came together with the cancellation
            raise

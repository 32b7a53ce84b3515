"""How many steps of a run are at work at once, and which goes first."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

# What it takes a step at most to come to its first wait for a model or a tool.
HEAD_START = 0.005

Turn = asyncio.Future[None]


@dataclass
class _Places:
    """The places of one run.

    Attributes:
        free: how many nobody has.
        waiting: (minus the way that is left, order of arrival, the future that gives the place).
        ahead: whose head start runs; no place is given away before its end. timer: ends it.
    """

    free: int
    waiting: list[tuple[float, int, Turn]] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    ahead: Turn | None = None
    timer: asyncio.TimerHandle | None = None

    def give(self) -> None:
        """Give one free place away, and the next one after a head start.

        Steps share one event loop. Begun together, all would come to their first model call as late as the last;
        one after the other, the one with the longest way comes to it at once, and the last no later than before.
        """
        while self.waiting and self.waiting[0][2].done():  # its step was cancelled
            heapq.heappop(self.waiting)
        if not self.waiting or self.free <= 0 or self.ahead is not None:
            return
        _, _, turn = heapq.heappop(self.waiting)
        self.free -= 1
        turn.set_result(None)
        self.ahead = turn
        self.timer = asyncio.get_running_loop().call_later(HEAD_START, self.waits, turn)

    def waits(self, turn: Turn) -> None:
        """End a step's head start, if it still has one: it waits for something, or has had its time."""
        if self.ahead is turn:
            self.ahead = None
            if self.timer is not None:
                self.timer.cancel()
            self.give()

    def take_back(self, turn: Turn) -> None:
        """Take a place back, and give it to who waits."""
        self.free += 1
        self.waits(turn)
        self.give()


@dataclass(frozen=True)
class Place:
    """A step's place.

    Attributes:
        exclusive: the run's lock for tools that change something.
        waits: to be called when the step first waits for a tool: the next one begins meanwhile.
    """

    exclusive: asyncio.Lock
    waits: Callable[[], None]


class StepSlots:
    """At most `limit` steps of a thread at work at once, the longest way first.

    LangGraph's max_concurrency is set by the caller's config; this is the run's own limit, whoever calls.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[int, str], _Places] = {}
        self._order = itertools.count()

    @asynccontextmanager
    async def slot(self, thread_id: str, limit: int, first: float = 0) -> AsyncGenerator[Place]:
        """Wait for a place, and hold it.

        Args:
            thread_id: of the run.
            limit: max_parallel_steps.
            first: the larger, the earlier among those that wait.
        """
        key = (id(asyncio.get_running_loop()), thread_id)
        places = self._places.setdefault(key, _Places(limit))
        places.users += 1
        try:
            turn = await self._enter(places, first)
            try:
                yield Place(places.exclusive, partial(places.waits, turn))
            finally:
                places.take_back(turn)
        finally:
            places.users -= 1
            if not places.users:
                self._places.pop(key, None)

    async def _enter(self, places: _Places, first: float) -> Turn:
        turn: Turn = asyncio.get_running_loop().create_future()
        heapq.heappush(places.waiting, (-first, next(self._order), turn))
        places.give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                places.take_back(turn)  # it came together with the cancellation
            raise
        return turn

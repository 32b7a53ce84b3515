"""How many steps of a run are at work at once, and which goes first."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class _Places:
    free: int
    waiting: list[tuple[float, int, "asyncio.Future[None]"]] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


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
                _leave(places)
        finally:
            places.users -= 1
            if not places.users:
                self._places.pop(key, None)

    async def _enter(self, places: _Places, first: float) -> None:
        if places.free > 0 and not places.waiting:
            places.free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(places.waiting, (-first, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                _leave(places)  # the place came together with the cancellation: hand it on
            raise


def _leave(places: _Places) -> None:
    while places.waiting:
        _, _, turn = heapq.heappop(places.waiting)
        if not turn.done():
            turn.set_result(None)
            return
    places.free += 1

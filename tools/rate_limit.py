"""At most so many starts a minute, for all runs of a process; whoever is too early waits, and may be cancelled."""

import asyncio
import functools
import threading
import time
from bisect import insort
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from typing_extensions import override

MINUTE = 60.0


class RateLimit:
    """Gives turns: in any minute at most `per_minute`.

    Args:
        per_minute: how many.
        clock: seconds, monotonic; pause: waits for seconds.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._pause = pause
        self._turns: list[float] = []
        # Of threads: two event loops of a process may ask at once.
        self._guard = threading.Lock()

    async def turn(self) -> None:
        """Wait for the next turn. A caller that is cancelled while it waits gives its turn back."""
        at = self._reserved()
        try:
            while (left := at - self._clock()) > 0:
                await self._pause(left)
        except BaseException:
            with self._guard:
                self._turns.remove(at)
            raise

    def _reserved(self) -> float:
        with self._guard:
            now = self._clock()
            self._turns = [turn for turn in self._turns if turn > now - MINUTE]
            at = now
            if len(self._turns) >= self.per_minute:
                at = max(now, self._turns[-self.per_minute] + MINUTE)
            insort(self._turns, at)
            return at


_limits: dict[str, RateLimit] = {}
_limits_guard = threading.Lock()


def shared_limit(key: str, per_minute: int) -> RateLimit:
    """Return the process's one limit of a key; another number of turns begins a new one."""
    with _limits_guard:
        limit = _limits.get(key)
        if limit is None or limit.per_minute != per_minute:
            limit = _limits[key] = RateLimit(per_minute)
        return limit


def limited(tool: BaseTool, limit: RateLimit) -> BaseTool:
    """Return a tool whose body waits for its turn."""
    if isinstance(tool, StructuredTool) and tool.coroutine is not None:
        return tool.model_copy(update={"coroutine": _after_turn(tool.coroutine, limit)})
    return _Limited(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema,
        response_format=tool.response_format,
        return_direct=tool.return_direct,
        metadata=tool.metadata,
        inner=tool,
        limit=limit,
    )


def _after_turn(body: Callable[..., Awaitable[Any]], limit: RateLimit) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(body)
    async def run(*args: Any, **kwargs: Any) -> Any:
        await limit.turn()
        return await body(*args, **kwargs)

    return run


class _Limited(BaseTool):
    """Stands before a tool that is a class of its own."""

    inner: BaseTool
    limit: Any

    @override
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a tool with calls_per_minute is called with ainvoke")

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        await self.limit.turn()
        return await self.inner.ainvoke(input, config, **kwargs)

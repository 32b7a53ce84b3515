"""A stop in good order: the tool calls that run come to their end, and nothing new begins."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Drain:
    """Counts the tool calls at work in a process, and holds back new ones once a stop has been asked for.

    Args:
        grace_seconds: how long `finish` waits for them.
    """

    def __init__(self, grace_seconds: float = 20) -> None:
        self.grace_seconds = grace_seconds
        self.begun = False
        self.at_work = 0
        self._idle: asyncio.Event | None = None
        self._held: set[asyncio.Future[None]] = set()

    async def gate(self) -> None:
        """Let whoever comes by pass; after a stop has been asked for, keep them until it is taken back, or they are cancelled."""
        while self.begun:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._held.add(turn)
            try:
                await turn
            finally:
                self._held.discard(turn)

    @asynccontextmanager
    async def work(self) -> AsyncGenerator[None]:
        """Count a tool call, from before it is recorded as begun until its result is."""
        await self.gate()
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1
            if not self.at_work and self._idle is not None:
                self._idle.set()

    async def finish(self) -> int:
        """Begin nothing more, and wait for what runs; then the runs can be cancelled.

        Cancelled, it lets what it held back go on.

        Returns:
            How many calls are still at work when the grace has passed; what becomes of them is what a crash would do.
        """
        self.begun, self._idle = True, asyncio.Event()
        try:
            async with asyncio.timeout(self.grace_seconds):
                if self.at_work:
                    await self._idle.wait()
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self.begun = False
            for turn in self._held:  # each in its own event loop
                turn.get_loop().call_soon_threadsafe(_let_go, turn)
            raise
        return self.at_work


def _let_go(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)

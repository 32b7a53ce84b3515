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

    async def gate(self) -> None:
        """Let whoever comes by pass; after a stop has been asked for, keep them until they are cancelled."""
        if self.begun:
            await asyncio.Event().wait()

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

        Cancelled, it lets what comes next begin again: the runs have ended by themselves.

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
            raise
        return self.at_work

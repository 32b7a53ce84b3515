"""One run per thread: locks that the system frees when a process dies, however it dies."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.errors import StorageError, ThreadBusy
from tools.artifacts import no_room

GLANCES, GLANCE_SECONDS = 3, 0.02


class ThreadLocks:
    """Holds each thread for one run: within this process, and across processes where a folder is given.

    Args:
        folder: of lock files (flock); it must exist.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._held: set[str] = set()

    @asynccontextmanager
    async def hold(self, thread_id: str) -> AsyncGenerator[None]:
        """Hold a thread.

        Raises:
            ThreadBusy: another run holds it. StorageError: the lock cannot be made.
        """
        if thread_id in self._held:
            raise ThreadBusy(f"thread {thread_id!r} is busy: another run is working on it")
        self._held.add(thread_id)
        try:
            async with self.elsewhere(thread_id):
                yield
        finally:
            self._held.discard(thread_id)

    async def held(self, thread_ids: Iterable[str]) -> set[str]:
        """Return the threads that a run is working on, in this process or another."""
        asked = set(thread_ids)
        others = asked - self._held
        return (asked & self._held) | await self.held_elsewhere(others)

    @asynccontextmanager
    async def elsewhere(self, thread_id: str) -> AsyncGenerator[None]:
        """Hold a thread against other processes.

        Raises:
            ThreadBusy: one of them holds it. StorageError: the lock cannot be made.
        """
        lock = self._file_lock(thread_id)
        if lock is not None and not await _acquired_at_last(lock):
            raise busy(thread_id)
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    async def held_elsewhere(self, thread_ids: set[str]) -> set[str]:
        """Return those threads that other processes hold."""
        return {thread_id for thread_id in thread_ids if self._file_is_locked(thread_id)}

    def _file_is_locked(self, thread_id: str) -> bool:
        lock = self._file_lock(thread_id)
        if lock is None or not Path(lock.lock_file).exists():
            return False
        if not acquired(lock):
            return True
        lock.release()
        return False

    def _file_lock(self, thread_id: str) -> FileLock | None:
        if self._folder is None:
            return None
        return FileLock(
            self._folder / f"{thread_digest(thread_id)}.lock", is_singleton=False, thread_local=False
        )


def thread_digest(thread_id: str) -> str:
    """Return a name for a thread: whatever its id is made of, and however long it is."""
    return hashlib.sha256(thread_id.encode("utf-8", "replace")).hexdigest()[:32]


async def _acquired_at_last(lock: FileLock) -> bool:
    # Who lists the threads holds each lock for a moment, to see whether it is free.
    for _ in range(GLANCES):
        if acquired(lock):
            return True
        await asyncio.sleep(GLANCE_SECONDS)
    return acquired(lock)


def busy(thread_id: str) -> ThreadBusy:
    """Return the error for a thread that another process works on."""
    return ThreadBusy(f"thread {thread_id!r} is busy: another run or process is working on it")


def acquired(lock: FileLock) -> bool:
    """Take a lock without waiting; return whether it is ours now.

    Raises:
        StorageError: its file cannot be made or opened.
    """
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    except OSError as error:
        advice = "free some room on the disk" if no_room(error) else "make the folder writable"
        raise StorageError(f"cannot lock the thread ({error}): {advice}") from error
    return True

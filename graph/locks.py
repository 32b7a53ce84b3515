"""One run per thread: locks that the system frees when a process dies, however it dies."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.errors import StorageError, ThreadBusy


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
            ThreadBusy: another run holds it. StorageError: the lock file cannot be made.
        """
        if thread_id in self._held:
            raise ThreadBusy(f"thread {thread_id!r} is busy: another run is working on it")
        lock = self._file_lock(thread_id)
        if lock is not None and not acquired(lock):
            raise ThreadBusy(f"thread {thread_id!r} is busy: another run or process is working on it")
        self._held.add(thread_id)
        try:
            yield
        finally:
            self._held.discard(thread_id)
            if lock is not None:
                lock.release()

    def is_held(self, thread_id: str) -> bool:
        """Return whether a run is working on the thread, in this process or another."""
        if thread_id in self._held:
            return True
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
        name = hashlib.sha256(thread_id.encode("utf-8", "replace")).hexdigest()[:32]
        return FileLock(self._folder / f"{name}.lock", is_singleton=False, thread_local=False)


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
        raise StorageError(f"cannot lock the thread ({error}): make the folder writable") from error
    return True

"""SQLite for checkpoints and the Store: waits for other writers, and fails with one line that says what to do."""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import Op, Result
from langgraph.store.sqlite.aio import AsyncSqliteStore
from typing_extensions import override

from graph.serializer import serializer
from schemas.errors import StorageError
from tools.artifacts import no_room

# Below this SQLite may fail to make its log longer.
LITTLE_ROOM = 1 << 20


@asynccontextmanager
async def connection(
    path: Path, busy_timeout_seconds: float, **kwargs: Any
) -> AsyncGenerator[aiosqlite.Connection]:
    """Open a SQLite database in WAL mode; writers wait `busy_timeout_seconds` for each other.

    Raises:
        StorageError: the file cannot be opened, or is no database.
    """
    async with storage_errors(path.parent):
        conn = await aiosqlite.connect(path, timeout=busy_timeout_seconds, **kwargs)
    try:
        async with storage_errors(path.parent):
            await conn.execute("PRAGMA journal_mode=WAL")
            # With WAL this survives a kill of the process; only a power cut can take the last transactions.
            await conn.execute("PRAGMA synchronous=NORMAL")
        yield conn
    finally:
        await conn.close()


async def make_whole(path: Path, setup: Callable[[aiosqlite.Connection], Awaitable[None]]) -> None:
    """Make a database that is not there yet, with its tables, whole or not at all.

    LangGraph's migrations of a Store cannot be taken up in the middle, and two processes cannot run them at once: after
    a kill at the wrong moment, a database made in place could never be opened again.

    Raises:
        StorageError: the file cannot be made.
    """
    if path.exists():  # noqa: ASYNC240 - a look at one name
        return
    try:
        with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent) as folder:
            new = Path(folder) / path.name
            async with connection(new, 30, isolation_level=None) as conn:
                await setup(conn)
            _publish(new, path)
    except OSError as error:
        raise StorageError(storage_line(path.parent, error)) from error


def _publish(new: Path, path: Path) -> None:
    try:
        os.link(new, path)
    except FileExistsError:
        return  # another process was quicker
    except OSError:  # a file system without hard links
        if not path.exists():
            os.rename(new, path)


@asynccontextmanager
async def storage_errors(home: Path, conn: aiosqlite.Connection | None = None) -> AsyncGenerator[None]:
    """Turn errors of SQLite into StorageError, and give up the transaction that they have left open."""
    try:
        yield
    except sqlite3.Error as error:
        if conn is not None:
            # An open transaction keeps its old view of the data: every later write through it would fail.
            with suppress(sqlite3.Error, ValueError):
                await conn.rollback()
        raise StorageError(storage_line(home, first_of(error))) from error


def first_of(error: BaseException) -> Exception:
    """Return the SQLite error that came first: after a full disk LangGraph's Store commits what is no more."""
    earlier = error.__context__
    return first_of(earlier) if isinstance(earlier, sqlite3.Error) else cast("Exception", error)


def storage_line(home: Path, error: Exception) -> str:
    """Return one line about a storage error: what, where, and what to do."""
    text = " ".join(str(error).split())
    if is_full(home, error):
        return f"{home} cannot be written, the disk is full: free some room, then resume the run"
    if "locked" in text:
        advice = "try again, or raise PLANWEAVE_BUSY_TIMEOUT_SECONDS"
        return f"the database in {home} stayed locked by another process: {advice}"
    if "not a database" in text or "malformed" in text:
        advice = "move the folder away, or set PLANWEAVE_HOME to another one"
        return f"the database in {home} is damaged ({text}): {advice}"
    return f"{home} cannot be used ({text}): make it writable, or set PLANWEAVE_HOME to another folder"


def is_full(home: Path, error: Exception) -> bool:
    """Return whether an error comes of a full disk; SQLite names some of these only as an I/O error."""
    if no_room(error) or "disk is full" in str(error):
        return True
    if "disk I/O error" not in str(error):
        return False
    with suppress(OSError):
        return shutil.disk_usage(home).free < LITTLE_ROOM
    return False


class SqliteCheckpoints(AsyncSqliteSaver):
    """The checkpoints of all threads.

    Raises:
        StorageError: from every method, instead of SQLite's errors.
    """

    def __init__(self, conn: aiosqlite.Connection, home: Path) -> None:
        super().__init__(conn, serde=serializer())
        self.home = home

    @override
    async def setup(self) -> None:
        async with storage_errors(self.home, self.conn):
            await super().setup()

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        async with storage_errors(self.home, self.conn):
            return await super().aget_tuple(config)

    @override
    async def alist(self, config: RunnableConfig | None, **kwargs: Any) -> AsyncIterator[CheckpointTuple]:
        async with storage_errors(self.home, self.conn):
            async for found in super().alist(config, **kwargs):
                yield found

    @override
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        async with storage_errors(self.home, self.conn):
            return await super().aput(config, checkpoint, metadata, new_versions)

    @override
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        async with storage_errors(self.home, self.conn):
            await super().aput_writes(config, writes, task_id, task_path)

    async def sweep(self, thread_id: str) -> None:
        """Drop the checkpoints of workers, which only a running step needs.

        Workers run in namespaces of their own below the thread's (`execute:<task>`).
        """
        async with storage_errors(self.home, self.conn), self.lock:
            for table in ("checkpoints", "writes"):
                await self.conn.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns LIKE 'execute:%'",
                    (thread_id,),
                )
            await self.conn.commit()


class SqliteStore(AsyncSqliteStore):
    """The ledgers of running steps, and the list of threads.

    Raises:
        StorageError: from every method, instead of SQLite's errors.
    """

    def __init__(self, conn: aiosqlite.Connection, home: Path) -> None:
        super().__init__(conn)
        self.home = home

    @override
    async def setup(self) -> None:
        async with storage_errors(self.home, self.conn):
            await super().setup()

    async def aclose(self) -> None:
        """End the task that LangGraph batches operations in; it would live as long as anybody knows the store."""
        task = cast("asyncio.Task[None] | None", self._task)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        async with storage_errors(self.home, self.conn):
            return await super().abatch(ops)

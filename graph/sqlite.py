"""SQLite for checkpoints and the Store: waits for other writers, and fails with one line that says what to do.

LangGraph's asynchronous classes send each statement to the connection's thread on its own: a transaction goes there
and back four to six times. Here a whole one goes at once, through LangGraph's synchronous classes on the same connection.
"""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.sqlite import SqliteStore as PlainStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from typing_extensions import override

from graph.serializer import serializer
from schemas.errors import StorageError
from tools.artifacts import no_room

# Below this SQLite may fail to make its log longer.
LITTLE_ROOM = 1 << 20
SWITCH_SECONDS = 0.05

T = TypeVar("T")


async def at_once(conn: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return `work(connection)`, done in the connection's own thread, between any other two statements."""
    # aiosqlite offers nothing of the kind in public; without it every statement is a trip of its own.
    inner = cast("Any", conn)
    return await inner._execute(lambda: work(inner._conn))


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
            await _in_wal_mode(conn, busy_timeout_seconds)
            # With WAL this survives a kill of the process; only a power cut can take the last transactions.
            await conn.execute("PRAGMA synchronous=NORMAL")
        yield conn
    finally:
        await conn.close()


async def _in_wal_mode(conn: aiosqlite.Connection, seconds: float) -> None:
    """Switch a database to WAL; of several processes that make a new one, SQLite refuses all but one without a wait."""
    for again in reversed(range(max(1, round(seconds / SWITCH_SECONDS)))):
        try:
            ((pages,),) = await conn.execute_fetchall("PRAGMA page_count")
            if not pages:  # lets the file give room back (SqliteStore.abatch); later it would be too late
                await conn.execute("PRAGMA auto_vacuum=INCREMENTAL")
            await conn.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not again or "locked" not in str(error):
                raise
            await asyncio.sleep(SWITCH_SECONDS)
        else:
            return


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
        self._plain: SqliteSaver | None = None

    async def _at_once(self, work: Callable[[SqliteSaver], T]) -> T:
        if not self.is_setup:
            await self.setup()
        async with storage_errors(self.home, self.conn), self.lock:
            return await at_once(self.conn, lambda conn: work(self._synchronous(conn)))

    def _synchronous(self, conn: sqlite3.Connection) -> SqliteSaver:
        if (
            self._plain is None or self._plain.serde is not self.serde
        ):  # copies of this object have another one
            self._plain = SqliteSaver(conn, serde=self.serde)
            self._plain.is_setup = True
        return self._plain

    @override
    async def setup(self) -> None:
        async with storage_errors(self.home, self.conn):
            await super().setup()

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._at_once(lambda saver: saver.get_tuple(config))

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
        return await self._at_once(lambda saver: saver.put(config, checkpoint, metadata, new_versions))

    @override
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._at_once(lambda saver: saver.put_writes(config, writes, task_id, task_path))

    async def sweep(self, thread_id: str) -> None:
        """Drop the checkpoints of workers, which only a running step needs.

        Workers run in namespaces of their own below the thread's (`execute:<task>`).
        """

        def delete(saver: SqliteSaver) -> None:
            with saver.cursor() as cursor:
                for table in ("checkpoints", "writes"):
                    where = "thread_id = ? AND checkpoint_ns LIKE 'execute:%'"
                    cursor.execute(f"DELETE FROM {table} WHERE {where}", (thread_id,))

        await self._at_once(delete)


class SqliteStore(AsyncSqliteStore):
    """The ledgers of running steps, and the list of threads.

    Raises:
        StorageError: from every method, instead of SQLite's errors.
    """

    def __init__(self, conn: aiosqlite.Connection, home: Path) -> None:
        super().__init__(conn)
        self.home = home
        self._plain: PlainStore | None = None

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
        batch = list(ops)
        deletes = any(isinstance(op, PutOp) and op.value is None for op in batch)

        def work(conn: sqlite3.Connection) -> list[Result]:
            results = self._synchronous(conn).batch(batch)
            if deletes:
                # The ledgers of a run that has ended: the largest rows there are, and no part of what is kept.
                # (As a script: this pragma moves one page a step, and `execute` takes one step.)
                with suppress(
                    sqlite3.OperationalError
                ):  # locked by another process: the next run's end does it
                    conn.executescript("PRAGMA incremental_vacuum")
            return results

        async with storage_errors(self.home, self.conn):
            if not self.is_setup:
                await self.setup()
            async with self.lock:
                return await at_once(self.conn, work)

    def _synchronous(self, conn: sqlite3.Connection) -> PlainStore:
        if self._plain is None:
            self._plain = PlainStore(conn)
            self._plain.is_setup = True
        return self._plain

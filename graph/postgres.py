"""Postgres for checkpoints, the Store, artifacts and locks: one database for as many processes as there are.

Only imported where PLANWEAVE_DATABASE_URL is set: it needs the [postgres] extra.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from pydantic import SecretStr
from typing_extensions import override

from graph.advisory_locks import FENCES, AdvisoryLocks, Connection, Taken, speaks
from graph.database import Database
from graph.serializer import serializer
from nodes.parts import approvals_root, finished_root, ledger_root
from schemas.errors import StorageError

# Whose tokens the transaction at work depends on.
FENCE: ContextVar[list[Taken]] = ContextVar("planweave_fence", default=[])  # noqa: B039 - never changed in place
OF_A_RUN = {root("")[:2] for root in (ledger_root, finished_root, approvals_root)}
T = TypeVar("T")
Pool = AsyncConnectionPool[AsyncConnection[DictRow]]
# Held while tables are made: two processes that start at once would otherwise both make them.
MIGRATION_KEY = 7_041_995_114_268_800_437
MIGRATION_POLL_SECONDS = 0.05
# They say again, in several lines, what our own error says in one. Whoever sets up logging still gets them.
for name in ("psycopg", "psycopg.pool"):
    logging.getLogger(name).addHandler(logging.NullHandler())


@asynccontextmanager
async def postgres(
    url: SecretStr, *, patience: float, max_connections: int
) -> AsyncGenerator[tuple["PostgresCheckpoints", "PostgresStore", AdvisoryLocks]]:
    """Open checkpoints, Store and locks of a database; make or change its tables where that is needed.

    Args:
        url: postgresql://...
        patience: seconds to wait for a connection, and for another process that changes the tables.
        max_connections: of the pool; one more holds the locks.

    Raises:
        SettingsError: the URL cannot be read. StorageError: the database cannot be used.
    """
    database = Database(url, patience)
    pool = cast(
        "Pool",
        AsyncConnectionPool(
            database.conninfo,
            kwargs={**database.options, "row_factory": dict_row},
            min_size=1,
            max_size=max_connections,
            timeout=patience,
            check=speaks,
            open=False,
            name="planweave",
        ),
    )
    locks = AdvisoryLocks(await database.connect(), database.connect)
    async with aclosing(locks):
        async with database.errors():
            await pool.open()
        try:
            saver = PostgresCheckpoints(pool, database, locks)
            async with aclosing(PostgresStore(pool, database, locks)) as store:
                async with migrating(database):
                    await saver.setup()
                    await store.setup()
                    async with database.errors(), pool.connection() as conn:
                        await conn.execute(FENCES)
                yield saver, store, locks
        finally:
            await pool.close()


@asynccontextmanager
async def migrating(database: Database) -> AsyncGenerator[None]:
    """Let one process at a time change the tables.

    Asked for again and again, not waited for: a session that waits for a lock holds a snapshot, and an index that is
    built concurrently waits for all snapshots.

    Raises:
        StorageError: another process has been at it for longer than the database's patience.
    """
    deadline = time.monotonic() + database.patience
    async with await database.connect() as conn, database.errors():
        while not await _try_lock(conn):
            if time.monotonic() > deadline:
                raise StorageError(
                    f"the tables of {database.place} are being changed by another process: try again later"
                )
            await asyncio.sleep(MIGRATION_POLL_SECONDS)
        yield


async def _try_lock(conn: Connection) -> bool:
    row = await (await conn.execute("SELECT pg_try_advisory_lock(%s)", (MIGRATION_KEY,))).fetchone()
    return bool(row and row[0])


class PostgresCheckpoints(AsyncPostgresSaver):
    """The checkpoints of all threads.

    Raises:
        StorageError: from every method, instead of Postgres's errors; from those that write also where the thread's
            lock has been lost, so that two processes never work on one thread.
    """

    def __init__(self, pool: Pool, database: Database, locks: AdvisoryLocks) -> None:
        super().__init__(pool, serde=serializer())
        self.database = database
        self.locks = locks

    @override
    async def setup(self) -> None:
        async with self.database.errors():
            await super().setup()

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        get = super().aget_tuple
        return await self.database.call(lambda: get(config))

    @override
    async def alist(self, config: RunnableConfig | None, **kwargs: Any) -> AsyncIterator[CheckpointTuple]:
        async with self.database.errors():
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
        put = super().aput
        return await self._fenced(config, lambda: put(config, checkpoint, metadata, new_versions))

    @override
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        put = super().aput_writes
        await self._fenced(config, lambda: put(config, writes, task_id, task_path))

    async def _fenced(self, config: RunnableConfig, write: Callable[[], Awaitable[T]]) -> T:
        """Write; it is refused if the run's thread has been lost."""
        thread_id = str(config.get("configurable", {}).get("thread_id", ""))
        await self.locks.confirm(thread_id)
        taken = self.locks.taken().get(thread_id)
        token = FENCE.set([taken] if taken else [])
        try:
            return await self.database.call(write)
        finally:
            FENCE.reset(token)

    @override
    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[AsyncCursor[DictRow]]:
        async with super()._cursor(pipeline=pipeline) as cursor:
            await pass_fence(cursor)
            yield cursor

    async def sweep(self, thread_id: str) -> None:
        """Drop the checkpoints of workers, which only a running step needs.

        Workers run in namespaces of their own below the thread's (`execute:<task>`).
        """
        await self.database.call(lambda: self._sweep(thread_id))

    async def _sweep(self, thread_id: str) -> None:
        async with cast("Pool", self.conn).connection() as conn, conn.transaction():
            for table in (b"checkpoints", b"checkpoint_blobs", b"checkpoint_writes"):
                await conn.execute(
                    b"DELETE FROM %b WHERE thread_id = %%s AND checkpoint_ns LIKE 'execute:%%%%'" % table,
                    (thread_id,),
                )


class PostgresStore(AsyncPostgresStore):
    """The ledgers of running steps, the full texts of results, and the list of threads.

    Raises:
        StorageError: from every method, instead of Postgres's errors.
    """

    def __init__(self, pool: Pool, database: Database, locks: AdvisoryLocks) -> None:
        super().__init__(pool)
        self.database = database
        self.locks = locks

    @override
    async def setup(self) -> None:
        async with self.database.errors():
            await super().setup()

    async def aclose(self) -> None:
        """End the task that LangGraph batches operations in; it would live as long as anybody knows the store."""
        task = cast("asyncio.Task[None] | None", self._task)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        wanted, batch = list(ops), super().abatch
        written = {op.namespace[2] for op in wanted if isinstance(op, PutOp) and op.namespace[:2] in OF_A_RUN}
        # The end of a tool call is recorded even if the lock is gone, as long as nobody else has taken the thread.
        # Of all runs at once: the locks of a process stand and fall together, with the connection that keeps them.
        taken = {i: thread for i, thread in self.locks.taken().items() if ledger_root(i)[-1] in written}
        token = FENCE.set(list(taken.values()))
        try:
            return await self.database.call(lambda: batch(wanted))
        finally:
            FENCE.reset(token)

    @override
    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[AsyncCursor[DictRow]]:
        async with super()._cursor(pipeline=pipeline) as cursor:
            await pass_fence(cursor)
            yield cursor


async def pass_fence(cursor: AsyncCursor[DictRow]) -> None:
    """Begin a transaction that fails if a run which it writes for has lost its thread."""
    for taken in FENCE.get():
        await taken.check(cursor)

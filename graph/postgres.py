"""Postgres for checkpoints, the Store, artifacts and locks: one database for as many processes as there are.

Only imported where PLANWEAVE_DATABASE_URL is set: it needs the [postgres] extra.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.base import Op, Result
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg import AsyncConnection, Error, OperationalError, ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DiskFull
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from pydantic import SecretStr
from typing_extensions import override

from graph.advisory_locks import AdvisoryLocks, Connection, speaks
from graph.serializer import serializer
from schemas.errors import SettingsError, StorageError

Pool = AsyncConnectionPool[AsyncConnection[DictRow]]
# Held while tables are made: two processes that start at once would otherwise both make them.
MIGRATION_KEY = 7_041_995_114_268_800_437
MIGRATION_POLL_SECONDS = 0.05
# A connection that nothing is sent over for minutes is dropped by many networks.
KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
UNREADABLE = (
    "PLANWEAVE_DATABASE_URL cannot be read: use postgresql://user:password@host:port/database, "
    "with special characters of the password percent-encoded"
)
# They say again, in several lines, what our own error says in one. Whoever sets up logging still gets them.
for name in ("psycopg", "psycopg.pool"):
    logging.getLogger(name).addHandler(logging.NullHandler())


class Database:
    """Where the database is; errors about it name the place, and never the password.

    Args:
        url: postgresql://...
        patience: seconds to wait for a connection.

    Raises:
        SettingsError: the URL cannot be read.
    """

    def __init__(self, url: SecretStr, patience: float) -> None:
        self.conninfo = url.get_secret_value()
        self.patience = patience
        try:
            self._parts = conninfo_to_dict(self.conninfo)
        except ProgrammingError:
            raise SettingsError(UNREADABLE) from None
        if not self.conninfo.startswith(("postgresql://", "postgres://")) or "@" in self.place:
            raise SettingsError(UNREADABLE)

    @property
    def place(self) -> str:
        """The database and its server."""
        host = self._parts.get("host") or self._parts.get("hostaddr") or "localhost"
        return f"{self._parts.get('dbname') or 'default'} on {host}"

    @property
    def options(self) -> dict[str, Any]:
        """What every connection is made with."""
        named = {} if "application_name" in self._parts else {"application_name": "planweave"}
        return {"autocommit": True, "connect_timeout": max(2, round(self.patience)), **named, **KEEPALIVE}

    async def connect(self) -> Connection:
        """Return a new connection.

        Raises:
            StorageError: there is none to be had.
        """
        async with self.errors():
            return await AsyncConnection.connect(self.conninfo, **self.options)

    @asynccontextmanager
    async def errors(self) -> AsyncGenerator[None]:
        """Turn errors of Postgres into StorageError."""
        try:
            yield
        except Error as error:
            raise StorageError(self.line(error)) from error

    def line(self, error: Error) -> str:
        """Return one line about an error: what, where, and what to do."""
        if isinstance(error, PoolTimeout):
            text = f"no connection within {self.patience:g} s"
        else:
            text = " ".join(str(error).split())
        if isinstance(error, DiskFull):
            advice = "free some room on its disk, then resume the run"
        elif isinstance(error, OperationalError):
            advice = "when it is back the run can be resumed; otherwise check PLANWEAVE_DATABASE_URL"
        else:
            advice = "see the message of the database"
        return f"the database {self.place} cannot be used ({text}): {advice}"


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
            async with aclosing(PostgresStore(pool, database)) as store:
                async with migrating(database):
                    await saver.setup()
                    await store.setup()
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
        async with self.database.errors():
            return await super().aget_tuple(config)

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
        await self._confirm(config)
        async with self.database.errors():
            return await super().aput(config, checkpoint, metadata, new_versions)

    @override
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._confirm(config)
        async with self.database.errors():
            await super().aput_writes(config, writes, task_id, task_path)

    async def _confirm(self, config: RunnableConfig) -> None:
        await self.locks.confirm(str(config.get("configurable", {}).get("thread_id", "")))

    async def sweep(self, thread_id: str) -> None:
        """Drop the checkpoints of workers, which only a running step needs.

        Workers run in namespaces of their own below the thread's (`execute:<task>`).
        """
        async with self.database.errors(), cast("Pool", self.conn).connection() as conn, conn.transaction():
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

    def __init__(self, pool: Pool, database: Database) -> None:
        super().__init__(pool)
        self.database = database

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
        async with self.database.errors():
            return await super().abatch(ops)

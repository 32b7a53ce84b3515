"""One run per thread across machines: advisory locks of Postgres, held by one connection for the whole process.

The server frees them when that connection ends, so a process that is killed leaves nothing behind. A connection that
is lost while its process lives frees them too: `confirm` tells, before anything more of the run is written. A process
that could not notice (it was frozen, or cut off) is stopped by the fence: whoever takes a thread writes a token of its
own, and each write of a run looks, in its own transaction, whether its token still stands.
"""

import asyncio
import hashlib
import secrets
import selectors
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, Error
from typing_extensions import override

from graph.locks import ThreadLocks, busy
from schemas.errors import StorageError

Connection = AsyncConnection[Any]
HELD = """
    SELECT (classid::bigint << 32) | objid::bigint AS key FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
FENCES = b"CREATE TABLE IF NOT EXISTS planweave_fences (key bigint PRIMARY KEY, token bigint NOT NULL)"
TAKE = """
    INSERT INTO planweave_fences (key, token) VALUES (%s, %s)
    ON CONFLICT (key) DO UPDATE SET token = EXCLUDED.token
"""
# Fails where the token is another one. Whoever takes the thread waits until the writes that have passed are committed.
STANDS = b"""
    SELECT 1 / count(*) FROM
    (SELECT 1 FROM planweave_fences WHERE key = %s AND token = %s FOR SHARE) AS mine
"""


@dataclass(frozen=True)
class Taken:
    """A thread that a run of this process holds: the connection that keeps its lock, and its token at the fence."""

    conn: Connection
    key: int
    token: int

    async def check(self, cursor: AsyncCursor[Any]) -> None:
        """Let the transaction that a cursor has begun fail if the thread has been taken by another process."""
        await cursor.execute(STANDS, (self.key, self.token))


class AdvisoryLocks(ThreadLocks):
    """ThreadLocks in a Postgres database.

    Args:
        conn: a connection of its own, in autocommit mode; closed by `aclose`.
        connect: makes another one when that is lost; raises StorageError.
    """

    def __init__(self, conn: Connection, connect: Callable[[], Awaitable[Connection]]) -> None:
        super().__init__()
        self._conn = conn
        self._connect = connect
        self._connecting = asyncio.Lock()
        self._taken: dict[str, Taken] = {}

    @override
    @asynccontextmanager
    async def elsewhere(self, thread_id: str) -> AsyncGenerator[None]:
        conn = await self._connection()
        try:
            if not await self._ask(conn, "pg_try_advisory_lock", thread_id):
                raise busy(thread_id)
            self._taken[thread_id] = await self._fenced(conn, thread_id)
            yield
        finally:
            # Also when it is not known whether the lock was given: a run that is cancelled must not keep it.
            self._taken.pop(thread_id, None)
            with suppress(StorageError):
                await self._ask(conn, "pg_advisory_unlock", thread_id)

    @staticmethod
    async def _fenced(conn: Connection, thread_id: str) -> Taken:
        taken = Taken(conn, lock_key(thread_id), secrets.randbits(62))
        try:
            await conn.execute(TAKE, (taken.key, taken.token))
        except Error as error:
            raise lost(f"thread {thread_id!r} cannot be locked", error) from error
        return taken

    def taken(self) -> dict[str, Taken]:
        """Return the threads that runs of this process hold."""
        return dict(self._taken)

    @override
    async def held_elsewhere(self, thread_ids: set[str]) -> set[str]:
        if not thread_ids:
            return set()
        conn = await self._connection()
        try:
            rows = await (await conn.execute(HELD)).fetchall()
        except Error as error:
            raise lost("the locks of threads cannot be read", error) from error
        keys = {row[0] for row in rows}
        return {thread_id for thread_id in thread_ids if lock_key(thread_id) in keys}

    async def confirm(self, thread_id: str) -> None:
        """Make sure that a thread which a run of ours took is still ours. Costs no round trip while all is well.

        Raises:
            StorageError: the connection that held the lock is gone; another process may have the thread by now.
        """
        taken = self._taken.get(thread_id)
        if taken is None:
            return
        try:
            await speaks(taken.conn)
        except Error as error:
            raise lost(f"the lock of thread {thread_id!r} was lost", error) from error

    async def aclose(self) -> None:
        """Close the connection, which frees whatever is still held."""
        await self._conn.close()

    async def _connection(self) -> Connection:
        async with self._connecting:
            try:
                await speaks(self._conn)
            except Error:
                with suppress(Error):
                    await self._conn.close()
                self._conn = await self._connect()
            return self._conn

    @staticmethod
    async def _ask(conn: Connection, function: str, thread_id: str) -> bool:
        try:
            cursor = await conn.execute(f"SELECT {function}(%s)".encode(), (lock_key(thread_id),))
            row = await cursor.fetchone()
        except Error as error:
            raise lost(f"thread {thread_id!r} cannot be locked", error) from error
        return bool(row and row[0])


def lock_key(thread_id: str) -> int:
    """Return the key of a thread's lock: 64 bits, signed, as Postgres takes them."""
    digest = hashlib.sha256(b"planweave thread " + thread_id.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], signed=True)


async def speaks(conn: Connection) -> None:
    """Raise psycopg's error if a connection has been closed from the other end.

    A connection that is idle and has something to read was closed, or holds a notice: only then is the server asked.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(conn.fileno(), selectors.EVENT_READ)
        ready = selector.select(timeout=0)
    if ready:
        await conn.execute("")


def lost(what: str, error: Exception) -> StorageError:
    """Return the error for locks that cannot be asked for or kept."""
    why = " ".join(str(error).split())
    return StorageError(f"{what} ({why}): resume the run when the database is back")

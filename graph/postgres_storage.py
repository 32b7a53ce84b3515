"""Housekeeping in a Postgres database: what graph/housekeeping.py needs of it. Needs the [postgres] extra."""

import asyncio
from typing import Any, cast

from langgraph.store.base import BaseStore
from psycopg import AsyncConnection
from psycopg.rows import DictRow

from graph.postgres import Pool, PostgresCheckpoints
from tools.artifacts import NAMESPACE

TABLES = (b"checkpoints", b"checkpoint_blobs", b"checkpoint_writes")
LAST = b"(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = '')"
# Of a thread whose only checkpoint is the last one: values that it does not hold.
UNUSED_BLOBS = b"""
    DELETE FROM checkpoint_blobs AS blob WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND NOT EXISTS (
        SELECT 1 FROM checkpoints AS last
        WHERE last.thread_id = blob.thread_id AND last.checkpoint_ns = ''
          AND last.checkpoint -> 'channel_versions' ->> blob.channel = blob.version)
"""


class PostgresStorage:
    """The tables of one database. Other applications' tables, and artifacts outside the database, are left alone."""

    def __init__(self, saver: PostgresCheckpoints, store: BaseStore) -> None:
        self._saver, self._store = saver, store

    async def thread_ids(self) -> list[str]:
        """Return the threads that have checkpoints."""
        rows = await self._rows(b"SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1")
        return [str(row["thread_id"]) for row in rows]

    async def delete(self, thread_id: str) -> None:
        """Delete a thread's checkpoints and writes."""
        await self._delete(thread_id, *(b"DELETE FROM %b WHERE thread_id = %%(thread)s" % t for t in TABLES))

    async def drop_workers(self, thread_id: str) -> int:
        """Delete what only running steps need; return the number of rows."""
        where = b"WHERE thread_id = %(thread)s AND checkpoint_ns <> ''"
        return sum(
            await self._delete(thread_id, *(b"DELETE FROM %b %b" % (table, where) for table in TABLES))
        )

    async def drop_history(self, thread_id: str) -> int:
        """Delete all checkpoints but the last, and the values that only they hold; return how many checkpoints."""
        older = b"WHERE thread_id = %%(thread)s AND checkpoint_id < %b" % LAST
        counts = await self._delete(
            thread_id,
            b"DELETE FROM checkpoint_writes %b" % older,
            b"DELETE FROM checkpoints %b" % older,
            UNUSED_BLOBS,
        )
        return counts[1]

    async def drop_artifacts(self, keep: set[str]) -> int:
        """Delete the artifacts in the database whose references are not in `keep`; return how many."""
        # Not by asearch: it would bring all the texts along.
        rows = await self._rows(
            b"SELECT key FROM store WHERE prefix LIKE %(prefix)s", prefix=".".join(NAMESPACE) + ".%"
        )
        loose = [str(row["key"]) for row in rows if f"sha256:{row['key']}" not in keep]
        await asyncio.gather(*(self._store.adelete((*NAMESPACE, key[:2]), key) for key in loose))
        return len(loose)

    async def compact(self) -> None:
        """Let the room of what was deleted be used again. VACUUM FULL, which gives it back, would lock everybody out."""
        for table in (*TABLES, b"store"):
            await self._rows(b"VACUUM " + table)

    async def size(self) -> int:
        """Return the bytes that rows take: those of files shrink only where the last pages become empty."""
        sums = [
            b"(SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM %b AS t)" % t for t in (*TABLES, b"store")
        ]
        rows = await self._rows(b"SELECT " + b" + ".join(sums) + b" AS bytes")
        return int(rows[0]["bytes"])

    async def _rows(self, sql: bytes, **values: Any) -> list[DictRow]:
        async with self._saver.database.errors(), self._pool().connection() as conn:
            cursor = await conn.execute(sql, values or None)
            return await cursor.fetchall() if cursor.description else []

    async def _delete(self, thread_id: str, *statements: bytes) -> list[int]:
        async with self._saver.database.errors(), self._pool().connection() as conn, conn.transaction():
            return [await _count(conn, sql, thread_id) for sql in statements]

    def _pool(self) -> Pool:
        return cast("Pool", self._saver.conn)


async def _count(conn: AsyncConnection[DictRow], sql: bytes, thread_id: str) -> int:
    return (await conn.execute(sql, {"thread": thread_id})).rowcount

"""A Store in the checkpointer's own database, for graphs that are given a checkpointer and no Store.

What a step has done is kept in the Store until its evidence is in a checkpoint. In memory it would be lost in a crash
that the checkpoints survive.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from typing_extensions import override

from graph.sqlite import at_once


def store_beside(checkpointer: BaseCheckpointSaver[Any] | None) -> BaseStore:
    """Return a Store that lasts as long as a checkpointer, where that can be had: beside AsyncSqliteSaver; else in memory."""
    return BesideCheckpoints(checkpointer) if isinstance(checkpointer, AsyncSqliteSaver) else InMemoryStore()


class BesideCheckpoints(BaseStore):
    """A Store on the connection of an AsyncSqliteSaver; its tables are made when they are first used.

    One lock serves both, so that neither gets into the other's transaction. Nothing is opened, so nothing is to be closed.
    """

    def __init__(self, checkpointer: AsyncSqliteSaver) -> None:
        self._checkpointer = checkpointer
        self._plain: SqliteStore | None = None

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        batch = list(ops)
        await self._checkpointer.setup()
        async with self._checkpointer.lock:
            return await at_once(self._checkpointer.conn, lambda conn: self._work(conn, batch))

    def _work(self, conn: sqlite3.Connection, batch: list[Op]) -> list[Result]:
        if self._plain is None:
            plain = SqliteStore(conn)
            plain.setup()
            conn.commit()  # its last INSERT has opened a transaction, and `batch` opens its own
            self._plain = plain
        try:
            return self._plain.batch(batch)
        except sqlite3.Error:
            conn.rollback()  # or every later write through this connection would fail
            raise

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError("this Store is asynchronous, as its checkpointer is: use abatch")

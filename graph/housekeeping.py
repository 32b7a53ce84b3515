"""What threads leave behind: removing one, and freeing the room that nothing needs any more."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from graph.forking import place
from graph.sqlite import SqliteCheckpoints, SqliteStore, storage_errors
from graph.threads import INDEX, TaskGraph
from schemas.errors import InputError, ThreadBusy
from schemas.evidence import Source
from tools.artifacts import NAMESPACE

REFERENCE = re.compile(r"sha256:[0-9a-f]{64}")
# Where references stand besides the checkpoints: in the ledgers of running steps, and in what lanes have finished.
LEDGERS = (("planweave", "ledger"), ("planweave", "finished"))
ALL = 10_000_000


class Storage(Protocol):
    """What housekeeping needs of a database: SQLite's is below, that of Postgres in graph/postgres_storage.py."""

    async def thread_ids(self) -> list[str]:
        """Return the threads that have checkpoints."""
        ...

    async def delete(self, thread_id: str) -> None:
        """Delete a thread's checkpoints and writes."""
        ...

    async def drop_workers(self, thread_id: str) -> int:
        """Delete what only running steps need; return the number of rows."""
        ...

    async def drop_history(self, thread_id: str) -> int:
        """Delete all checkpoints but the last; return how many."""
        ...

    async def drop_artifacts(self, keep: set[str]) -> int:
        """Delete the artifacts whose references are not in `keep`; return how many."""
        ...

    async def compact(self) -> None:
        """Let the room of what was deleted be used again."""
        ...

    async def size(self) -> int:
        """Return the bytes that everything takes."""
        ...


@dataclass(frozen=True)
class Pruned:
    """What was freed.

    Attributes:
        bytes: on disk; with Postgres, of rows.
        rows: of workers of ended runs.
        checkpoints: older than the last one of an ended run.
        artifacts: that no source refers to.
        busy: threads at work, which were left alone; artifacts were then left, too.
    """

    bytes: int = 0
    rows: int = 0
    checkpoints: int = 0
    artifacts: int = 0
    busy: list[str] = field(default_factory=list[str])


async def remove(graph: TaskGraph, thread_id: str) -> None:
    """Delete a thread: its checkpoints, writes, ledgers, and its place in the list.

    Full texts of results stay until `prune`: other threads may refer to them.

    Raises:
        InputError: there is no such thread. ThreadBusy: a run is working on it.
    """
    saver, store = cast("BaseCheckpointSaver[Any]", graph.checkpointer), store_of(graph)
    async with graph.locks.hold(thread_id):
        listed = [
            item for item in await store.asearch(INDEX, limit=ALL) if item.value["thread_id"] == thread_id
        ]
        if not listed and await saver.aget_tuple(place(thread_id)) is None:
            raise InputError(f"there is no thread {thread_id!r}")
        storage = known_storage(saver, store)
        await (storage.delete(thread_id) if storage else saver.adelete_thread(thread_id))
        await graph._forget(thread_id)  # pyright: ignore[reportPrivateUsage] - the ledgers are the graph's own
        # Last: what a kill has left over is still listed, and can be removed again.
        await asyncio.gather(*(store.adelete(item.namespace, item.key) for item in listed))


async def prune(graph: TaskGraph, *, history: bool = False) -> Pruned:
    """Delete what nothing needs any more; threads that are not at their end keep all they have.

    Args:
        graph: from open_graph.
        history: also the checkpoints of ended runs but the last; they cannot be forked from any more.

    Raises:
        InputError: the graph keeps its runs elsewhere.
    """
    storage = storage_of(graph)
    before = await storage.size()
    found = Pruned()
    for thread_id in await storage.thread_ids():
        try:
            found = await _prune_thread(graph, storage, thread_id, found, history=history)
        except ThreadBusy:
            found = replace(found, busy=[*found.busy, thread_id])
    keep = await references(graph)
    # A run at work may refer to a text again that nothing refers to just now; one that has just begun is only listed.
    found = replace(found, busy=sorted({*found.busy, *await _at_work(graph)}))
    if not found.busy:
        found = replace(found, artifacts=await storage.drop_artifacts(keep))
        await storage.compact()
    return replace(found, bytes=max(0, before - await storage.size()))


async def _at_work(graph: TaskGraph) -> set[str]:
    listed = await store_of(graph).asearch(INDEX, limit=ALL)
    return await graph.locks.held(str(item.value["thread_id"]) for item in listed)


async def _prune_thread(
    graph: TaskGraph, storage: Storage, thread_id: str, found: Pruned, *, history: bool
) -> Pruned:
    async with graph.locks.hold(thread_id):
        if (await graph.aget_state(place(thread_id))).tasks:
            return found
        rows = await storage.drop_workers(thread_id)
        await graph._forget(thread_id)  # pyright: ignore[reportPrivateUsage] - the ledgers are the graph's own
        checkpoints = await storage.drop_history(thread_id) if history else 0
    return replace(found, rows=found.rows + rows, checkpoints=found.checkpoints + checkpoints)


async def references(graph: TaskGraph) -> set[str]:
    """Return the references of all full texts that a source, in whatever checkpoint, refers to."""
    saver, store = cast("BaseCheckpointSaver[Any]", graph.checkpointer), store_of(graph)
    found: set[str] = set()
    async for checkpoint in saver.alist(None):
        values: Mapping[str, Any] = checkpoint.checkpoint["channel_values"]
        writes = [value for _, channel, value in checkpoint.pending_writes or () if channel == "sources"]
        for sources in (values.get("sources"), *writes):
            # `schedule` writes them as a whole, in an Overwrite.
            listed: Any = getattr(sources, "value", sources) or ()
            found |= {source.artifact for source in cast("list[Source]", listed) if source.artifact}
    for namespace in LEDGERS:
        for item in await store.asearch(namespace, limit=ALL):
            found.update(REFERENCE.findall(str(item.value)))
    return found


def store_of(graph: TaskGraph) -> BaseStore:
    """Return the Store of a graph."""
    return graph.store or graph.parts.store


def storage_of(graph: TaskGraph) -> Storage:
    """Return the database of a graph.

    Raises:
        InputError: it has none that can be pruned.
    """
    storage = known_storage(cast("object", graph.checkpointer), store_of(graph))
    if storage is None:
        raise InputError("only what open_graph keeps, in SQLite files or in Postgres, can be pruned")
    return storage


def known_storage(saver: object, store: BaseStore) -> Storage | None:
    """Return the database behind a checkpointer, if it is one of ours."""
    if isinstance(saver, SqliteCheckpoints):
        return SqliteStorage(saver, store)
    if find_spec("psycopg") is None:
        return None
    from graph.postgres import PostgresCheckpoints
    from graph.postgres_storage import PostgresStorage

    return PostgresStorage(saver, store) if isinstance(saver, PostgresCheckpoints) else None


class SqliteStorage:
    """The SQLite files and the artifacts under one home folder."""

    def __init__(self, saver: SqliteCheckpoints, store: BaseStore) -> None:
        self._saver, self._store, self._home = saver, store, saver.home

    async def thread_ids(self) -> list[str]:
        """Return the threads that have checkpoints."""
        async with storage_errors(self._home, self._saver.conn), self._saver.lock:
            rows = await self._saver.conn.execute_fetchall("SELECT DISTINCT thread_id FROM checkpoints")
        return sorted(str(row[0]) for row in rows)

    async def delete(self, thread_id: str) -> None:
        """Delete a thread's checkpoints and writes."""
        async with storage_errors(self._home, self._saver.conn):
            await self._saver.adelete_thread(thread_id)

    async def drop_workers(self, thread_id: str) -> int:
        """Delete what only running steps need; return the number of rows."""
        return await self._delete("checkpoint_ns <> ''", thread_id)

    async def drop_history(self, thread_id: str) -> int:
        """Delete all checkpoints but the last; return how many."""
        last = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"
        async with storage_errors(self._home, self._saver.conn), self._saver.lock:
            rows = await self._saver.conn.execute_fetchall(
                f"SELECT count(*) FROM checkpoints WHERE thread_id = :thread AND checkpoint_id < {last}",
                {"thread": thread_id},
            )
        await self._delete(f"checkpoint_id < {last}", thread_id, tables=("writes", "checkpoints"))
        return int(next(iter(rows))[0])

    async def _delete(
        self, where: str, thread_id: str, tables: tuple[str, ...] = ("checkpoints", "writes")
    ) -> int:
        count = 0
        async with storage_errors(self._home, self._saver.conn), self._saver.lock:
            for table in tables:
                done = await self._saver.conn.execute(
                    f"DELETE FROM {table} WHERE thread_id = :thread AND {where}", {"thread": thread_id}
                )
                count += done.rowcount
            await self._saver.conn.commit()
        return count

    async def drop_artifacts(self, keep: set[str]) -> int:
        """Delete the artifacts whose references are not in `keep`; return how many.

        Only those of this home: another folder or bucket (PLANWEAVE_ARTIFACTS) may serve other homes as well.
        """
        stored = [
            item
            for item in await self._store.asearch(NAMESPACE, limit=ALL)
            if f"sha256:{item.key}" not in keep
        ]
        for item in stored:
            await self._store.adelete(item.namespace, item.key)
        return len(stored) + await asyncio.to_thread(_drop_files, self._home / "artifacts", keep)

    async def compact(self) -> None:
        """Give the free pages back to the file system."""
        async with storage_errors(self._home, self._saver.conn), self._saver.lock:
            await _vacuum(self._saver.conn)
        if isinstance(self._store, SqliteStore):
            async with storage_errors(self._home, self._store.conn), self._store.lock:
                await _vacuum(self._store.conn)

    async def size(self) -> int:
        """Return the bytes that databases and artifacts take."""
        return await asyncio.to_thread(_bytes_under, self._home)


async def _vacuum(conn: aiosqlite.Connection) -> None:
    await conn.execute("VACUUM")
    # What VACUUM writes stands in the log until it is taken over.
    await conn.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")


def _bytes_under(home: Path) -> int:
    files = [*home.glob("*.sqlite*"), *(home / "artifacts").rglob("*")]
    return sum(path.stat().st_size for path in files if path.is_file())


def _drop_files(folder: Path, keep: set[str]) -> int:
    count = 0
    for path in folder.glob("??/??/*"):
        # A temporary file is what a kill has left of a text: no run is at work now.
        if path.is_file() and f"sha256:{path.name}" not in keep:
            path.unlink(missing_ok=True)
            count += 1
    return count

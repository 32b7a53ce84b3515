"""The durable default: SQLite files, a store, artifacts and locks under PLANWEAVE_HOME."""

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.tools import BaseTool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.sqlite.aio import AsyncSqliteStore

from agents.checks import StepVerifier
from agents.models import Models
from graph.builder import build_graph
from graph.settings import Settings, load_settings
from graph.threads import TaskGraph, ThreadLocks, serializer
from nodes.parts import GoalVerifier
from schemas.errors import SettingsError, StorageError
from tools.artifacts import FileArtifacts
from tools.documents import document_tools
from tools.files import file_tools


@asynccontextmanager
async def open_graph(
    settings: Settings | None = None,
    *,
    models: Models | None = None,
    tools: Sequence[BaseTool] = (),
    docs: Path | None = None,
    root: Path | None = None,
    verify_step: StepVerifier | None = None,
    verify_goal: GoalVerifier | None = None,
) -> AsyncGenerator[TaskGraph]:
    """Open the application with everything it keeps, and close it again.

    Args:
        settings: None = read from the environment.
        models: None = those the settings name, or the embedded model.
        tools: in addition to those over `docs` and `root`.
        docs: folder for search_documents, read_document and query_tables; None = from the settings.
        root: folder for list_files, read_file and search_files; None = from the settings.
        verify_step: see build_graph.
        verify_goal: see build_graph.

    Raises:
        SettingsError, ToolDefinitionError: before anything is opened. StorageError: home cannot be used.
    """
    settings = settings or load_settings()
    every = [*folder_tools(docs or settings.docs, root or settings.root), *tools]
    home = settings.home
    async with AsyncExitStack() as stack:
        try:
            (home / "locks").mkdir(parents=True, exist_ok=True)
            checkpoints = await stack.enter_async_context(connection(home / "checkpoints.sqlite", settings))
            memories = await stack.enter_async_context(
                connection(home / "store.sqlite", settings, autocommit=True)
            )
            saver = AsyncSqliteSaver(checkpoints, serde=serializer())
            await saver.setup()
            store = AsyncSqliteStore(memories)
            await store.setup()
        except (OSError, sqlite3.Error) as error:
            raise StorageError(storage_line(home, error)) from error
        graph = build_graph(
            models,
            every,
            verify_step=verify_step,
            verify_goal=verify_goal,
            checkpointer=saver,
            store=store,
            artifacts=FileArtifacts(home / "artifacts"),
            locks=ThreadLocks(home / "locks"),
            parts={"sweep": sweeper(saver)},
            settings=settings,
        )
        try:
            yield graph
        except sqlite3.Error as error:
            raise StorageError(storage_line(home, error)) from error


@asynccontextmanager
async def connection(path: Path, settings: Settings, **kwargs: Any) -> AsyncGenerator[aiosqlite.Connection]:
    """Open a SQLite database in WAL mode; writers wait `busy_timeout_seconds` for each other."""
    kwargs = {"isolation_level": None} if kwargs.get("autocommit") else {}
    async with aiosqlite.connect(path, timeout=settings.busy_timeout_seconds, **kwargs) as conn:
        await conn.execute("PRAGMA journal_mode=WAL")
        # With WAL this survives a kill of the process; only a power cut can take the last transactions.
        await conn.execute("PRAGMA synchronous=NORMAL")
        yield conn


def storage_line(home: Path, error: Exception) -> str:
    """Return one line about a storage error: what, where, and what to do."""
    text = str(error)
    if "locked" in text:
        return f"the database in {home} stayed locked by another process: try again, or raise PLANWEAVE_BUSY_TIMEOUT_SECONDS"
    if "not a database" in text or "malformed" in text:
        return f"the database in {home} is damaged ({text}): move the folder away, or set PLANWEAVE_HOME to another one"
    return f"{home} cannot be used ({text}): make it writable, or set PLANWEAVE_HOME to another folder"


def sweeper(saver: AsyncSqliteSaver) -> Any:
    """Return the function that drops the checkpoints of workers whose evidence is stored.

    Workers run in namespaces of their own below the thread's (`execute:<task>`); only a running step needs them.
    """

    async def sweep(thread_id: str) -> None:
        async with saver.lock:
            for table in ("checkpoints", "writes"):
                await saver.conn.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns LIKE 'execute:%'",
                    (thread_id,),
                )
            await saver.conn.commit()

    return sweep


def folder_tools(docs: Path | None, root: Path | None) -> list[BaseTool]:
    """Return the tools over the given folders.

    Raises:
        SettingsError: a folder does not exist.
    """
    tools: list[BaseTool] = []
    for folder in (docs, root):
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"{folder} is not a folder")
    if docs is not None:
        tools += document_tools(docs)
        tools += tables_in(docs)
    if root is not None:
        tools += file_tools(root)
    return tools


def tables_in(docs: Path) -> list[BaseTool]:
    """Return query_tables where there are tables and the [tables] extra is installed."""
    from importlib.util import find_spec

    from tools.tables import table_tools

    return table_tools(docs) if find_spec("duckdb") else []

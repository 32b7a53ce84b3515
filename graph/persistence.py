"""What outlives a process: SQLite files under PLANWEAVE_HOME, or the Postgres database that is set."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from pydantic import SecretStr

from agents.checks import StepVerifier
from agents.models import Models
from graph.builder import build_graph
from graph.locks import ThreadLocks
from graph.settings import Settings, load_settings
from graph.sqlite import SqliteCheckpoints, SqliteStore, connection, make_whole, storage_line
from graph.threads import TaskGraph
from graph.toolbox import Chosen, offered_tools, server_tools
from nodes.parts import GoalVerifier
from schemas.errors import SettingsError, StorageError
from tools.artifacts import ArtifactStore, FileArtifacts, FsspecArtifacts, StoreArtifacts


@asynccontextmanager
async def open_graph(
    settings: Settings | None = None,
    *,
    models: Models | None = None,
    tools: Sequence[BaseTool] = (),
    docs: Path | None = None,
    root: Path | None = None,
    workspace: Path | None = None,
    web: bool | None = None,
    mcp: Path | None = None,
    own: Sequence[str] = (),
    verify_step: StepVerifier | None = None,
    verify_goal: GoalVerifier | None = None,
) -> AsyncGenerator[TaskGraph]:
    """Open the application with everything it keeps, and close it again.

    Args:
        settings: None = read from the environment.
        models: None = those the settings name, or the embedded model.
        tools: in addition to those that the following name; each of them: None = from the settings.
        docs: folder for search_documents, read_document and query_tables.
        root: folder for list_files, read_file and search_files.
        workspace: folder for write_file, edit_file and run_command (after a person's yes), and for reading files.
        web: whether fetch_url and search_web are offered.
        mcp: a .mcp.json; its servers run while the graph is open.
        own: tools of your own, as "module:attribute" or entry points.
        verify_step: see build_graph.
        verify_goal: see build_graph.

    Raises:
        SettingsError, ToolDefinitionError: models or tools cannot be used. StorageError: home cannot be used;
            every run on the graph may raise it too, and can be resumed.
    """
    settings = settings or load_settings()
    chosen = Chosen.of(settings, docs=docs, root=root, workspace=workspace, web=web, mcp=mcp, own=own)
    offered = offered_tools(chosen, settings)
    async with kept(settings) as where, server_tools(chosen, where.artifacts) as served:
        yield build_graph(
            models,
            [*offered, *served, *tools],
            verify_step=verify_step,
            verify_goal=verify_goal,
            checkpointer=where.saver,
            store=where.store,
            artifacts=where.artifacts,
            locks=where.locks,
            parts={"sweep": where.sweep},
            settings=settings,
        )


@dataclass(frozen=True)
class Kept:
    """Where runs are kept: what build_graph needs of it.

    Attributes:
        sweep: drops the checkpoints of workers from a thread.
    """

    saver: BaseCheckpointSaver[Any]
    store: BaseStore
    artifacts: ArtifactStore
    locks: ThreadLocks
    sweep: Callable[[str], Awaitable[None]]


@asynccontextmanager
async def kept(settings: Settings) -> AsyncGenerator[Kept]:
    """Open what the settings name, and close it again.

    Raises:
        SettingsError: the URL cannot be read, or an extra is missing. StorageError: it cannot be used.
    """
    home, url = settings.home, settings.database_url
    if url is None:
        async with databases(home, settings.busy_timeout_seconds) as (saver, store):
            artifacts = artifacts_in(settings.artifacts, store) or FileArtifacts(home / "artifacts")
            yield Kept(saver, store, artifacts, ThreadLocks(home / "locks"), saver.sweep)
        return
    async with postgres_database(url, settings) as found:
        yield found


@asynccontextmanager
async def postgres_database(url: SecretStr, settings: Settings) -> AsyncGenerator[Kept]:
    """Open a Postgres database."""
    if find_spec("psycopg") is None or find_spec("langgraph.checkpoint.postgres") is None:
        raise SettingsError("PLANWEAVE_DATABASE_URL needs the [postgres] extra: pip install -e '.[postgres]'")
    from graph.postgres import postgres

    patience, connections = settings.busy_timeout_seconds, settings.database_connections
    async with postgres(url, patience=patience, max_connections=connections) as (saver, store, locks):
        artifacts = artifacts_in(settings.artifacts, store) or StoreArtifacts(store)
        yield Kept(saver, store, artifacts, locks, saver.sweep)


def artifacts_in(where: str | None, store: BaseStore | None) -> ArtifactStore | None:
    """Return the artifacts that PLANWEAVE_ARTIFACTS names; None where it names none.

    Args:
        where: the setting.
        store: for "store"; None = the Store that comes with each run.

    Raises:
        SettingsError: it is a URL, and fsspec or its driver for such URLs is not installed.
    """
    if where is None:
        return None
    if where == "store":
        return StoreArtifacts(store)
    return FsspecArtifacts(where) if "://" in where else FileArtifacts(Path(where))


@asynccontextmanager
async def databases(
    home: Path, busy_timeout_seconds: float
) -> AsyncGenerator[tuple[SqliteCheckpoints, SqliteStore]]:
    """Open the checkpoints and the Store under a folder, which is made.

    Raises:
        StorageError: the folder or a file cannot be used.
    """
    try:
        (home / "locks").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(storage_line(home, error)) from error

    async def make_store(conn: aiosqlite.Connection) -> None:
        async with aclosing(SqliteStore(conn, home)) as store:
            await store.setup()

    await make_whole(home / "store.sqlite", make_store)
    async with (
        connection(home / "checkpoints.sqlite", busy_timeout_seconds) as checkpoints,
        # The Store begins and ends its transactions itself.
        connection(home / "store.sqlite", busy_timeout_seconds, isolation_level=None) as memories,
    ):
        saver = SqliteCheckpoints(checkpoints, home)
        await saver.setup()
        async with aclosing(SqliteStore(memories, home)) as store:
            await store.setup()
            yield saver, store

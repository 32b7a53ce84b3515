"""The durable default: SQLite files, a store, artifacts and locks under PLANWEAVE_HOME."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from langchain_core.tools import BaseTool

from agents.checks import StepVerifier
from agents.models import Models
from graph.builder import build_graph
from graph.locks import ThreadLocks
from graph.settings import Settings, load_settings
from graph.sqlite import SqliteCheckpoints, SqliteStore, connection, storage_line
from graph.threads import TaskGraph
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
        SettingsError, ToolDefinitionError: models or tools cannot be used. StorageError: home cannot be used;
            every run on the graph may raise it too, and can be resumed.
    """
    settings = settings or load_settings()
    every = [*folder_tools(docs or settings.docs, root or settings.root), *tools]
    home = settings.home
    async with databases(home, settings.busy_timeout_seconds) as (saver, store):
        yield build_graph(
            models,
            every,
            verify_step=verify_step,
            verify_goal=verify_goal,
            checkpointer=saver,
            store=store,
            artifacts=FileArtifacts(home / "artifacts"),
            locks=ThreadLocks(home / "locks"),
            parts={"sweep": saver.sweep},
            settings=settings,
        )


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

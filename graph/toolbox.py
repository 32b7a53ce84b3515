"""Which tools a run is offered: those over folders, the web, the workspace, MCP servers, and the person's own."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from langchain_core.tools import BaseTool

from graph.settings import Settings, environment
from schemas.errors import SettingsError
from tools.artifacts import ArtifactStore
from tools.documents import document_tools
from tools.files import file_tools


@dataclass(frozen=True)
class Chosen:
    """What the tools are over; see open_graph."""

    docs: Path | None = None
    root: Path | None = None
    workspace: Path | None = None
    web: bool = False
    mcp: Path | None = None
    own: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        docs: Path | None = None,
        root: Path | None = None,
        workspace: Path | None = None,
        web: bool | None = None,
        mcp: Path | None = None,
        own: Sequence[str] = (),
    ) -> "Chosen":
        """Return what is given, and what the settings say for the rest."""
        return cls(
            docs=docs or settings.docs,
            root=root or settings.root,
            workspace=workspace or settings.workspace,
            web=settings.web if web is None else web,
            mcp=mcp or settings.mcp,
            own=tuple(own) or tuple(settings.tools),
        )


def offered_tools(chosen: Chosen, settings: Settings) -> list[BaseTool]:
    """Return the tools that need no server.

    Raises:
        SettingsError: a folder does not exist, an extra is missing, or a tool of one's own cannot be loaded.
    """
    tools = folder_tools(chosen.docs, chosen.root or chosen.workspace)
    if chosen.workspace is not None:
        from tools.workspace import workspace_tools

        tools += workspace_tools(existing(chosen.workspace), environment())
    if chosen.web:
        from tools.web import web_tools

        key = settings.tavily_api_key
        tools += web_tools(tavily_key=key.get_secret_value() if key else None)
    if chosen.own:
        from tools.own import own_tools

        tools += own_tools(chosen.own)
    return tools


@asynccontextmanager
async def server_tools(chosen: Chosen, artifacts: ArtifactStore) -> AsyncGenerator[list[BaseTool]]:
    """Give the tools of MCP servers, which run until the end.

    Raises:
        SettingsError: the file cannot be used, or a server does not start.
    """
    if chosen.mcp is None:
        yield []
        return
    from tools.mcp import mcp_tools

    async with mcp_tools(chosen.mcp, environment=environment(), artifacts=artifacts) as tools:
        yield tools


def folder_tools(docs: Path | None, root: Path | None) -> list[BaseTool]:
    """Return the tools over the given folders.

    Raises:
        SettingsError: a folder does not exist.
    """
    tools: list[BaseTool] = []
    if docs is not None:
        tools += document_tools(existing(docs))
        tools += tables_in(docs)
    if root is not None:
        tools += file_tools(existing(root))
    return tools


def tables_in(docs: Path) -> list[BaseTool]:
    """Return query_tables where there are tables and the [tables] extra is installed."""
    from tools.tables import table_tools

    return table_tools(docs) if find_spec("duckdb") else []


def existing(folder: Path) -> Path:
    """Return the folder.

    Raises:
        SettingsError: there is none.
    """
    if not folder.is_dir():
        raise SettingsError(f"{folder} is not a folder")
    return folder

"""Tools of MCP servers, from a `.mcp.json`: sessions opened for a run, closed at its end, and opened anew when lost.

What a server says of its tools decides how they run: one that only reads runs unasked and in parallel, every other
needs a person's approval. A server that a person has put into the file is believed.

langchain-mcp-adapters is not used: its tools are bound to one session, lose answers that are structured only, fail on
audio, and let a server's error output through to the terminal.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from langchain_core.tools import BaseTool
from typing_extensions import override

from schemas.errors import SettingsError, ToolDefinitionError
from tools.artifacts import ArtifactStore
from tools.mcp_config import read_servers
from tools.mcp_results import result_of
from tools.mcp_session import McpServer, NotConnected
from tools.registry import Permission
from tools.results import SourceDraft, clean_text

if TYPE_CHECKING:
    from mcp.types import Tool, ToolAnnotations

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class McpTool(BaseTool):
    """A tool of a server. Its arguments go to the server as they are: the server checks them."""

    server: Any
    remote_name: str
    artifacts: Any = None

    @override
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("tools of MCP servers are called with ainvoke")

    # An argument may have any name, "self" and "config" among them.
    @override
    async def _arun(self, /, *args: Any, **arguments: Any) -> tuple[str, list[SourceDraft]]:
        clean = _cleaned(arguments)
        answer = await cast("McpServer", self.server).call(self.remote_name, clean)
        return await result_of(answer, self.name, clean, self.artifacts)


@asynccontextmanager
async def mcp_tools(
    path: Path,
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
    artifacts: ArtifactStore | None = None,
) -> AsyncGenerator[list[BaseTool]]:
    """Open the servers that a file lists, and close them again.

    Args:
        path: the `.mcp.json`.
        environment: for variables in it, as ${NAME}.
        artifacts: where images and audio are kept.

    Raises:
        SettingsError: the file cannot be used, a server does not start (each is named), or the [mcp] extra is missing.
        ToolDefinitionError: names of tools clash or cannot be used.
    """
    if find_spec("mcp") is None:
        raise SettingsError("MCP servers need the [mcp] extra")
    servers = {name: McpServer(name, config) for name, config in read_servers(path, environment).items()}
    try:
        yield _offered(await _listed(servers), servers, artifacts)
    finally:
        await asyncio.gather(*(server.close() for server in servers.values()))


async def _listed(servers: Mapping[str, McpServer]) -> "dict[str, list[Tool]]":
    """Return the tools of each server; all are started at once."""
    results = await asyncio.gather(*(server.tools() for server in servers.values()), return_exceptions=True)
    problems = [str(result) for result in results if isinstance(result, NotConnected)]
    if problems:
        raise SettingsError("; ".join(problems))
    found: dict[str, list[Tool]] = {}
    for name, result in zip(servers, results, strict=True):
        if isinstance(result, BaseException):
            raise result
        found[name] = result
    return found


def _offered(
    listed: "Mapping[str, list[Tool]]", servers: Mapping[str, McpServer], artifacts: ArtifactStore | None
) -> list[BaseTool]:
    """Return the tools under the names server_tool.

    Raises:
        ToolDefinitionError: every clash and every unusable name is told.
    """
    tools: list[BaseTool] = []
    owners: dict[str, str] = {}
    problems: list[str] = []
    for server, offers in listed.items():
        for offer in offers:
            name, origin = f"{server}_{offer.name}", f"{offer.name[:80]!r} of MCP server {server!r}"
            if not _NAME.fullmatch(name):
                problems.append(
                    f"tool {origin}: {name[:80]!r} is not 1 to 64 of the characters A-Z a-z 0-9 _ -"
                )
            elif name in owners:
                problems.append(f"{name!r} is the name of two tools: {owners[name]} and {origin}")
            else:
                owners[name] = origin
                tools.append(_tool(name, offer, servers[server], artifacts))
    if problems:
        raise ToolDefinitionError("; ".join(problems))
    return tools


def _tool(name: str, offer: "Tool", server: McpServer, artifacts: ArtifactStore | None) -> BaseTool:
    # Some servers leave out what an empty list of arguments needs by the letter.
    schema: dict[str, Any] = {"type": "object", "properties": {}, **offer.inputSchema}
    return McpTool(
        name=name,
        description=clean_text(offer.description or offer.title or name),
        args_schema=schema,
        response_format="content_and_artifact",
        metadata={
            "permission": permission_of(offer.annotations),
            "idempotent": is_idempotent(offer.annotations),
        },
        server=server,
        remote_name=offer.name,
        artifacts=artifacts,
    )


def permission_of(hints: "ToolAnnotations | None") -> Permission:
    """Return what a tool may do by its server's hints: read, write, or, where they do not say, network."""
    if hints is not None and hints.readOnlyHint:
        return "read"
    if hints is not None and (hints.readOnlyHint is False or hints.destructiveHint is not None):
        return "write"
    return "network"


def is_idempotent(hints: "ToolAnnotations | None") -> bool:
    """Return whether a failed call may be repeated: by the server's hint; reading may be, unless it says no."""
    if hints is None:
        return False
    return hints.idempotentHint if hints.idempotentHint is not None else bool(hints.readOnlyHint)


def _cleaned(value: Any) -> Any:
    """Return JSON without lone surrogates and NUL: the library cannot send them, and would drop the connection."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(k)): _cleaned(v) for k, v in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in cast("list[Any]", value)]
    return value

"""A connection to one MCP server that is opened when needed, and anew when it is lost."""

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO, cast

from langchain_core.tools import ToolException

from tools.mcp_config import ServerConfig
from tools.results import clean_text

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp.types import CallToolResult, Tool

OPEN_SECONDS = 60
"""For a server to start and to list its tools: some are installed when they are first started."""
CLOSE_SECONDS = 10
MAX_TOOLS = 500
_HTTP_SECONDS = 30
_EVENT_SECONDS = 300
_LOST = ("Connection closed", "Session terminated")
_ERROR_OUTPUT_BYTES = 4_096
_ERROR_OUTPUT_CHARS = 200


class NotConnected(Exception):
    """A server could not be reached; the message is one line without secrets."""


@dataclass
class _Connection:
    """A session and the task that holds it open: anyio wants it opened and closed by one task."""

    session: "ClientSession"
    incoming: Any
    task: "asyncio.Task[None]"
    stop: asyncio.Event

    @property
    def alive(self) -> bool:
        # The transport drops its end of the stream when the server's output ends.
        return not self.task.done() and self.incoming.statistics().open_send_streams > 0


class McpServer:
    """One server of a run.

    Args:
        name: under which messages name it.
        config: how it is reached.
    """

    def __init__(self, name: str, config: ServerConfig) -> None:
        self.name = name
        self._config = config
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()
        self._errors: TextIO | None = None

    async def tools(self) -> "list[Tool]":
        """Return the server's tools, connecting first.

        Raises:
            NotConnected: it cannot be reached, or does not answer in time.
        """
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                return await self._listed((await self._connected()).session)
        except TimeoutError:
            raise NotConnected(self._line(f"no answer within {OPEN_SECONDS} s")) from None
        except NotConnected:
            raise
        except Exception as error:
            raise NotConnected(self._line(_reason(error))) from error

    async def _listed(self, session: "ClientSession") -> "list[Tool]":
        from mcp.types import PaginatedRequestParams

        capabilities = session.get_server_capabilities()
        if capabilities is None or capabilities.tools is None:
            return []
        found: list[Tool] = []
        cursor: str | None = None
        while len(found) < MAX_TOOLS:
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
            found += page.tools
            cursor = page.nextCursor
            if not cursor:
                break
        return found[:MAX_TOOLS]

    async def call(self, tool: str, arguments: dict[str, Any]) -> "CallToolResult":
        """Call a tool, reconnecting first if the connection was lost.

        Raises:
            ConnectionError: the server is not there, or went away during the call. ToolException: it refuses.
        """
        try:
            connection = await self._connected()
        except NotConnected as error:
            raise ConnectionError(str(error)) from None
        asked = asyncio.ensure_future(connection.session.call_tool(tool, arguments))
        asked.add_done_callback(
            lambda late: late.cancelled() or late.exception()
        )  # a late error has no reader
        try:
            await asyncio.wait({asked, connection.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not asked.done():
                asked.cancel()
        if asked.cancelled() or not asked.done():
            raise ConnectionError(self._line("it went away during the call"))
        error = asked.exception()
        if error is None:
            return asked.result()
        raise await self._failed(connection, error)

    async def _failed(self, connection: _Connection, error: BaseException) -> Exception:
        """Return what a call's error means: the server's answer, or that it is gone."""
        from mcp.shared.exceptions import McpError

        answered = isinstance(error, McpError) and error.error.message not in _LOST
        if answered and connection.alive:
            return ToolException(clean_text(str(error))[:1000])
        if isinstance(error, RuntimeError) and connection.alive:
            return ToolException(self._line("its answer breaks its own output schema"))
        connection.stop.set()  # the next call opens another
        return ConnectionError(self._line("it went away during the call"))

    async def _connected(self) -> _Connection:
        async with self._opening:
            if self._connection is None or not self._connection.alive or self._connection.stop.is_set():
                await self.close()
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> _Connection:
        ready: asyncio.Future[tuple[ClientSession, Any]] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        task = asyncio.create_task(self._hold(ready, stop), name=f"mcp-{self.name}")
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                session, incoming = await ready
        except TimeoutError:
            await _ended(task)
            raise NotConnected(self._line(f"no answer within {OPEN_SECONDS} s")) from None
        except BaseException:
            await _ended(task)
            raise
        return _Connection(session, incoming, task, stop)

    async def _hold(self, ready: "asyncio.Future[tuple[ClientSession, Any]]", stop: asyncio.Event) -> None:
        try:
            async with self._session() as opened:
                if not ready.done():
                    ready.set_result(opened)
                    await stop.wait()
        except Exception as error:  # noqa: BLE001 - told to whoever waits; a lost connection is met by the next call
            if not ready.done():
                ready.set_exception(NotConnected(self._line(_reason(error))))
        finally:
            ready.cancel()

    @asynccontextmanager
    async def _session(self) -> "AsyncGenerator[tuple[ClientSession, Any]]":
        from mcp.client.session import ClientSession
        from mcp.types import Implementation

        # What the library logs would end up on the terminal.
        if not logging.getLogger("mcp").handlers:
            logging.getLogger("mcp").addHandler(logging.NullHandler())
        async with AsyncExitStack() as stack:
            incoming, outgoing = await self._streams(stack)
            client = Implementation(name="planweave", version="1")
            session = await stack.enter_async_context(ClientSession(incoming, outgoing, client_info=client))
            await session.initialize()
            yield session, incoming

    async def _streams(self, stack: AsyncExitStack) -> tuple[Any, Any]:
        config = self._config
        if config.kind == "stdio":
            from mcp.client.stdio import StdioServerParameters, stdio_client

            # Closed with the server, not with the session: what it said last tells why the session ended.
            self._errors = self._errors or tempfile.TemporaryFile("w")  # noqa: SIM115
            parameters = StdioServerParameters(
                command=config.command, args=config.args, env=config.env, cwd=config.cwd
            )
            return await stack.enter_async_context(stdio_client(parameters, errlog=self._errors))
        if config.kind == "sse":
            from mcp.client.sse import sse_client

            return await stack.enter_async_context(sse_client(config.url, config.headers))
        import httpx
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        client = create_mcp_http_client(config.headers, httpx.Timeout(_HTTP_SECONDS, read=_EVENT_SECONDS))
        await stack.enter_async_context(client)
        streams = await stack.enter_async_context(streamable_http_client(config.url, http_client=client))
        return streams[0], streams[1]

    async def close(self) -> None:
        """End the session; a server that was started is stopped, at the latest by force."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.stop.set()
            await asyncio.wait({connection.task}, timeout=CLOSE_SECONDS)
            await _ended(connection.task)
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _line(self, reason: str) -> str:
        said = self._said()
        return f"MCP server {self.name!r}: {reason}" + (f"; its last words: {said}" if said else "")

    def _said(self) -> str:
        """Return the last line of the error output of a server that was started, without secrets."""
        if self._errors is None:
            return ""
        # The server writes through the same open file: a seek of ours would move its place.
        number = self._errors.fileno()
        size = os.fstat(number).st_size
        data = os.pread(number, _ERROR_OUTPUT_BYTES, max(0, size - _ERROR_OUTPUT_BYTES))
        lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        said = clean_text(lines[-1]) if lines else ""
        for secret in self._config.secrets():
            said = said.replace(secret, "…")
        return said[:_ERROR_OUTPUT_CHARS]


async def _ended(task: "asyncio.Task[None]") -> None:
    if not task.done():
        task.cancel()
    await asyncio.wait({task}, timeout=CLOSE_SECONDS)


def _reason(error: BaseException) -> str:
    """Return why a server cannot be reached, without URL and headers: a key may be in them."""
    if isinstance(error, BaseExceptionGroup):
        return _reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return f"it answered {status}"
    if isinstance(error, FileNotFoundError):
        return "there is no such program"
    if isinstance(error, PermissionError):
        return "its program may not be run"
    name = type(error).__name__
    if name != "McpError":
        return f"it cannot be reached ({name})"
    return (
        "it ended before it answered"
        if str(error) in _LOST
        else f"it answered: {clean_text(str(error))[:200]}"
    )

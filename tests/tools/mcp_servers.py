"""MCP servers for the tests: the odd answers that servers give. Run with the name of one, and perhaps --http PORT."""

import os
import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

READS = ToolAnnotations(readOnlyHint=True)


def odd(port: int) -> FastMCP:
    """Answers of every kind, and a tool that ends the server."""
    server = FastMCP("odd", host="127.0.0.1", port=port, log_level="CRITICAL")

    @server.tool(annotations=READS)
    def blocks() -> list[TextContent]:
        """Two text blocks."""
        return [TextContent(type="text", text="first"), TextContent(type="text", text="second {x}")]

    @server.tool(annotations=READS)
    def structured() -> CallToolResult:
        """A structured answer and no content."""
        return CallToolResult(content=[], structuredContent={"价格": 39, "list": [1, None]})

    @server.tool(annotations=READS)
    def sources() -> CallToolResult:
        """Sources with ids of the server's own."""
        rows = [{"source_id": "doc-1", "text": "Basic costs 39", "url": "https://e.test/1"}]
        return CallToolResult(content=[], structuredContent={"hits": rows})

    @server.tool(annotations=READS, structured_output=False)
    def picture() -> list[object]:
        """A text and an image."""
        return [TextContent(type="text", text="a chart"), Image(data=b"\x89PNG", format="png")]

    @server.tool(annotations=READS)
    def other() -> CallToolResult:
        """Audio, resources and a link."""
        return CallToolResult(
            content=[
                AudioContent(type="audio", data="AAAA", mimeType="audio/wav"),
                ResourceLink(type="resource_link", name="the list", uri="https://e.test/list"),
                EmbeddedResource(
                    type="resource", resource=TextResourceContents(uri="file:///a.txt", text="inner text")
                ),
                EmbeddedResource(
                    type="resource",
                    resource=BlobResourceContents(uri="file:///a.bin", blob="AAAA", mimeType="application/x"),
                ),
            ]
        )

    @server.tool(annotations=READS)
    def nothing() -> CallToolResult:
        """An empty answer."""
        return CallToolResult(content=[])

    behaving(server)
    hinted(server)
    return server


def behaving(server: FastMCP) -> None:
    """Add tools that fail, echo, and end the server."""

    @server.tool(annotations=READS)
    def fails() -> str:
        """An error."""
        raise ToolError("the ledger is closed")

    @server.tool(annotations=READS)
    def echo(config: str = "", self: str = "", run_manager: str = "") -> str:
        """Arguments with names that programs use themselves."""
        return f"{config}/{self}/{run_manager}"

    @server.tool(annotations=READS)
    def dies_once(mark: str) -> str:
        """Ends the server's process, unless the file is there."""
        if Path(mark).exists():
            return "alive again"
        Path(mark).write_text("died")
        os._exit(3)

    @server.tool()
    def pid() -> str:
        """The server's process."""
        return str(os.getpid())


def hinted(server: FastMCP) -> None:
    """Add tools that say little of themselves."""

    @server.tool()
    def unhinted() -> str:
        """Says nothing of itself."""
        return "done"

    @server.tool(annotations=ToolAnnotations(destructiveHint=True, idempotentHint=True))
    def deletes() -> str:
        """Says that it destroys."""
        return "deleted"

    @server.tool(annotations=ToolAnnotations(openWorldHint=False, idempotentHint=True))
    def closed() -> str:
        """Says only that its world is closed."""
        return "done"


def named(port: int) -> FastMCP:
    """Tools with the names that the environment gives."""
    server = FastMCP("named", host="127.0.0.1", port=port, log_level="CRITICAL")
    for name in os.environ["TOOL_NAMES"].split(","):
        server.add_tool(lambda: "done", name=name, description="d")
    return server


def broken(port: int) -> FastMCP:
    """Ends before it answers."""
    sys.stderr.write(f"starting\ncannot open the ledger with {os.environ.get('LEDGER_KEY', 'no key')}\n")
    raise SystemExit(4)


if __name__ == "__main__":
    http = int(sys.argv[3]) if "--http" in sys.argv else 0
    {"odd": odd, "named": named, "broken": broken}[sys.argv[1]](http or 8000).run(
        "streamable-http" if http else "stdio"
    )

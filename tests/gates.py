"""A tool whose bodies say that they have begun, and may be held until they are let go."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.tools import StructuredTool

PATIENCE = 10


class Gates:
    """Events for each query, which is also the id of the step that asks it.

    Attributes:
        began: set by the tool's body; ended: by the step_finished event, where a test lets `follow` see it.
        open: what a held body waits for.
    """

    def __init__(self, *names: str, held: tuple[str, ...] = ()) -> None:
        self.began = {name: asyncio.Event() for name in names}
        self.ended = {name: asyncio.Event() for name in names}
        self.open = {name: asyncio.Event() for name in names}
        self.held = held
        self.runs: list[str] = []

    def follow(self, event: dict[str, Any]) -> None:
        if event["type"] == "step_finished" and event["step_id"] in self.ended:
            self.ended[event["step_id"]].set()

    def tool(self, name: str = "look", **metadata: Any) -> StructuredTool:
        async def look(query: str) -> Any:
            """Look something up."""
            self.runs.append(query)
            self.began[query].set()
            if query in self.held:
                await asyncio.wait_for(self.open[query].wait(), PATIENCE)
            return [{"source_id": f"s-{query}", "text": f"text about {query}"}]

        return StructuredTool.from_function(coroutine=look, name=name, metadata=metadata or None)

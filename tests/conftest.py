from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from langchain_core.tools import BaseTool, StructuredTool

from tests.backends import backend, postgres_server, postgres_url, where  # noqa: F401 - fixtures for all tests

# A deadline for each example measures the machine's load; a test that hangs is stopped by its timeout.
settings.register_profile("planweave", deadline=None)
settings.load_profile("planweave")


class Look:
    """A tool that counts its bodies and returns one named source."""

    def __init__(self, name: str = "look", source_id: str | None = "s1", **metadata: Any) -> None:
        self.runs: list[str] = []
        self.name = name
        self.source_id = source_id
        self.metadata = metadata
        self.before: Callable[[str], Any] | None = None

    def tool(self) -> BaseTool:
        async def look(query: str) -> Any:
            """Look something up."""
            self.runs.append(query)
            if self.before is not None:
                answer = self.before(query)
                if hasattr(answer, "__await__"):
                    answer = await answer
                if answer is not None:
                    return answer
            if self.source_id is None:
                return f"text about {query}"
            return [
                {"source_id": self.source_id, "text": f"text about {query}", "url": f"https://e.test/{query}"}
            ]

        return StructuredTool.from_function(coroutine=look, name=self.name, metadata=self.metadata or None)


@pytest.fixture
def look() -> Look:
    return Look()


def config(thread_id: str = "t1") -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id}}

"""The worker agents: one for each set of tools, built when it is first wanted."""

from typing import Any, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import ToolRetryMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import BaseTool

from agents.calling import RoleModel
from agents.failures import is_transient
from agents.middleware.at_work import at_work
from agents.middleware.budget import ToolBudget
from agents.middleware.stack import WorkerStack
from agents.prompts import prompt
from agents.worker_model import WorkerModel
from schemas.context import Autonomy
from schemas.evidence import Finding
from tools.artifacts import ArtifactStore
from tools.registry import ToolRegistry
from tools.web import FetchTool
from tools.whole_text import NAME as READ_DOCUMENT
from tools.whole_text import whole_text_tool

RETRY_DELAY = 0.5


class Crew:
    """Agents that share a model; they hold nothing of the steps they serve (agents/middleware/at_work.py)."""

    def __init__(self, role: RoleModel, registry: ToolRegistry, artifacts: ArtifactStore) -> None:
        self._role = role
        self._registry = registry
        self._artifacts = artifacts
        self._agents: dict[tuple[str, ...], Any] = {}

    def agent(self, tools: list[str] | None, grant: int, autonomy: Autonomy) -> Any:
        """Return the agent for a step.

        Args:
            tools: Step.tools: None = every tool that runs unasked, [] = none.
            grant: tool runs reserved for the step; 0 = no tools.
            autonomy: of the run.
        """
        wanted = self._registry.for_step(tools, autonomy) if grant > 0 else []
        key = tuple(tool.name for tool in wanted)
        if key not in self._agents:
            self._agents[key] = self._build(self._with_reader(wanted))
        return self._agents[key]

    def _with_reader(self, tools: list[BaseTool]) -> list[BaseTool]:
        """Return the tools; with any of them comes read_document, for results too long to show."""
        if not tools:
            return []
        registry = self._registry
        documents = registry.spec(READ_DOCUMENT).tool if READ_DOCUMENT in registry.names() else None
        folder = documents if any(tool.name == "search_documents" for tool in tools) else None
        reader = whole_text_tool(lambda: at_work().sources(), self._artifacts, folder)
        own = [tool for tool in tools if tool.name != READ_DOCUMENT]
        # Which addresses may be opened is the affair of the step that asks.
        own = [t.for_step(lambda: at_work().known_texts()) if isinstance(t, FetchTool) else t for t in own]
        return [*own, reader]

    def _build(self, tools: list[BaseTool]) -> Any:
        repeatable = [tool.name for tool in tools if self._registry.spec(tool.name).idempotent]
        retry = ToolRetryMiddleware(
            max_retries=2,
            tools=cast("Any", repeatable),
            retry_on=worth_retrying,
            on_failure="error",
            initial_delay=RETRY_DELAY,
            max_delay=2 * RETRY_DELAY,
            jitter=False,
        )
        return create_agent(
            cast("Any", WorkerModel(self._role)),
            tools,
            system_prompt=prompt("worker"),
            middleware=[WorkerStack(ToolBudget(self._registry), retry)],
            response_format=ToolStrategy(Finding, handle_errors=True, tool_message_content="Finding taken."),
            name="worker",
        )


def worth_retrying(error: Exception) -> bool:
    """Return whether a tool's error may pass, and there is time and budget to see it pass."""
    step = at_work()
    # Where no run is left, the tool's own error says more than "not run".
    return is_transient(error) and step.seconds_left() > 4 * RETRY_DELAY and not step.ledger.spent

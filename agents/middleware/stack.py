"""The worker's layers as one middleware.

LangChain wraps each hook of each middleware in a trace of its own (two thread hops a call), and runs after_model as a
superstep of its own (a checkpoint). A step passes through a dozen of them. As one middleware the layers stay one
concern per file, and cost plain calls.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import override

from agents.middleware.answer import FindingAnswer, next_turn
from agents.middleware.budget import ToolBudget, ToolErrors, ToolHandler, ToolResult
from agents.middleware.fit import FitRequest

ModelHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class WorkerStack(AgentMiddleware[AgentState[Any], Any, Any]):
    """Model calls pass the answer, the budget, then the fit; tool calls the errors, the retries, then the budget."""

    def __init__(self, budget: ToolBudget, retry: AgentMiddleware[Any, Any, Any]) -> None:
        super().__init__()
        self._model_layers = (FindingAnswer(), budget, FitRequest())
        self._tool_layers = (ToolErrors(), retry, budget)

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: ModelHandler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        inner: Any = handler
        for layer in reversed(self._model_layers):
            inner = partial(layer.awrap_model_call, handler=inner)
        response: ModelResponse[Any] = await inner(request)
        if response.structured_response is not None:
            return response
        turn = next_turn([*request.messages, *response.result])
        return ExtendedModelResponse(response, Command(update=turn)) if turn else response

    @override
    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        inner: Any = handler
        for layer in reversed(self._tool_layers):
            inner = partial(layer.awrap_tool_call, handler=inner)
        return await inner(request)

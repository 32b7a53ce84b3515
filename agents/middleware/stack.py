"""The worker's layers as one middleware.

LangChain wraps each hook of each middleware in a trace of its own, and runs after_model as a superstep of its own (a
checkpoint). A step passes through a dozen of them. As one middleware the layers stay one concern per file, and cost
plain calls. Its hooks are functions that return coroutines: LangSmith begins and ends the trace of an `async def` in
other threads, also where nothing is traced, and that takes longer than all layers together.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

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

Hook = TypeVar("Hook", bound=Callable[..., Any])
ModelHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def _signed(hook: Hook) -> Hook:
    """Write a hook's signature on it: LangSmith asks for it in every call, and working it out takes longer than the rest."""
    cast("Any", hook).__signature__ = inspect.signature(hook)
    return hook


class WorkerStack(AgentMiddleware[AgentState[Any], Any, Any]):
    """Model calls pass the answer, the budget, then the fit; tool calls the errors, the retries, then the budget."""

    def __init__(self, budget: ToolBudget, retry: AgentMiddleware[Any, Any, Any]) -> None:
        super().__init__()
        self._model_layers = (FindingAnswer(), budget, FitRequest())
        self._tool_layers = (ToolErrors(), retry, budget)

    @override
    @_signed
    def awrap_model_call(
        self, request: ModelRequest[Any], handler: ModelHandler
    ) -> "CoroutineType[Any, Any, ModelResponse[Any] | ExtendedModelResponse[Any]]":
        return self._model_call(request, handler)

    async def _model_call(
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
    @_signed
    def awrap_tool_call(
        self, request: ToolCallRequest, handler: ToolHandler
    ) -> "CoroutineType[Any, Any, ToolResult]":
        return self._tool_call(request, handler)

    async def _tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        inner: Any = handler
        for layer in reversed(self._tool_layers):
            inner = partial(layer.awrap_tool_call, handler=inner)
        return await inner(request)

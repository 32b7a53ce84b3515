"""The worker's model as LangChain's agent uses it: its tools bound in the way that the server takes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import ValidationError

from agents.calling import Line, RoleModel
from agents.endpoints import Method, model_name
from agents.ladder import Ladder, MethodRefused, with_schema
from agents.lean_schema import lean
from agents.middleware.at_work import at_work
from agents.spoken import sound
from schemas.evidence import Finding, Usage

FINDING = "Finding"
_DEFINITION = lean(Finding.model_json_schema())
_CHOICES: dict[Method, str] = {"named": FINDING, "required": "any", "auto": "auto"}


def _unused(**fields: Any) -> str:
    raise NotImplementedError("the answer's schema is no tool that runs")


# By name and arguments the same tool as LangChain's; its schema is one that every server takes.
_FINDING_TOOL = StructuredTool.from_function(
    _unused, name=FINDING, description=str(_DEFINITION["description"]), args_schema=_DEFINITION
)


@dataclass(frozen=True)
class _Bound:
    """All that the agent wants of a bound model. A Runnable around it would only add a trace."""

    ainvoke: Callable[[list[AnyMessage]], Awaitable[AIMessage]]


class WorkerModel:
    """Stands where the agent expects a chat model, and asks the step's model, or its fallback."""

    def __init__(self, role: RoleModel) -> None:
        self._role = role
        # An agent offers the same tools again and again, and writing their schemas takes longer than all else here.
        self._offers: dict[tuple[int, Method, tuple[str, ...]], Runnable[Any, Any]] = {}

    def bind_tools(self, tools: Sequence[BaseTool], **kwargs: Any) -> Runnable[Any, Any]:
        """Return what answers a request with these tools; how the tools are forced is decided here, not by the caller."""
        kwargs.pop("tool_choice", None)

        return cast("Runnable[Any, Any]", _Bound(partial(self._kept, list(tools), kwargs)))

    async def _kept(
        self, tools: list[BaseTool], settings: dict[str, Any], request: list[AnyMessage]
    ) -> AIMessage:
        """Return the answer of an interrupted run, as long as there is one, else the model's."""
        answers = at_work().ledger.answers
        turn = 1 + sum(isinstance(message, AIMessage) for message in request)
        message = answers.again(turn)
        if message is None:
            message = await self._answer(tools, request, settings)
            answers.note(turn, message)
        return message

    async def _answer(
        self, tools: list[BaseTool], request: list[AnyMessage], settings: dict[str, Any]
    ) -> AIMessage:
        model = at_work().model_of(self._role)
        line = Line(model, self._role.asking, _count_failed)
        real = [tool for tool in tools if tool.name != FINDING]
        ladder = Ladder(model, self._role.asking.structured, with_tools=bool(real))
        if not real and any(isinstance(m, AIMessage) and not m.tool_calls for m in request):
            ladder.missed(ladder.method)  # asked before, it answered in prose
        while True:
            method = ladder.method
            try:
                bound, sent = self._bound(model, method, real, request, settings)
            except NotImplementedError:
                ladder.not_offered(method)
                continue
            try:
                message = await line.ask_once(bound, sent, partial(ladder.refused, method))
            except MethodRefused:
                continue
            return _one_finding(sound(message, [tool.name for tool in tools]))

    def _bound(
        self,
        model: BaseChatModel,
        method: Method,
        real: Sequence[BaseTool],
        request: list[AnyMessage],
        settings: dict[str, Any],
    ) -> tuple[Runnable[Any, Any], Sequence[AnyMessage]]:
        if method == "text":
            return model, with_schema(request, FINDING, _DEFINITION)
        if settings:
            return _offering(model, method, real, settings), request
        key = (id(model), method, tuple(tool.name for tool in real))
        if key not in self._offers:
            self._offers[key] = _offering(model, method, real, {})
        return self._offers[key], request


def _offering(
    model: BaseChatModel, method: Method, real: Sequence[BaseTool], settings: dict[str, Any]
) -> Runnable[Any, Any]:
    """Return the model with the tools and the Finding offered in one way."""
    if method == "json_schema":
        definition = {"title": FINDING, **_DEFINITION}
        return model.with_structured_output(definition, method="json_schema", include_raw=True)
    return model.bind_tools([*real, _FINDING_TOOL], tool_choice=_CHOICES[method], **settings)


def _count_failed(model: BaseChatModel) -> None:
    step = at_work()
    step.spent = step.spent + Usage.of_call("worker", model_name(model))


def _one_finding(message: AIMessage) -> AIMessage:
    """Return the message with one Finding at most: the first that is valid, else the last."""
    findings = [call for call in message.tool_calls if call["name"] == FINDING]
    if len(findings) < 2:
        return message
    kept = next((call for call in findings if _is_valid(call["args"])), findings[-1])
    calls = [call for call in message.tool_calls if call["name"] != FINDING or call is kept]
    return message.model_copy(update={"tool_calls": calls})


def _is_valid(args: Any) -> bool:
    try:
        Finding.model_validate(args)
    except ValidationError:
        return False
    return True

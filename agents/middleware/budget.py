"""Tool budgets that bind: each tool body is reserved, recorded before and after, and never repeated once finished.

Stands inside ToolRetryMiddleware, so that it sees every retry. Counts live in the ledger, not here.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import BaseModel, ValidationError
from typing_extensions import override

from agents.bodies import release_behind, run_body
from agents.call_record import CallRecord, call_identity, call_key
from agents.failures import one_line, tool_error_type
from agents.ledger import StepLedger
from agents.middleware.approval import ask_person
from agents.middleware.at_work import at_work
from agents.middleware.notices import end_notice, soft_notice
from agents.middleware.repeats import goes_in_circles, repeated_result
from schemas.errors import LimitReached, StorageError
from schemas.events import ToolFinished, ToolStarted
from schemas.evidence import ErrorType
from schemas.plan import validation_lines
from tools.own_thread import bodies_noted
from tools.registry import ToolRegistry, ToolSpec

ToolResult = ToolMessage | Command[Any]
ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolResult]]


class ToolBudget(AgentMiddleware[AgentState[Any], Any, Any]):
    """Reserves and records tool runs; takes the tools away when they are spent, so that only the Finding is left."""

    def __init__(self, registry: ToolRegistry) -> None:
        super().__init__()
        self.registry = registry

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        messages, step = request.messages, at_work()
        # Calls that raised have left no message: they are counted here, answers also after a crash.
        calls = max(step.requests, sum(isinstance(message, AIMessage) for message in messages))
        if calls >= step.max_model_calls:
            raise LimitReached("max_model_calls_per_step", step.max_model_calls)
        step.requests = calls + 1
        if goes_in_circles(messages, self.registry):
            step.ledger.close("no_progress")
        elif calls == step.max_model_calls - 1 or step.tokens_are_spent:
            step.ledger.close("model_limit")
        end = end_notice(step)
        if end and request.tools:
            request = request.override(tools=[], messages=[*messages, HumanMessage(end)])
        elif request.tools and (soft := soft_notice(step)):
            request = request.override(messages=[*messages, HumanMessage(soft)])
        return await handler(request)

    @override
    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        if request.tool is None:
            return await handler(request)  # an unknown tool: ToolNode says which there are
        spec = self.registry.spec(request.tool_call["name"])
        identity = identity_of(request)
        past = await self._past(request, identity, spec)
        if past is not None:
            return past
        problem = argument_problem(request)
        if problem:
            return self._answer(request, problem, ok=False)
        if spec.permission == "read":
            return await self._run(request, handler, spec, identity)
        return await self._run_alone(request, handler, spec, identity)

    async def _past(self, request: ToolCallRequest, identity: str, spec: ToolSpec) -> ToolMessage | None:
        """Return the answer of a call that is not to run, because it has: here, or before a crash."""
        ledger, call = at_work().ledger, request.tool_call
        known = ledger.records.get(identity)
        if known is not None and known.state == "ok":
            return self._answer(request, known.content)
        twin = ledger.twin(call_key(call["name"], call["args"])) if spec.idempotent else None
        if twin is not None:
            return self._answer(
                request, repeated_result(request.state["messages"], twin.content, at_work().max_request_chars)
            )
        if known is None:
            return None
        if known.state == "refused":
            return self._answer(request, known.content, ok=False)
        if known.state == "error" and identity in ledger.replayed and not spec.idempotent:
            return self._answer(request, failed_line(known.tool, known.content), ok=False)
        if known.state == "running" and known.runs > 0 and not may_repeat(spec):
            text = "This call was interrupted; whether it took effect is not known. It is not repeated."
            await ledger.failed(known, text, "tool")
            return self._answer(request, text, ok=False)
        return None

    async def _refused(self, request: ToolCallRequest, identity: str) -> ToolMessage:
        call = request.tool_call
        return self._answer(
            request, await at_work().ledger.refuse(identity, call["name"], call["args"]), ok=False
        )

    async def _run_alone(
        self, request: ToolCallRequest, handler: ToolHandler, spec: ToolSpec, identity: str
    ) -> ToolResult:
        """Run a tool that changes something: after a person's yes, and never beside another one."""
        if at_work().ledger.spent:
            return await self._refused(request, identity)
        approvals = at_work().approvals
        if not approvals.given(spec.name):
            decision = ask_person(
                at_work().ledger.step_id,
                spec,
                request.tool_call,
                lambda arguments: argument_problem(with_arguments(request, arguments)),
            )
            if decision.rejected:
                return self._answer(request, f"A person rejected this call: {decision.reason}", ok=False)
            if decision.always:
                await approvals.allow(spec.name)
            request = with_arguments(request, decision.arguments)
        exclusive = at_work().exclusive
        await exclusive.acquire()
        with bodies_noted() as bodies:
            try:
                return await self._run(request, handler, spec, identity)
            finally:
                release_behind(exclusive, bodies)

    async def _run(
        self, request: ToolCallRequest, handler: ToolHandler, spec: ToolSpec, identity: str
    ) -> ToolResult:
        async with at_work().drain.work():
            return await self._counted(request, handler, spec, identity)

    async def _counted(
        self, request: ToolCallRequest, handler: ToolHandler, spec: ToolSpec, identity: str
    ) -> ToolResult:
        call = request.tool_call
        record = at_work().ledger.reserve(identity, call["name"], call["args"])
        if record is None:
            return await self._refused(request, identity)
        await at_work().ledger.started(record)
        at_work().emit(self._started(record))
        began = at_work().clock()
        try:
            result = await run_body(lambda: handler(request), spec.name, spec.timeout_seconds)
        except GraphBubbleUp:
            await at_work().ledger.unrun(record)
            raise
        except Exception as error:
            await at_work().ledger.failed(record, one_line(error), tool_error_type(error))
            self._ended(record, began, ok=False)
            raise
        return await self._record(request, record, result, began)

    async def _record(
        self, request: ToolCallRequest, record: CallRecord, result: ToolResult, began: float
    ) -> ToolResult:
        if isinstance(result, Command):
            await at_work().ledger.finished(record, "", [])
            self._ended(record, began, ok=True)
            return result
        if result.status == "error":
            text = str(result.text)[:1000]
            await at_work().ledger.failed(record, text, "tool")
            self._ended(record, began, ok=False)
            return self._answer(request, text, ok=False)
        content = await at_work().ledger.finished(record, result.content, result.artifact)
        self._ended(record, began, ok=True)
        return self._answer(request, content)

    def _started(self, record: CallRecord) -> ToolStarted:
        return ToolStarted(
            step_id=at_work().ledger.step_id,
            tool=record.tool,
            arguments=record.arguments,
            calls_used=at_work().ledger.used,
        )

    def _ended(self, record: CallRecord, began: float, *, ok: bool) -> None:
        ids = [source.id for source in record.sources]
        seconds = round(at_work().clock() - began, 3)
        event = ToolFinished(
            step_id=at_work().ledger.step_id, tool=record.tool, ok=ok, seconds=seconds, source_ids=ids
        )
        at_work().emit(event)

    def _answer(self, request: ToolCallRequest, content: str, *, ok: bool = True) -> ToolMessage:
        call = request.tool_call
        status = "success" if ok else "error"
        return ToolMessage(content, tool_call_id=str(call["id"]), name=call["name"], status=status)


class ToolErrors(AgentMiddleware[AgentState[Any], Any, Any]):
    """Outermost: what a tool raises becomes one line for the model. Cancellation and LangGraph's signals pass."""

    @override
    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        call = request.tool_call
        try:
            return await handler(request)
        except (GraphBubbleUp, StorageError):
            raise  # without its database the run cannot go on; it can be resumed
        except Exception as error:  # noqa: BLE001 - whatever a tool does wrong stays inside its step
            text = failed_line(call["name"], one_line(error))
            return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status="error")


def failed_line(tool: str, error: str) -> str:
    """Return what the model is told of a tool that failed."""
    return f"{tool} failed: {error}"


def with_arguments(request: ToolCallRequest, arguments: dict[str, Any]) -> ToolCallRequest:
    """Return the request with the arguments that a person wants."""
    asked = request.tool_call
    return request.override(
        tool_call=ToolCall(name=asked["name"], args=arguments, id=asked["id"], type="tool_call")
    )


def identity_of(request: ToolCallRequest) -> str:
    """Return what names the call in the ledger."""
    messages: list[AnyMessage] = request.state["messages"]
    call = request.tool_call
    answers = [message for message in messages if isinstance(message, AIMessage)]
    asked = answers[-1].tool_calls if answers else []
    places = [
        n for n, other in enumerate(asked) if (other["id"], other["args"]) == (call["id"], call["args"])
    ]
    key = call_key(call["name"], call["args"])
    return call_identity(len(answers), places[0] if places else 0, str(call["id"]), key)


def may_repeat(spec: ToolSpec) -> bool:
    """Return whether a call that a crash cut off is run again: it only reads, or running it twice is the same."""
    return spec.permission == "read" or spec.idempotent


def argument_problem(request: ToolCallRequest) -> str:
    """Return what is wrong with a call's arguments, or "". A call that cannot be made is not a tool run."""
    schema = request.tool.tool_call_schema if request.tool else None
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return ""  # a plain JSON schema: the tool's own server checks it
    try:
        schema.model_validate(request.tool_call["args"])
    except ValidationError as error:
        return f"Wrong arguments for {request.tool_call['name']}: " + "; ".join(validation_lines(error)[:5])
    return ""


def limit_error(ledger: StepLedger) -> ErrorType | None:
    """Return the limit that cut the work of this attempt, if one did."""
    return ledger.closed or ("tool_budget" if ledger.refused else None)


def refused_calls(ledger: StepLedger) -> list[str]:
    """Return one line for each call that the budget refused, for the evidence's `missing`."""
    return [f"not run, tool budget of {ledger.grant} spent: {call}" for call in ledger.refused]

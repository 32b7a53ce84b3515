"""The worker's answer: a Finding by tool call or as JSON in text; one nudge for prose, at most three tries."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError
from typing_extensions import override

from agents.candidates import unwrapped
from agents.failures import ModelCallFailed, one_line
from agents.middleware.at_work import StepAtWork, at_work
from agents.retrying import with_retries
from agents.structured import MAX_ATTEMPTS, UNREADABLE, is_truncated, json_objects, raise_refusal, usage_of
from schemas.errors import AnswerInvalid, LimitReached, PlanweaveError
from schemas.evidence import Finding, Usage
from schemas.plan import validation_lines

NUDGE = "planweave_nudge"
NUDGE_TEXT = (
    "Answer with one Finding now: call the tool Finding, or write it as one JSON object: "
    '{"summary": "...", "source_ids": ["..."], "criteria": [{"criterion": "...", "met": true, "reason": "..."}], '
    '"missing": []}'
)


class FindingAnswer(AgentMiddleware[AgentState[Any], Any, Any]):
    """Reads the Finding out of whatever the model answers, and counts what the calls cost.

    Retries of transient errors stay inside the step's time.
    """

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        step = at_work()
        if not step.spent.model_calls:
            step.spent = usage_in(request.messages)  # after a crash: what the interrupted run has spent
        _bind_tokens(step)
        try:
            response = await self._call(request, handler)
        except (GraphBubbleUp, PlanweaveError):
            raise
        except Exception as error:  # noqa: BLE001 - each client has errors of its own
            raise ModelCallFailed(error) from None
        message = _answer_of(response)
        if message is None:
            return response
        step.spent = step.spent + usage_of(message, "worker")
        raise_refusal(message)
        if response.structured_response is None and not message.tool_calls:
            finding = next(iter(_findings(message.text)), None)
            if finding is not None:
                return ModelResponse(result=response.result, structured_response=finding)
        return response

    async def _call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        problem = ""
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._by_first_or_fallback(request, handler)
            except UNREADABLE as error:
                problem = f"the server's answer could not be read ({one_line(error, 200)})"
        raise AnswerInvalid("Finding", [problem])

    async def _by_first_or_fallback(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        step = at_work()
        while True:
            try:
                return await with_retries(lambda: handler(request), step.seconds_left)
            except (GraphBubbleUp, PlanweaveError):
                raise
            except Exception as error:
                if not step.taken_over(error):
                    raise


def next_turn(messages: Sequence[BaseMessage]) -> dict[str, Any] | None:
    """Return the state update after an answer that is no Finding yet: a nudge, or the end; None = as usual."""
    if failed_answers(messages) >= MAX_ATTEMPTS:
        return {"jump_to": "end"}
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    if last is None or last.tool_calls:
        return None
    nudged = any(isinstance(m, HumanMessage) and m.name == NUDGE for m in messages)
    if nudged and not json_objects(last.text):
        return None  # asked once in vain: prose again ends the step
    return {"messages": [HumanMessage(_nudge(last), name=NUDGE)], "jump_to": "model"}


def _bind_tokens(step: StepAtWork) -> None:
    """Let one request through where the run's tokens are spent, to conclude; no further one."""
    if step.max_tokens is None or not step.tokens_are_spent:
        return
    if step.concluding:
        raise LimitReached("max_tokens", step.max_tokens)
    step.concluding = True


def _answer_of(response: ModelResponse[Any]) -> AIMessage | None:
    return next((m for m in response.result if isinstance(m, AIMessage)), None)


def _findings(text: str) -> list[Finding]:
    found: list[Finding] = []
    # Also as a call written in text, which counts though what follows it was cut: its object is whole.
    for candidate in (value for whole in json_objects(text) for value in unwrapped(whole, "Finding")):
        try:
            found.append(Finding.model_validate(candidate))
        except ValidationError:
            continue
    return found


def _nudge(message: AIMessage) -> str:
    if is_truncated(message):
        return "Your answer was cut at the token limit. Answer with one short Finding."
    for candidate in json_objects(message.text):
        try:
            Finding.model_validate(candidate)
        except ValidationError as error:
            return "This is not a valid Finding: " + "; ".join(validation_lines(error)[:10])
    return NUDGE_TEXT


def failed_answers(messages: Sequence[BaseMessage]) -> int:
    """Count answers that were meant to be the Finding: calls of it, and messages without any call."""
    answers = [m for m in messages if isinstance(m, AIMessage)]
    return sum(not m.tool_calls or any(c["name"] == "Finding" for c in m.tool_calls) for m in answers)


def usage_in(messages: list[AnyMessage]) -> Usage:
    """Add up what the model calls behind these messages have cost."""
    total = Usage()
    for message in messages:
        if isinstance(message, AIMessage):
            total = total + usage_of(cast("AIMessage", message), "worker")
    return total

"""One call of a planning, replanning or reviewing model: the schema, the retries, and what it cost."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage

from agents.failures import model_error_type, one_line
from agents.models import Role
from agents.structured import Schema, Spent, ask
from nodes.parts import Parts
from schemas.errors import AnswerInvalid, AnswerRefused
from schemas.evidence import ErrorType, Review, Usage
from schemas.plan import PlanDraft
from schemas.plan_forms import plan_form
from schemas.state import StopReason

T = TypeVar("T")
MIN_SECONDS = 30.0
TOKENS_SPENT = "the run's max_tokens are spent"
MODEL_OF: dict[str, Role] = {
    "planner": "planner",
    "replanner": "planner",
    "reviewer": "reviewer",
    "critic": "reviewer",
}
_OPENING = re.compile(r'\{"role": "([a-z]{1,20})"')


@dataclass(frozen=True)
class RoleAnswer(Generic[T]):
    """A role's answer, or why there is none."""

    value: T | None
    usage: Usage
    error_type: ErrorType | None = None
    detail: str = ""
    invalid: bool = False

    @property
    def stop_reason(self) -> StopReason:
        """The stop reason that a missing answer of the planner means."""
        if self.error_type == "refused":
            return "model_refused"
        if self.error_type == "model_limit":
            return "not_recoverable"
        return "plan_invalid" if self.invalid else "model_unavailable"


def plan_schema(
    parse: Callable[[object], PlanDraft], tools: Sequence[str], *, max_steps: int, repair: bool = False
) -> Schema[PlanDraft]:
    """Return the form of a plan, or of a repaired one, with the run's own rules as its parser."""
    return Schema("Plan", plan_form(tools=tools, max_steps=max_steps, repair=repair), parse)


REVIEW_SCHEMA: Schema[Review] = Schema("Review", Review.model_json_schema(), Review.model_validate)


async def ask_role(
    parts: Parts,
    model: BaseChatModel,
    schema: Schema[T],
    messages: list[AnyMessage],
    seconds: float,
    tokens: int | None = None,
) -> RoleAnswer[T]:
    """Ask; whatever goes wrong is returned, not raised.

    Args:
        parts: the application.
        model: the role's.
        schema: what to ask for.
        messages: the request.
        seconds: active ones that the run has left; the call and its retries stay inside them, but a run at its end still
            gets MIN_SECONDS to conclude.
        tokens: that the run has left, None = no bound; with none left nothing is asked, nor asked again.
    """
    began = parts.clock()
    name = name_in(messages)
    spent = Spent(name, tokens)
    if spent.exhausted:
        return _failed(spent, 0, "model_limit", TOKENS_SPENT)
    # The replanner is the planner's model, the critic the reviewer's.
    role = replace(parts.models.role(MODEL_OF.get(name, "planner")), model=model)

    def left() -> float:
        return seconds - (parts.clock() - began)

    try:
        async with asyncio.timeout(max(MIN_SECONDS, seconds)):
            value = await ask(role, schema, messages, spent, left)
    except AnswerRefused as error:
        return _failed(spent, parts.clock() - began, "refused", str(error))
    except Exception as error:  # noqa: BLE001 - a model's failure ends the run in order, never by a crash
        invalid = isinstance(error, AnswerInvalid)
        return _failed(
            spent, parts.clock() - began, model_error_type(error), one_line(error, 2000), invalid=invalid
        )
    return RoleAnswer(value, spent.usage + Usage(seconds=parts.clock() - began))


def name_in(messages: Sequence[AnyMessage]) -> str:
    """Return the role that a request names in its brief: what the call costs is counted under it."""
    found = (_OPENING.match(message.text) for message in messages if isinstance(message, HumanMessage))
    return next((match[1] for match in found if match), "other")


def _failed(
    spent: Spent, seconds: float, error_type: ErrorType, detail: str, *, invalid: bool = False
) -> RoleAnswer[Any]:
    return RoleAnswer(
        None, spent.usage + Usage(seconds=seconds), error_type, detail, invalid or error_type == "schema"
    )

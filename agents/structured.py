"""One answer that fits a schema, however the model gives it.

The model is asked by the best way that its server takes (agents/ladder.py). An answer may arrive as a tool call named
after the schema, as native JSON, or as JSON in text: fenced, after <think>, or between prose; small faults are repaired
(agents/candidates.py). What does not fit is asked for again, at most twice, with the exact problems; then the failure
is typed. Refusals, and errors of the request itself, are not asked again.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable
from pydantic import ValidationError

from agents.brief import capped
from agents.calling import (
    AnswerUnreadable,
    Line,
    RoleModel,
    Spent,
    answered,
    by_first_or_fallback,
    role_model,
    usage_of,
)
from agents.candidates import candidates, json_objects
from agents.endpoints import Method
from agents.ladder import Ladder, MethodRefused, with_schema
from agents.lean_schema import lean
from agents.spoken import finish_reason, is_truncated, sound
from schemas.errors import AnswerInvalid, AnswerRefused, AnswerTruncated, PlanInvalid
from schemas.plan import validation_lines
from tools.results import clean_text

__all__ = [
    "MAX_ATTEMPTS",
    "UNREADABLE",
    "Schema",
    "Spent",
    "answered",
    "ask",
    "is_truncated",
    "json_objects",
    "raise_refusal",
    "usage_of",
]

T = TypeVar("T")
MAX_ATTEMPTS = 3
# Characters of a wrong answer that go back with what is wrong with it: fewer where the request is long already.
LONG_ECHO, SHORT_ECHO = 8_000, 1_000
LONG_REQUEST = 12_000
MAX_ECHOED = 2
PROBLEM_CHARS, PROBLEMS_CHARS = 400, 4_000
NO_ANSWER = "(no answer)"
# What LangChain's clients raise for a body they cannot read (choices: null, a call whose arguments are a list).
UNREADABLE = (
    AnswerUnreadable,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    json.JSONDecodeError,
    ValidationError,
)


@dataclass(frozen=True)
class Schema(Generic[T]):
    """What to ask for.

    Attributes:
        name: of the schema, and of the tool that carries it.
        definition: JSON schema.
        parse: turns the decoded answer into a value; raises ValidationError or PlanInvalid.
    """

    name: str
    definition: dict[str, Any]
    parse: Callable[[Any], T]

    @property
    def description(self) -> str:
        """What the schema says of itself."""
        return str(self.definition.get("description", f"Answer with a {self.name}."))

    def as_tool(self) -> dict[str, Any]:
        """Return the schema as a tool in OpenAI's format."""
        function = {"name": self.name, "description": self.description, "parameters": lean(self.definition)}
        return {"type": "function", "function": function}


async def ask(
    model: BaseChatModel | RoleModel,
    schema: Schema[T],
    messages: Sequence[AnyMessage],
    spent: Spent,
    seconds_left: Callable[[], float] = lambda: float("inf"),
) -> T:
    """Ask a model for one answer of a schema.

    Args:
        model: the role's; its fallback is asked where it cannot be reached.
        schema: what the answer must fit.
        messages: the request; re-asks are appended to a copy.
        spent: collects what the calls cost, also on failure.
        seconds_left: that the caller has; transient errors are waited out inside them.

    Raises:
        AnswerRefused: at once, when the model refuses.
        AnswerTruncated: the last try was cut at the token limit.
        AnswerInvalid: no try fitted; the problems are those of the last.
        Exception: whatever the model's client raises for the request itself.
    """
    role = role_model(model)

    async def ask_one(chat: BaseChatModel) -> T:
        line = Line(chat, role.asking, spent.add_failed, seconds_left)
        return await Inquiry(line, Ladder(chat, role.asking.structured), schema, spent).answer(messages)

    return await by_first_or_fallback(role, ask_one)


@dataclass
class Inquiry(Generic[T]):
    """One answer, while it is asked for."""

    line: Line
    ladder: Ladder
    schema: Schema[T]
    spent: Spent
    problems: list[str] = field(default_factory=list[str])
    truncated: bool = False

    async def answer(self, messages: Sequence[AnyMessage]) -> T:
        """Return a valid answer; see ask for the errors.

        A re-ask carries the last wrong answer alone: a request must not grow with each try.
        """
        request = list(messages)
        room = LONG_ECHO if sum(len(m.text) for m in messages) < LONG_REQUEST else SHORT_ECHO
        for done in range(1, MAX_ATTEMPTS + 1):
            if self.spent.exhausted and done > 1:
                break
            try:
                message, method = await self._message(request)
            except UNREADABLE as error:
                kind = type(error).__name__
                self.problems, self.truncated = [f"the server's answer could not be read ({kind})"], False
                again = HumanMessage(_re_ask(self.schema.name, self.problems, done))
                request = [*messages, AIMessage(NO_ANSWER), again]
                continue
            raise_refusal(message)
            value, self.problems = first_valid(message, self.schema)
            if value is not None:
                self.ladder.worked(method)
                return value
            self._learn(message, method)
            request = [*messages, *_echo(message, _re_ask(self.schema.name, self.problems, done), room)]
        if self.truncated:
            raise AnswerTruncated(f"no valid {self.schema.name}: {self.problems[0]}")
        raise AnswerInvalid(self.schema.name, self.problems)

    async def _message(self, request: Sequence[AnyMessage]) -> tuple[AIMessage, Method]:
        """Return what the model answers, and the way it was asked: the best that its server takes."""
        while True:
            method = self.ladder.method
            try:
                bound, sent = bound_by(method, self.line.model, self.schema, request)
            except (NotImplementedError, ValueError, TypeError):
                self.ladder.not_offered(method)  # by the model's client
                continue
            try:
                message = await self.line.ask(bound, sent, partial(self.ladder.refused, method))
            except MethodRefused:
                continue  # the ladder has noted it: the next way is another one
            self.spent.add(message)
            return sound(message, [self.schema.name]), method

    def _learn(self, message: AIMessage, method: Method) -> None:
        self.truncated = is_truncated(message)
        if self.truncated:
            cut = (
                f", after {message.usage_metadata['output_tokens']} tokens" if message.usage_metadata else ""
            )
            limit = f"the answer was cut at the model's token limit (max_tokens{cut}): be shorter"
            self.problems = [limit]
        elif not message.tool_calls and not message.invalid_tool_calls and "{" not in message.text:
            self.ladder.missed(method)


def bound_by(
    method: Method, chat: BaseChatModel, schema: Schema[Any], request: Sequence[AnyMessage]
) -> tuple[Runnable[Any, Any], Sequence[AnyMessage]]:
    """Return a model and a request that ask for the schema in one way.

    Raises:
        NotImplementedError, ValueError, TypeError: the model's client has no such way.
    """
    if method == "text":
        return chat, with_schema(request, schema.name, lean(schema.definition))
    if method == "json_schema":
        definition = {"title": schema.name, "description": schema.description, **lean(schema.definition)}
        return chat.with_structured_output(definition, method="json_schema", include_raw=True), request
    choice = {"named": schema.name, "required": "any", "auto": "auto"}[method]
    return chat.bind_tools([schema.as_tool()], tool_choice=choice), request


def raise_refusal(message: AIMessage) -> None:
    """Raise AnswerRefused if the message is a refusal; see ask."""
    refusal = message.additional_kwargs.get("refusal")
    if not refusal and isinstance(message.content, list):
        blocks = (b for b in message.content if isinstance(b, dict) and b.get("type") == "refusal")
        refusal = next((str(b.get("refusal", "")) for b in blocks), None)
    if not refusal and finish_reason(message) in ("content_filter", "refusal"):
        refusal = message.text or "the provider's content filter stopped the answer"
    if refusal:
        raise AnswerRefused(str(refusal)[:500])


def first_valid(message: AIMessage, schema: Schema[T]) -> tuple[T | None, list[str]]:
    """Return the first candidate that fits, or the problems of the one that seems to be meant."""
    found: list[tuple[int, list[str]]] = []
    for candidate in candidates(message, schema.name):
        try:
            return schema.parse(candidate), []
        except PlanInvalid as error:
            found.append((_size(candidate), error.problems))
        except ValidationError as error:
            found.append((_size(candidate), validation_lines(error)))
    if found:
        # A call is meant as it stands; in a text the largest object is.
        meant = found[0] if message.tool_calls else max(found, key=lambda pair: pair[0])
        return None, meant[1]
    bad_calls = [str(call.get("error") or "arguments are not JSON") for call in message.invalid_tool_calls]
    if bad_calls:
        return None, [f"the tool call's arguments could not be read: {bad_calls[0][:200]}"]
    return None, [_unreadable_json(message.text) or f"there was no {schema.name} in the answer"]


def _size(candidate: Any) -> int:
    return len(str(candidate))


def _unreadable_json(text: str) -> str:
    """Return what keeps the first object in a text from being JSON, or ""."""
    start = text.find("{")
    try:
        json.JSONDecoder(strict=False).raw_decode(text, start) if start != -1 else None
    except json.JSONDecodeError as error:
        return f"the JSON could not be read: {error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        return "the JSON is nested too deeply"
    return ""


def _echo(message: AIMessage, text: str, room: int) -> list[AnyMessage]:
    """Return the wrong answer and what is wrong with it, every tool call answered once."""
    calls = [_short(call, room) for call in message.tool_calls[:MAX_ECHOED]]
    kept = AIMessage(content=message.text[: room // 2], tool_calls=calls)
    replies: list[AnyMessage] = [
        ToolMessage("not accepted", tool_call_id=str(c["id"])) for c in kept.tool_calls
    ]
    if not kept.text.strip() and not kept.tool_calls:
        # An empty assistant message is refused by some servers, two user messages in a row by others.
        kept = AIMessage(NO_ANSWER)
    return [kept, *replies, HumanMessage(text)]


def _short(call: ToolCall, room: int) -> ToolCall:
    args: dict[str, Any] = capped(call["args"], room // 2)
    if len(str(args)) > room:  # many long texts: what is wrong with them is said in words
        args = {}
    return ToolCall(name=call["name"], args=args, id=call["id"], type="tool_call")


def _re_ask(name: str, problems: Sequence[str], done: int) -> str:
    lines = "\n".join(f"- {clean_text(problem)[:PROBLEM_CHARS]}" for problem in problems[:30])
    return f"This is not a valid {name}:\n{lines[:PROBLEMS_CHARS]}\nAnswer again with one complete, corrected {name}: try {done + 1} of {MAX_ATTEMPTS}."

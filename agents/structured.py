"""One answer that fits a schema, however the model gives it.

An answer may arrive as a tool call named after the schema, as native JSON, or as JSON in text: fenced, after
<think>, or between prose. What does not fit is asked for again, at most twice, with the exact problems; then
the failure is typed. Refusals and errors of the request itself are not retried.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from pydantic import ValidationError

from agents.brief import capped
from agents.incoming import clean_data, received
from agents.retrying import with_retries
from schemas.errors import AnswerInvalid, AnswerRefused, AnswerTruncated, PlanInvalid
from schemas.evidence import Usage
from schemas.plan import validation_lines
from tools.results import clean_text

T = TypeVar("T")
MAX_ATTEMPTS = 3
ECHO_CHARS = 4_000
MAX_ECHOED = 4
PROBLEM_CHARS = 400
# What LangChain's clients raise for a body they cannot read (choices: null, a call whose arguments are a list).
UNREADABLE = (TypeError, AttributeError, KeyError, IndexError, json.JSONDecodeError, ValidationError)


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

    def as_tool(self) -> dict[str, Any]:
        """Return the schema as a tool in OpenAI's format."""
        description = str(self.definition.get("description", f"Answer with a {self.name}."))
        function = {"name": self.name, "description": description, "parameters": self.definition}
        return {"type": "function", "function": function}


@dataclass
class Spent:
    """What asking has cost so far; kept when it ends in an error."""

    usage: Usage = field(default_factory=Usage)

    def add(self, message: AIMessage) -> None:
        """Count one model call and its tokens."""
        self.usage = self.usage + usage_of(message)


def usage_of(message: AIMessage) -> Usage:
    """Return one model call with the tokens that the provider reported."""
    tokens = message.usage_metadata
    if not tokens:
        return Usage(model_calls=1)
    return Usage(model_calls=1, input_tokens=tokens["input_tokens"], output_tokens=tokens["output_tokens"])


async def ask(
    model: BaseChatModel,
    schema: Schema[T],
    messages: Sequence[AnyMessage],
    spent: Spent,
    seconds_left: Callable[[], float] = lambda: float("inf"),
) -> T:
    """Ask a model for one answer of a schema.

    Args:
        model: the role's model.
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
    bound, request = _bind(model, schema, list(messages))
    problems: list[str] = []
    truncated = False
    for _ in range(MAX_ATTEMPTS):
        try:
            message = await answered(bound, request, spent, seconds_left)
        except UNREADABLE as error:
            problems, truncated = [f"the server's answer could not be read ({type(error).__name__})"], False
            request = [*request, HumanMessage(_re_ask(schema.name, problems))]
            continue
        raise_refusal(message)
        value, problems = _first_valid(message, schema)
        if value is not None:
            return value
        truncated = is_truncated(message)
        if truncated:
            problems = [
                f"the answer was cut at the model's token limit (max_tokens{_cut_at(message)}): be shorter"
            ]
        request = [*request, *_echo(message, schema.name, problems)]
    if truncated:
        raise AnswerTruncated(f"no valid {schema.name}: {problems[0]}")
    raise AnswerInvalid(schema.name, problems)


async def answered(
    model: Any, request: Sequence[AnyMessage], spent: Spent, seconds_left: Callable[[], float]
) -> AIMessage:
    """Return a model's answer, made safe; transient errors are waited out, and every request counts in `spent`.

    Raises:
        Exception: whatever the model's client raises.
    """
    return await with_retries(partial(_once, model, request, spent), seconds_left)


async def _once(model: Any, request: Sequence[AnyMessage], spent: Spent) -> AIMessage:
    try:
        message = received(await model.ainvoke(request))
    except BaseException:  # also where time has run out: the request was made
        spent.usage = spent.usage + Usage(model_calls=1)
        raise
    spent.add(message)
    return message


def _bind(
    model: BaseChatModel, schema: Schema[Any], messages: list[AnyMessage]
) -> tuple[Any, list[AnyMessage]]:
    try:
        return model.bind_tools([schema.as_tool()], tool_choice=schema.name), messages
    except NotImplementedError:
        # A model without tools gets the schema as text.
        text = (
            f"Answer with one JSON object, and nothing else, that fits this JSON schema of a {schema.name}:\n"
        )
        return model, [*messages, HumanMessage(text + json.dumps(schema.definition, ensure_ascii=False))]


def raise_refusal(message: AIMessage) -> None:
    """Raise AnswerRefused if the message is a refusal; see ask."""
    refusal = message.additional_kwargs.get("refusal")
    if not refusal and isinstance(message.content, list):
        blocks = (b for b in message.content if isinstance(b, dict) and b.get("type") == "refusal")
        refusal = next((str(b.get("refusal", "")) for b in blocks), None)
    if not refusal and _finish_reason(message) in ("content_filter", "refusal"):
        refusal = message.text or "the provider's content filter stopped the answer"
    if refusal:
        raise AnswerRefused(str(refusal)[:500])


def is_truncated(message: AIMessage) -> bool:
    """Return whether the provider cut the answer at the token limit."""
    return _finish_reason(message) in ("length", "max_tokens")


def _finish_reason(message: AIMessage) -> str:
    meta = cast("dict[str, Any]", message.response_metadata)
    return str(meta.get("finish_reason") or meta.get("stop_reason") or "")


def _cut_at(message: AIMessage) -> str:
    return f", after {message.usage_metadata['output_tokens']} tokens" if message.usage_metadata else ""


def _first_valid(message: AIMessage, schema: Schema[T]) -> tuple[T | None, list[str]]:
    """Return the first candidate that fits, or the problems of the one that seems to be meant."""
    problems: list[str] = []
    for candidate in candidates(message, schema.name):
        try:
            return schema.parse(candidate), []
        except PlanInvalid as error:
            problems = problems or error.problems
        except ValidationError as error:
            problems = problems or validation_lines(error)
    bad_calls = [str(call.get("error") or "arguments are not JSON") for call in message.invalid_tool_calls]
    if not problems and bad_calls:
        problems = [f"the tool call's arguments could not be read: {bad_calls[0][:200]}"]
    return None, problems or [f"there was no {schema.name} in the answer"]


def candidates(message: AIMessage, name: str) -> Iterator[Any]:
    """Yield what may be the answer, most explicit first: the named tool call, other calls, JSON in text."""
    calls = sorted(message.tool_calls, key=lambda call: call["name"] != name)
    yield from (call["args"] for call in calls)
    yield from json_objects(message.text)


def json_objects(text: str) -> list[Any]:
    """Return the JSON objects in a text, largest first; what stands inside <think> comes last."""
    answer = re.sub(r"(?s)<think>.*?(</think>|\Z)", " ", text)
    found = _scan(answer) or _scan(text)
    return [value for _, value in sorted(found, key=lambda pair: -pair[0])]


def _scan(text: str) -> list[tuple[int, Any]]:
    decoder = json.JSONDecoder(strict=False)
    found: list[tuple[int, Any]] = []
    at = text.find("{")
    tries = 0
    while at != -1 and tries < 200:  # a text of a million braces must not take forever
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            found.append((end - at, clean_data(value)))  # an escape may stand for a lone surrogate
        at = text.find("{", end)
    return found


def _echo(message: AIMessage, name: str, problems: Sequence[str]) -> list[AnyMessage]:
    """Return the wrong answer and what is wrong with it, every tool call answered once."""
    text = _re_ask(name, problems)
    calls = [_short(call) for call in message.tool_calls[:MAX_ECHOED]]
    kept = AIMessage(content=message.text[:ECHO_CHARS], tool_calls=calls)
    replies: list[AnyMessage] = [
        ToolMessage("not accepted", tool_call_id=str(c["id"])) for c in kept.tool_calls
    ]
    if not kept.text and not kept.tool_calls:
        return [HumanMessage(text)]  # an empty assistant message is refused by some servers
    return [kept, *replies, HumanMessage(text)]


def _short(call: ToolCall) -> ToolCall:
    args: dict[str, Any] = capped(call["args"], ECHO_CHARS)
    if len(str(args)) > 2 * ECHO_CHARS:  # many long texts: what is wrong with them is said in words
        args = {}
    return ToolCall(name=call["name"], args=args, id=call["id"], type="tool_call")


def _re_ask(name: str, problems: Sequence[str]) -> str:
    lines = "\n".join(f"- {clean_text(problem)[:PROBLEM_CHARS]}" for problem in problems[:30])
    return f"This is not a valid {name}:\n{lines}\nAnswer again with one complete, corrected {name}."

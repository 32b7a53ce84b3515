"""One request to a role's model: through the endpoint's gate, with its errors understood, retried, or taken elsewhere."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import Runnable

from agents.endpoints import endpoint_of, known_of, model_name
from agents.failures import leaves, model_error_type, status_of
from agents.incoming import received
from agents.ladder import MethodRefused, Structured
from agents.retrying import with_retries
from agents.spoken import stream_broke
from agents.throttle import gate_of
from schemas.errors import AnswerRefused
from schemas.evidence import Usage

T = TypeVar("T")
Refuses = Callable[[Exception], bool]
ASKED_MODEL = "asked_model"
MAX_AT_ONCE = 16


def _never(_: Exception) -> bool:
    return False


@dataclass(frozen=True)
class Asking:
    """How models are asked.

    Attributes:
        structured: how for an answer of a schema; see agents/ladder.py.
        at_once: requests to one endpoint at a time; per_minute: in any minute, None = no bound.
    """

    structured: Structured = "auto"
    at_once: int = MAX_AT_ONCE
    per_minute: int | None = None


@dataclass(frozen=True)
class RoleModel:
    """A role's model, and the one that takes over where it cannot be reached."""

    model: BaseChatModel
    fallback: BaseChatModel | None = None
    asking: Asking = field(default_factory=Asking)

    @property
    def first(self) -> BaseChatModel:
        """The model to ask first: the fallback where the other's endpoint is known to be closed."""
        return self.fallback if self.fallback is not None and known_of(self.model).closed else self.model

    def next_after(self, model: BaseChatModel, error: Exception) -> BaseChatModel | None:
        """Return the model that takes over after an error of `model` that was not retried, or no longer; None = none does."""
        closed = is_closed(error)
        if closed:
            known_of(model).closed = True
        if self.fallback is None or model is self.fallback:
            return None
        return self.fallback if closed or model_error_type(error) == "transient" else None


def role_model(model: BaseChatModel | RoleModel) -> RoleModel:
    """Return a model as a role's model."""
    return model if isinstance(model, RoleModel) else RoleModel(model)


def is_closed(error: BaseException) -> bool:
    """Return whether an endpoint refuses the key, or does not have the model."""
    if model_error_type(error) == "auth":
        return True
    text = str(error).casefold()
    gone = any(status_of(leaf) in (404, 410) for leaf in leaves(error))
    return gone and ("model" in text or "not found" in text or not text)


@dataclass
class Spent:
    """What asking has cost so far; kept when it ends in an error.

    Attributes:
        role: whose part of the usage it is.
        max_tokens: that may be spent; None = no bound.
    """

    role: str = "other"
    max_tokens: int | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def exhausted(self) -> bool:
        """Whether nothing more may be asked."""
        return self.max_tokens is not None and self.usage.tokens >= self.max_tokens

    def add(self, message: AIMessage) -> None:
        """Count one model call and its tokens."""
        self.usage = self.usage + usage_of(message, self.role)

    def add_failed(self, model: BaseChatModel) -> None:
        """Count one model call that gave no answer."""
        self.usage = self.usage + Usage.of_call(self.role, model_name(model))


def usage_of(message: AIMessage, role: str) -> Usage:
    """Return one model call with the tokens that the provider reported."""
    meta = cast("Mapping[str, Any]", message.response_metadata)
    model = str(meta.get(ASKED_MODEL) or meta.get("model_name") or "unknown")
    tokens = message.usage_metadata
    if not tokens:
        return Usage.of_call(role, model)
    return Usage.of_call(role, model, tokens["input_tokens"], tokens["output_tokens"])


@dataclass(frozen=True)
class Line:
    """One model, as one caller asks it.

    Attributes:
        failed: called for each request that gave no message.
        seconds_left: that the caller has; transient errors are waited out inside them.
    """

    model: BaseChatModel
    asking: Asking
    failed: Callable[[BaseChatModel], None]
    seconds_left: Callable[[], float] = lambda: float("inf")

    async def ask(
        self, bound: Runnable[Any, Any], request: Sequence[AnyMessage], refuses: Refuses = _never
    ) -> AIMessage:
        """Send a request, wait transient errors out, and return the answer, made safe.

        Args:
            bound: the model, with what it is offered.
            request: the messages.
            refuses: whether an error means that the server does not take this way of asking.

        Raises:
            MethodRefused: it does not.
            AnswerRefused: the provider's filter stopped the answer.
            AnswerUnreadable: the body is none of the protocol.
            Exception: whatever the model's client raises.
        """
        return await with_retries(partial(self.ask_once, bound, request, refuses), self.seconds_left)

    async def ask_once(
        self, bound: Runnable[Any, Any], request: Sequence[AnyMessage], refuses: Refuses = _never
    ) -> AIMessage:
        """Send a request once; see ask."""
        gate = gate_of(endpoint_of(self.model), self.asking.at_once, self.asking.per_minute)
        async with gate.slot():
            try:
                answer = await self._sent(bound, request)
            except BaseException as error:  # also where time has run out: the request was made
                self.failed(self.model)
                if isinstance(error, Exception) and refuses(error):
                    raise MethodRefused from error
                raise
        return answer

    async def _sent(self, bound: Runnable[Any, Any], request: Sequence[AnyMessage]) -> AIMessage:
        try:
            answer = await bound.ainvoke(request)
        except Exception as error:
            answer = _cut_answer(error)
            if answer is None:
                raise _understood(error) from error
        # With include_raw the client answers with a mapping around the message.
        raw = cast("Mapping[str, Any]", answer)["raw"] if isinstance(answer, Mapping) else answer
        message = received(cast("BaseMessage", raw), {ASKED_MODEL: model_name(self.model)})
        if stream_broke(message):
            raise ConnectionError("the stream ended before the answer did")
        return message


async def answered(
    model: BaseChatModel | RoleModel,
    request: Sequence[AnyMessage],
    spent: Spent,
    seconds_left: Callable[[], float],
) -> AIMessage:
    """Return a model's answer in text, made safe; transient errors are waited out, every request counts in `spent`.

    Raises:
        Exception: whatever the model's client raises, where no fallback takes over.
    """
    role = role_model(model)

    async def ask(chat: BaseChatModel) -> AIMessage:
        message = await Line(chat, role.asking, spent.add_failed, seconds_left).ask(chat, request)
        spent.add(message)
        return message

    return await by_first_or_fallback(role, ask)


async def by_first_or_fallback(role: RoleModel, ask: Callable[[BaseChatModel], Awaitable[T]]) -> T:
    """Await `ask(model)`; where that model cannot be reached, or no longer, `ask(fallback)`."""
    model = role.first
    while True:
        try:
            return await ask(model)
        except Exception as error:
            after = role.next_after(model, error)
            if after is None:
                raise
            model = after


class AnswerUnreadable(Exception):
    """The server's answer is none of the protocol: an HTML page, an empty stream."""


class ServerFault(Exception):
    """An error that a server sent with status 200; `status_code` is the one it named inside."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


def _understood(error: Exception) -> Exception:
    """Return an error as what it means: some clients and servers have their own ways to say refusal or overload."""
    kind = type(error).__name__
    if kind == "ContentFilterFinishReasonError" or kind.endswith("RefusalError"):
        return AnswerRefused(str(error) or "the provider's content filter stopped the answer")
    if kind == "APIError" and status_of(error) is None:  # sent as an event, in the middle of a stream
        return ServerFault(str(error), _code_in(getattr(error, "body", None)) or 500)
    if type(error) is not ValueError or not error.args:
        return error
    code = _code_in(error.args[0])
    if code is not None:
        return ServerFault(str(error.args[0]), code)
    strange = ("No generation", "Unexpected response type")
    return AnswerUnreadable(str(error)[:200]) if str(error.args[0]).startswith(strange) else error


def _code_in(body: Any) -> int | None:
    """Return the HTTP status that an error's body names, if it does."""
    data = cast("Mapping[str, Any]", body if isinstance(body, Mapping) else {})
    code = data.get("code") or data.get("status")
    return code if isinstance(code, int) and 400 <= code < 600 else None


def _cut_answer(error: Exception) -> AIMessage | None:
    """Return the answer behind an error by which OpenAI's client reports that it was cut at the token limit."""
    if type(error).__name__ != "LengthFinishReasonError":
        return None
    completion: Any = getattr(error, "completion", None)
    choices: Any = getattr(completion, "choices", None) or [None]
    text = getattr(getattr(choices[0], "message", None), "content", None) or ""
    usage: Any = getattr(completion, "usage", None)
    message = AIMessage(str(text), response_metadata={"finish_reason": "length"})
    if usage is not None:
        given, made = int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0)
        message.usage_metadata = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    return message

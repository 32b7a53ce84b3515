"""What went wrong, in the words of ErrorType; and one safe line about it."""

import asyncio
import re
from collections.abc import Iterator
from typing import cast

from schemas.errors import AnswerInvalid, AnswerRefused, AnswerTruncated
from schemas.evidence import ErrorType

# Each pattern keeps its first group. Bounds in the lookaheads keep hostile texts from taking quadratic time.
_SECRETS = (
    re.compile(
        r"(?i)((?:api|access)[-_ ]?key|token|passw(?:or)?d|secret|authorization|密钥|密码|令牌)"
        r"\"?'?\s*[:=：]\s*\"?'?(?:(?:bearer|basic)\s+)?[^\s\"',;&]{4,}"
    ),
    re.compile(r"(?i)\b(bearer|basic)\s+(?=[\w.~+/=-]{0,200}[\d=])[\w.~+/=-]{8,}"),
    re.compile(
        r"\b((?:sk|pk|rk|tvly|xox[a-z]|gh[a-z]|github_pat|glpat)[-_])(?=[\w-]{0,200}\d)[\w-]{6,}", re.ASCII
    ),
    re.compile(r"(\bhf_(?=[A-Za-z0-9]{16})|\bAKIA|\bAIza)[\w-]{12,}", re.ASCII),
    re.compile(r"(\beyJ)[\w-]{5,}\.[\w-]{5,}\.[\w-]+", re.ASCII),
    re.compile(r"(://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
SCANNED_CHARS = 50_000
_CONTEXT_WORDS = (
    "context length",
    "context_length",
    "maximum context",
    "too many tokens",
    "prompt is too long",
)
_REFUSAL_WORDS = ("content_filter", "content policy", "content management policy", "safety system")
_TRANSIENT_NAMES = frozenset(
    {
        "APIConnectionError",
        "APITimeoutError",
        "RateLimitError",
        "InternalServerError",
        "ClosedResourceError",
        "BrokenResourceError",
        "EndOfStream",
        "RemoteProtocolError",
        "ReadTimeout",
        "ConnectTimeout",
        "ConnectError",
        "ReadError",
        "WriteError",
        "PoolTimeout",
        "IncompleteRead",
    }
)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors inside an ExceptionGroup, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from leaves(inner)
    else:
        yield error


def is_transient(error: BaseException) -> bool:
    """Return whether the same call could succeed a little later."""
    return all(_transient(leaf) for leaf in leaves(error))


def _transient(error: BaseException) -> bool:
    status = status_of(error)
    if status is not None:
        return status in (408, 409, 425, 429) or status >= 500
    if isinstance(error, ConnectionError | TimeoutError | asyncio.TimeoutError):
        return True
    return any(kind.__name__ in _TRANSIENT_NAMES for kind in type(error).__mro__)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error of a client carries, if it does."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def model_error_type(error: BaseException) -> ErrorType:
    """Classify an error that a model call raised; a group of different kinds is "model"."""
    kinds: set[ErrorType] = {_model_leaf(leaf) for leaf in leaves(error)}
    return kinds.pop() if len(kinds) == 1 else "model"


def _model_leaf(error: BaseException) -> ErrorType:
    if isinstance(error, AnswerRefused):
        return "refused"
    if isinstance(error, AnswerInvalid | AnswerTruncated):
        return "schema"
    text = str(error).casefold()
    if status_of(error) in (401, 403) or type(error).__name__ in (
        "AuthenticationError",
        "PermissionDeniedError",
    ):
        return "auth"
    if any(word in text for word in _CONTEXT_WORDS) or status_of(error) == 413:
        return "context_overflow"
    if any(word in text for word in _REFUSAL_WORDS):
        return "refused"
    return "transient" if _transient(error) else "model"


class ModelCallFailed(Exception):
    """A model's error as it may be stored.

    LangGraph writes what a node raises to the checkpoint; a client's own error may quote keys and addresses.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(one_line(error))
        self.error_type: ErrorType = model_error_type(error)


def tool_error_type(error: BaseException) -> ErrorType:
    """Classify an error that a tool raised."""
    kinds: set[ErrorType] = {_tool_leaf(leaf) for leaf in leaves(error)}
    return kinds.pop() if len(kinds) == 1 else "tool"


def _tool_leaf(error: BaseException) -> ErrorType:
    if status_of(error) in (401, 403) or isinstance(error, PermissionError):
        return "auth"
    return "transient" if _transient(error) else "tool"


def safe_text(text: str, limit: int = 400) -> str:
    """Return text on one line, cut, without what looks like a secret."""
    text = text[:SCANNED_CHARS]  # an error may quote megabytes
    for pattern in _SECRETS:
        text = pattern.sub(lambda match: match[1] + "…", text)
    text = " ".join(text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "").split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(error: BaseException, limit: int = 400) -> str:
    """Return `Type: message` of an error, safe to show and to store."""
    parts = [f"{type(leaf).__name__}: {leaf}" if str(leaf) else type(leaf).__name__ for leaf in leaves(error)]
    return safe_text("; ".join(parts), limit)

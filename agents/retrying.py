"""Transient model errors: waited out, inside the time left, as long as the server asks for."""

import asyncio
import email.utils
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from agents.failures import is_transient, leaves

T = TypeVar("T")
RETRIES = 2
FIRST_DELAY = 0.5
MAX_DELAY = 120.0


async def with_retries(
    call: Callable[[], Awaitable[T]],
    seconds_left: Callable[[], float],
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Await `call()`; on a transient error wait (0.5 s, then 1 s, or what Retry-After says) and try again, at most twice.

    A wait that would use more than half of the time left, or that is longer than MAX_DELAY, is not begun: the error is
    raised instead.
    """
    for attempt in range(RETRIES + 1):
        try:
            return await call()
        except Exception as error:
            if attempt == RETRIES or not is_transient(error):
                raise
            delay = max(FIRST_DELAY * 2**attempt, retry_after(error))
            if delay > min(seconds_left() / 2, MAX_DELAY):
                raise
        await pause(delay)
    raise AssertionError("unreachable")


def retry_after(error: BaseException, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float:
    """Return the seconds that a server asks to wait, by Retry-After (seconds or a date) or retry-after-ms; 0 = nothing.

    Of several errors in a group the longest wait counts.
    """
    return max((_wait(_headers(leaf), now) for leaf in leaves(error)), default=0.0)


def _headers(error: BaseException) -> Mapping[str, str]:
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    return cast("Mapping[str, str]", headers) if isinstance(headers, Mapping) else {}


def _wait(headers: Mapping[str, str], now: Callable[[], datetime]) -> float:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds or 0.0
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now()).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if value == value else None

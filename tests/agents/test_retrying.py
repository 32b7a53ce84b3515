"""Transient errors of a model: how long is waited, and when not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from agents.retrying import retry_after, with_retries

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Busy(Exception):
    def __init__(self, **headers: str) -> None:
        self.response = httpx.Response(429, headers={k.replace("_", "-"): v for k, v in headers.items()})


def at(seconds: float) -> str:
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": at(90)}, 90),
        ({"retry_after": at(-90)}, 0),
        ({"retry_after_ms": "1500", "retry_after": "7"}, 1.5),
        ({"retry_after": "-3"}, 0),
        ({"retry_after": "nan"}, 0),
        ({"retry_after": "soon"}, 0),
        ({"retry_after": ""}, 0),
        ({"retry_after": "Tue, 99 Foo 2030"}, 0),
        ({}, 0),
    ],
)
def test_what_a_server_asks_to_wait(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(Busy(**headers), lambda: NOW) == seconds


def test_of_several_errors_the_longest_wait_counts() -> None:
    errors = [Busy(retry_after="3"), ConnectionError(), Busy(retry_after="9")]
    assert retry_after(ExceptionGroup("both", errors)) == 9


class Waits:
    """Stands in for asyncio.sleep: notes how long would be slept."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Failing:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_backs_off_by_half_a_second_then_by_one() -> None:
    waits, call = Waits(), Failing(ConnectionError(), ConnectionError())
    assert await with_retries(call, lambda: 60, waits) == "done"
    assert waits.seconds == [0.5, 1.0]


async def test_waits_as_long_as_the_server_says() -> None:
    waits, call = Waits(), Failing(Busy(retry_after="20"))
    assert await with_retries(call, lambda: 60, waits) == "done"
    assert waits.seconds == [20]


@pytest.mark.parametrize(
    ("left", "asked"), [(60, "31"), (1, "0.6"), (0.9, "0"), (1e9, "121"), (float("inf"), "1e9")]
)
async def test_a_wait_past_half_of_the_time_left_is_not_begun(left: float, asked: str) -> None:
    waits, call = Waits(), Failing(Busy(retry_after=asked))
    with pytest.raises(Busy):
        await with_retries(call, lambda: left, waits)
    assert (waits.seconds, call.calls) == ([], 1)


@pytest.mark.parametrize("error", [ValueError("no"), PermissionError("no")])
async def test_what_does_not_pass_is_not_tried_again(error: Exception) -> None:
    waits, call = Waits(), Failing(error)
    with pytest.raises(type(error)):
        await with_retries(call, lambda: 60, waits)
    assert call.calls == 1


async def test_at_most_two_retries() -> None:
    waits, call = Waits(), Failing(*[ConnectionError()] * 5)
    with pytest.raises(ConnectionError):
        await with_retries(call, lambda: 60, waits)
    assert call.calls == 3

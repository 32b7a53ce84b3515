"""What went wrong, by kind; and a line about it that holds no secret."""

from __future__ import annotations

import anyio
import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.failures import is_transient, model_error_type, one_line, safe_text, tool_error_type
from schemas.errors import AnswerInvalid, AnswerRefused, AnswerTruncated

REQUEST = httpx.Request("POST", "https://api.test/v1/chat/completions")


def status(code: int, text: str = "no") -> openai.APIStatusError:
    kind = {401: openai.AuthenticationError, 403: openai.PermissionDeniedError, 429: openai.RateLimitError}
    make = kind.get(code, openai.InternalServerError if code >= 500 else openai.BadRequestError)
    return make(text, response=httpx.Response(code, request=REQUEST), body=None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (status(401), "auth"),
        (status(403), "auth"),
        (status(429), "transient"),
        (status(500), "transient"),
        (status(503), "transient"),
        (status(400), "model"),
        (status(404), "model"),
        (status(400, "This model's maximum context length is 8192 tokens"), "context_overflow"),
        (status(400, "prompt is too long: 210000 tokens"), "context_overflow"),
        (status(400, "content_filter triggered"), "refused"),
        (openai.APIConnectionError(request=REQUEST), "transient"),
        (openai.APITimeoutError(REQUEST), "transient"),
        (AnswerRefused("no"), "refused"),
        (AnswerInvalid("Plan", ["x"]), "schema"),
        (AnswerTruncated("cut"), "schema"),
        (ValueError("boom"), "model"),
        (ExceptionGroup("g", [status(401), status(401)]), "auth"),
        (ExceptionGroup("g", [status(503), ValueError("x")]), "model"),
    ],
)
def test_a_models_error_has_its_kind(error: Exception, kind: str) -> None:
    assert model_error_type(error) == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError("x"), "transient"),
        (TimeoutError(), "transient"),
        (anyio.ClosedResourceError(), "transient"),
        (anyio.BrokenResourceError(), "transient"),
        (anyio.EndOfStream(), "transient"),
        (httpx.ReadTimeout("x"), "transient"),
        (httpx.RemoteProtocolError("x"), "transient"),
        (PermissionError("x"), "auth"),
        (FileNotFoundError("x"), "tool"),
        (ValueError("x"), "tool"),
        (ExceptionGroup("g", [TimeoutError(), ExceptionGroup("h", [ConnectionError()])]), "transient"),
        (ExceptionGroup("g", [TimeoutError(), ValueError()]), "tool"),
        (
            httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(502, request=REQUEST)),
            "transient",
        ),
        (httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(404, request=REQUEST)), "tool"),
        (httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(401, request=REQUEST)), "auth"),
    ],
)
def test_a_tools_error_has_its_kind(error: Exception, kind: str) -> None:
    assert tool_error_type(error) == kind
    assert is_transient(error) is (kind == "transient")


SECRETS = [
    "sk-abcdef123456",
    "sk-proj-AbC_def-123456",
    "ghp_0123456789abcdefABCDEF",
    "github_pat_11ABCDEFG0123456789",
    "xoxb-123456789-abcdef",
    "tvly-abcdef123456",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-1234567890abcdefghijklmnopqrstuv",
    "hf_abcdefghijklmnopqrst",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
]
CARRIERS = [
    "Incorrect API key provided: {}.",
    "Authorization: Bearer {}",
    "{{'authorization': 'Bearer {}'}}",
    "GET https://user:{}@host.test/v1",
    "OPENAI_API_KEY={}",
    '{{"api_key": "{}"}}',
    "https://host.test/?api_key={}&x=1",
    "https://host.test/?key={}",
    "x-api-key: {}",
    "access_token={}",
    "密钥：{}",
    "postgresql://planweave:{}@db.test:5432/x",
]


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("secret", SECRETS)
def test_no_known_kind_of_secret_is_left(secret: str, carrier: str) -> None:
    assert secret not in safe_text(carrier.format(secret))
    assert secret not in one_line(RuntimeError(carrier.format(secret)))


@pytest.mark.parametrize(
    "carrier", [c for c in CARRIERS if not c.startswith(("Incorrect", "密钥", "https://host.test/?key"))]
)
def test_a_secret_of_no_known_kind_is_hidden_where_its_name_stands_before_it(carrier: str) -> None:
    assert "hunter2hunter2" not in safe_text(carrier.format("hunter2hunter2"))


@pytest.mark.parametrize(
    "text",
    [
        "the token limit of 4096 was reached",
        "task-force skipped",
        "hf_hub_download_url and sk_buff_head and pk_column_name",
        "查找 😀 ①",
        "see https://host.test/path?page=2",
        "basic questions remain",
        "risk-assessment-2024 is missing",
        "sha256:9f86d081884c7d659a2feaa0c55ad015",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert safe_text(text) == text


@given(st.text(max_size=2000))
def test_a_line_is_one_line_of_valid_text_within_its_bound(text: str) -> None:
    line = safe_text(text, 100)
    assert len(line) <= 100
    assert "\n" not in line
    assert "\x00" not in line
    assert line.encode("utf-8").decode() == line


@pytest.mark.parametrize(
    "text", ["\ud800 half", "a" * 5_000_000, "://a:" * 200_000, "api_key" * 200_000, "sk-" * 400_000]
)
def test_hostile_text_is_handled_in_bounded_time(text: str) -> None:
    assert len(safe_text(text)) <= 400

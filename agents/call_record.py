"""One tool call of a worker: what is kept of it, and what names it, also when it is met again after a crash."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.evidence import ErrorType, Source
from tools.results import clean_text
from tools.web_address import allowed_urls

ARGUMENT_CHARS = 300
TURN_DIGITS = 4


class CallRecord(BaseModel):
    """One tool call: how often its body was started, and what came of it.

    Attributes:
        id: see `call_identity`; ids sort as the model asked.
        key: the same for calls of the same tool with the same arguments.
        arguments: cut to one short line; urls: the web addresses in the whole of them, one a line.
        answers: of the model, since the call before this one; see agents/answers.py.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    tool: str
    arguments: str
    urls: str = ""
    key: str
    runs: int = 0
    state: Literal["running", "ok", "error", "refused"] = "running"
    content: str = ""
    sources: list[Source] = Field(default_factory=list[Source])
    error_type: ErrorType | None = None
    answers: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])


def whole(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON."""
    return json.dumps(arguments, ensure_ascii=False, default=str, sort_keys=True)


def shown(arguments: Mapping[str, Any]) -> str:
    """Return arguments as one short line."""
    return clean_text(whole(arguments)[1:-1])[:ARGUMENT_CHARS]


def urls_in(text: str) -> str:
    """Return the web addresses in a text, one a line."""
    if not any(sign in text for sign in "./&"):  # no address is without one: the search need not begin
        return ""
    return "\n".join(sorted(allowed_urls([text])))


def call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what makes two calls the same: tool and arguments."""
    text = json.dumps([tool, arguments], ensure_ascii=False, default=str, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def call_identity(turn: int, place: int, call_id: str, key: str) -> str:
    """Return what names one call of an attempt, also when it is met again after a crash.

    Args:
        turn: how many model answers there are up to the one that asks for the call: some servers use the same
            call ids in every answer.
        place: of the call in that answer.
        call_id: given by the model.
        key: of tool and arguments: some servers use one id for two calls of one answer.
    """
    digest = hashlib.sha256(json.dumps([call_id, key]).encode("utf-8", "replace")).hexdigest()[:24]
    return f"{turn:0{TURN_DIGITS}}-{place:04}-{digest}"

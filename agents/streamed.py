"""A plan read while the model still writes it: each step as soon as it is whole.

The request is the ordinary one, by the ordinary ladder; a callback that takes tokens makes LangChain stream it, where the
model can. A tool call's arguments, native JSON and JSON in text are read alike. What is read here is only a beginning:
the whole answer is read and checked again at its end, as ever.
"""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from langchain_core.runnables.config import merge_configs, var_child_runnable_config

from agents.incoming import clean_data

# The longest step that the schema allows is shorter, escapes included.
MAX_STEP_CHARS = 120_000
MAX_THINKING_CHARS = 200_000
MAX_DEPTH = 40
_MARKS_OUTSIDE = re.compile(r'["{}\[\],]')
_MARKS_INSIDE = re.compile(r'["\\]')
# Before the answer: nothing, or a fence. Prose may be thinking, and what it quotes is not the answer.
_OPENING = re.compile(r"\s*(?:```[A-Za-z]*\s*)?(?=\{)")
# Some models wrap the answer in its name, or write the call as JSON.
_WRAPPINGS = frozenset({"function", "arguments", "parameters", "args", "input"})

Role = Literal["answer", "steps", "step", "questions", "other"]


@dataclass
class _Container:
    """An object or array that is open; `key` is that of an object's value to come."""

    role: Role
    start: int
    is_object: bool
    wants_key: bool
    key: str = ""


class StepReader:
    """Finds the steps in one answer that comes in pieces. Takes time linear in its length.

    Args:
        name: of the schema.

    Attributes:
        asks: whether the answer holds questions, as far as it is read.
    """

    def __init__(self, name: str) -> None:
        self.asks = False
        self._name = name
        self._text = ""
        self._at = 0
        self._open: list[_Container] = []
        self._string: int | None = None
        self._escaped = False
        self._began = False
        self._ended = False

    def feed(self, piece: str) -> list[Any]:
        """Take the next piece of text; return the steps that it has completed, as decoded JSON."""
        if self._ended:
            return []
        self._text += piece
        if not self._began and not self._begin(piece):
            return []
        found: list[Any] = []
        while not self._ended and self._at < len(self._text):
            self._advance(found)
        self._forget()
        return found

    def _begin(self, piece: str) -> bool:
        if len(self._text) > MAX_THINKING_CHARS:
            self._ended = True
        if "{" not in piece and ">" not in piece:
            return False
        _, _, body = self._text.rpartition("</think>")
        opening = _OPENING.match(body)
        if opening is None:
            return False
        self._text = body[opening.end() :]
        self._began = True
        return True

    def _advance(self, found: list[Any]) -> None:
        """Go on to the next mark that matters."""
        if self._escaped:
            self._at, self._escaped = self._at + 1, False
            return
        marks = _MARKS_OUTSIDE if self._string is None else _MARKS_INSIDE
        match = marks.search(self._text, self._at)
        if match is None:
            self._at = len(self._text)
            return
        self._at = match.end()
        mark = match[0]
        if mark == "\\":
            self._escaped = True
        elif mark == '"':
            self._quote(match.start())
        elif mark in "{[":
            self._enter(mark == "{", match.start())
        elif mark == ",":
            self._open[-1].wants_key = self._open[-1].is_object
        else:
            self._leave(found)

    def _quote(self, at: int) -> None:
        if self._string is None:
            self._string = at
            return
        start, self._string = self._string, None
        top = self._open[-1]
        if top.wants_key:
            top.key, top.wants_key = str(self._decoded(start)), False

    def _enter(self, is_object: bool, at: int) -> None:
        self._open.append(_Container(self._role_of(is_object), at, is_object, wants_key=is_object))
        self._ended = len(self._open) > MAX_DEPTH

    def _role_of(self, is_object: bool) -> Role:
        if not self._open:
            return "answer"
        top = self._open[-1]
        if top.role == "steps":
            return "step" if is_object else "other"
        if top.role != "answer":
            return "other"
        if is_object:
            return "answer" if top.key in _WRAPPINGS or top.key == self._name else "other"
        return cast("Role", top.key) if top.key in ("steps", "questions") else "other"

    def _leave(self, found: list[Any]) -> None:
        closed = self._open.pop()
        if closed.role == "step":
            step = self._decoded(closed.start)
            found += [step] if step is not None else []
        elif closed.role == "questions":
            self.asks = self.asks or any(str(q).strip() for q in self._decoded(closed.start) or ())
        self._ended = self._ended or not self._open

    def _decoded(self, start: int) -> Any:
        """Return the JSON value from `start` to here; what is none ends the reading."""
        try:
            return clean_data(json.loads(self._text[start : self._at], strict=False))
        except (ValueError, RecursionError):
            self._ended = True
            return None

    def _forget(self) -> None:
        """Drop the text that is not needed any more."""
        starts = [c.start for c in self._open if c.role in ("step", "questions")]
        starts += (
            [self._string] if self._string is not None and not starts and self._open[-1].wants_key else []
        )
        keep = min(starts, default=self._at)
        if len(self._text) - keep > MAX_STEP_CHARS:
            self._ended = True
        self._text, self._at = self._text[keep:], self._at - keep
        for container in self._open:
            container.start -= keep
        if self._string is not None:
            self._string -= keep


class Audience(Protocol):
    """Who is told what the planner writes."""

    def answer_begins(self) -> None:
        """Take note of a new answer: the first one, a retry, or a re-ask."""
        ...

    def step_written(self, raw: Any, *, asks: bool) -> None:
        """Take a whole step of the answer; `asks`: the answer has questions as well."""
        ...


class PlanListener(BaseCallbackHandler):
    """Reads one model's answers while they are written, and tells an audience of them.

    Attributes:
        heard: whether any answer has come, or a piece of one.
    """

    run_inline = True  # in the order of the pieces, in the caller's event loop

    def __init__(self, name: str, audience: Audience) -> None:
        self.heard = False
        self._name = name
        self._audience = audience
        self._run: UUID | None = None
        self._text = StepReader(name)
        self._calls: dict[Any, StepReader] = {}

    # With these two methods a handler counts as one that wants tokens: models that can then stream (langchain_core.tracers).
    def tap_output_aiter(self, run_id: UUID, output: Any) -> Any:  # noqa: ARG002
        """Return the output as it is."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Any) -> Any:  # noqa: ARG002
        """Return the output as it is."""
        return output

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Expect another answer."""
        self._run = run_id
        self._text, self._calls = StepReader(self._name), {}
        self._audience.answer_begins()

    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],  # noqa: ARG002 - the chunk has it
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Read a piece."""
        message = getattr(chunk, "message", None)
        if run_id != self._run or not isinstance(message, AIMessageChunk):
            return
        self.heard = True
        for piece in message.tool_call_chunks:
            if piece.get("name") == self._name and not self._calls:
                self._calls[piece.get("index")] = StepReader(self._name)
            reader = self._calls.get(piece.get("index"))
            if reader is not None:
                self._tell(reader, piece.get("args") or "")
        if not self._calls:
            self._tell(self._text, message.text)

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Note that an answer has come."""
        self.heard = True

    def _tell(self, reader: StepReader, piece: str) -> None:
        for raw in reader.feed(piece):
            self._audience.step_written(raw, asks=reader.asks)


@contextmanager
def heard_by(listener: PlanListener) -> Generator[None]:
    """Have the listener hear what models answer to requests made inside, in this task."""
    config = merge_configs(var_child_runnable_config.get(), {"callbacks": [listener]})
    token = var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def can_stream(model: BaseChatModel) -> bool:
    """Return whether a model's client streams at all."""
    own = type(model).__mro__
    streams = any({"_stream", "_astream"} & vars(kind).keys() for kind in own[: own.index(BaseChatModel)])
    return streams and model.disable_streaming is not True


def reporting_usage(model: BaseChatModel) -> BaseChatModel:
    """Return the model, asked to say at the end of a stream what it has cost: OpenAI's client does not by itself,
    where it talks to another server.
    """  # noqa: D205
    if hasattr(model, "stream_usage") and not getattr(model, "stream_usage", None):
        return model.model_copy(update={"stream_usage": True})
    return model

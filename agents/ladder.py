"""The ways to ask for an answer of a schema, best first; a server that refuses one is asked by the next.

    json_schema   the server holds the answer to the schema (response_format)
    named         a tool call, forced by the tool's name
    required      a tool call, forced by the word alone: some servers take only that
    auto          a tool is offered, and the model may call it
    text          the schema stands in the prompt, the answer is JSON in text

What a server has refused is remembered for the process (agents/endpoints.py), so that no refusal is met twice. A way
that is taken but twice in a row gives no answer of its kind is passed over from then on.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AnyMessage, SystemMessage

from agents.endpoints import Method, known_of
from agents.failures import leaves, model_error_type, status_of

Structured = Literal["auto", "json_schema", "tool", "prompt"]
MAX_MISSES = 2
_TOOL_METHODS: tuple[Method, ...] = ("named", "required", "auto")
_ORDERS: dict[Structured, tuple[Method, ...]] = {
    "auto": (*_TOOL_METHODS, "text"),
    "json_schema": ("json_schema", "text"),
    "tool": (*_TOOL_METHODS, "text"),
    "prompt": ("text",),
}
_OF_TOOLS = re.compile(r"tool|function.?call|functions", re.IGNORECASE)
_OF_SCHEMAS = re.compile(r"response_format|schema|structured|grammar|guided", re.IGNORECASE)
_OF_CHOICE = re.compile(r"tool.?choice|forced|required|named|specific", re.IGNORECASE)
_REFUSES = re.compile(r"support|require|implement|available|allowed|enabl|invalid|unable|fail", re.IGNORECASE)
_MAY_REFUSE = frozenset({400, 404, 405, 406, 415, 422, 501})


class MethodRefused(Exception):
    """The server does not take this way of asking; the cause is what it said."""


class Ladder:
    """Which way to ask one model next.

    Args:
        model: not bound to anything.
        structured: what the settings say; "auto" goes by the model's profile, where it has one.
        with_tools: whether real tools are offered beside the schema; they are taken away only if the server refuses
            any tools.
    """

    def __init__(self, model: BaseChatModel, structured: Structured, *, with_tools: bool = False) -> None:
        self._known = known_of(model)
        self._order = order_of(structured, model.profile or {}, with_tools=with_tools)
        self._passed: set[Method] = set()

    @property
    def method(self) -> Method:
        """The best way that is left; JSON in text always is."""
        known = self._known
        for method in self._order:
            if method not in known.rejected | self._passed and known.missed[method] < MAX_MISSES:
                return method
        return "text"

    def refused(self, method: Method, error: Exception) -> bool:
        """Note what an error says of a way of asking; return whether it refuses it, so that another is left."""
        text = " ".join(str(leaf) for leaf in leaves(error))
        if method == "text" or not _refuses(error, text, method):
            return False
        self._known.rejected.add(method)
        if method in _TOOL_METHODS and not _OF_CHOICE.search(text) and not _OF_SCHEMAS.search(text):
            self._known.rejected |= {*_TOOL_METHODS}  # no tools at all
        return True

    def not_offered(self, method: Method) -> None:
        """Note that the model's client has no such way, whatever its server takes."""
        self._known.rejected |= {*_TOOL_METHODS} if method in _TOOL_METHODS else {method}

    def missed(self, method: Method) -> None:
        """Note that an answer had nothing of the asked kind: the next request of this ladder goes another way."""
        if method == "text":
            return
        # Who was forced to call and did not, will not for another word.
        for one in _TOOL_METHODS if method in _TOOL_METHODS else (method,):
            self._passed.add(one)
            self._known.missed[one] += 1

    def worked(self, method: Method) -> None:
        """Note that this way gave a valid answer."""
        for one in _TOOL_METHODS if method in _TOOL_METHODS else (method,):
            self._known.missed[one] = 0


def order_of(structured: Structured, profile: Any, *, with_tools: bool = False) -> tuple[Method, ...]:
    """Return the ways to ask, best first.

    Args:
        structured: from the settings.
        profile: of the model (BaseChatModel.profile); empty where nothing is known: then tools come first, and a
            server's own JSON schema is not tried.
        with_tools: real tools are offered too: then the answer's form may not exclude tool calls.
    """
    if with_tools:
        forced = structured in ("auto", "tool") and profile.get("tool_choice", True)
        return ("required", "auto", "text") if forced else ("auto", "text")
    if structured != "auto" or not profile:
        return _ORDERS[structured]
    order: list[Method] = ["json_schema"] if profile.get("structured_output") else []
    if profile.get("tool_calling", True):
        order += _TOOL_METHODS if profile.get("tool_choice", True) else ("auto",)
    return (*order, "text")


def _refuses(error: Exception, text: str, method: Method) -> bool:
    status = next((code for leaf in leaves(error) if (code := status_of(leaf)) is not None), None)
    if status is None or (status not in _MAY_REFUSE and status < 500):
        return False
    if model_error_type(error) not in ("model", "transient"):
        return False
    names_it = _OF_SCHEMAS.search(text) or (method in _TOOL_METHODS and _OF_TOOLS.search(text))
    # An error of the server's own is a refusal only if it says so: llama.cpp answers 500 to what it has not.
    return bool(names_it) and (status in _MAY_REFUSE or bool(_REFUSES.search(text)))


def with_schema(messages: Sequence[AnyMessage], name: str, definition: Any) -> list[AnyMessage]:
    """Return the request with the schema at the end of its system message: roles still alternate, the beginning stays."""
    text = (
        f"Answer with one JSON object, and nothing else, that fits this JSON schema of a {name}:\n"
        + json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    )
    if messages and isinstance(messages[0], SystemMessage):
        return [SystemMessage(f"{messages[0].text}\n\n{text}"), *messages[1:]]
    return [SystemMessage(text), *messages]

"""Which model on which server, and what this process has learnt of it."""

import threading
import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from langchain_core.language_models.chat_models import BaseChatModel

Method = Literal["json_schema", "named", "required", "auto", "text"]
Endpoint = tuple[str, ...]
_NAMES = ("model_name", "model", "model_id", "deployment_name")
_ADDRESSES = (
    "openai_api_base",
    "base_url",
    "azure_endpoint",
    "endpoint",
    "endpoint_url",
    "anthropic_api_url",
)


@dataclass
class Known:
    """What an endpoint has shown.

    Attributes:
        rejected: ways of asking that it refuses.
        missed: how often in a row a way of asking got no answer of the asked kind.
        closed: it refused the key, or does not have the model.
    """

    rejected: set[Method] = field(default_factory=set[Method])
    missed: Counter[Method] = field(default_factory=Counter[Method])
    closed: bool = False


@cache
def _borne(kind: type, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the attributes that objects of a class can have at all: asking pydantic for others takes long."""
    fields: Mapping[str, Any] = getattr(kind, "model_fields", {})
    own_way = getattr(kind, "__getattr__", None) is not getattr(BaseChatModel, "__getattr__", None)
    return names if own_way else tuple(name for name in names if name in fields or hasattr(kind, name))


def model_name(model: BaseChatModel) -> str:
    """Return the name that a model is asked for by; where it has none, the name of its class."""
    found = (getattr(model, name, None) for name in _borne(type(model), _NAMES))
    return next((str(name) for name in found if isinstance(name, str) and name), type(model).__name__)


def endpoint_of(model: BaseChatModel) -> Endpoint:
    """Return what names a model on a server, the same for all objects that reach it.

    A model object that has neither name nor address is an endpoint of its own, as long as it lives.
    """
    name = model_name(model)
    addresses = (getattr(model, attribute, None) for attribute in _borne(type(model), _ADDRESSES))
    address = next((str(value) for value in addresses if value), "")
    if name == type(model).__name__ and not address:
        return ("object", str(id(model)))
    return (type(model).__name__, address.rstrip("/"), name)


_known: dict[Endpoint, Known] = {}
_guard = threading.Lock()


def known_of(model: BaseChatModel) -> Known:
    """Return what this process has learnt of a model's endpoint, to be read and added to."""
    endpoint = endpoint_of(model)
    with _guard:
        if endpoint not in _known:
            _known[endpoint] = Known()
            if endpoint[0] == "object":
                # Another object may get the same id later: it must not inherit this.
                weakref.finalize(model, _known.pop, endpoint, None)
        return _known[endpoint]


def forget() -> None:
    """Forget what has been learnt of every endpoint: servers that change, and tests, begin anew."""
    with _guard:
        _known.clear()

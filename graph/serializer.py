"""What checkpoints may hold: LangChain's messages, and an explicit list of our own classes."""

import copy
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from schemas.evidence import Finding
from schemas.state import CHECKPOINT_TYPES

# The classes of the run's state, and the one that a worker's state ends with.
READABLE = [(kind.__module__, kind.__name__) for kind in (*CHECKPOINT_TYPES, Finding)]


def serializer() -> JsonPlusSerializer:
    """Return the serializer of our own checkpoints."""
    return JsonPlusSerializer(allowed_msgpack_modules=READABLE)


def readable(checkpointer: BaseCheckpointSaver[Any] | None) -> BaseCheckpointSaver[Any] | None:
    """Return the checkpointer with a serializer that may read our classes back, with or without strict msgpack.

    One that has a list of classes of its own keeps it, with ours added; one that would read anything, with a
    warning for each class, reads what `serializer` does.
    """
    serde = checkpointer.serde if checkpointer is not None else None
    if checkpointer is None or not isinstance(serde, JsonPlusSerializer | EncryptedSerializer):
        return checkpointer
    listed = checkpointer.with_allowlist(READABLE)
    if listed is not checkpointer or getattr(serde, "_allowed_msgpack_modules", None) is not True:
        return listed
    ours = copy.copy(checkpointer)
    ours.serde = serializer()
    return ours


def with_our_serializer(checkpointer: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return a server's checkpointer with our serializer in place of its plain one.

    `readable` would keep the hook of its own with which a server reads our classes back as dicts.
    """
    if not isinstance(checkpointer.serde, JsonPlusSerializer):
        return readable(checkpointer) or checkpointer
    ours = copy.copy(checkpointer)
    ours.serde = serializer()
    return ours

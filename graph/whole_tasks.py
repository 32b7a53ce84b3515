"""A checkpointer that keeps nothing of a task that was cut off, but that it was.

A node is done when it has written its part of the state and its edge has said where the run goes on. LangGraph stores
what a cancelled or failed task has written so far, and takes a task that has written for done: cut off between the
two, it would leave a run that goes nowhere, and that no resume can move.
"""

import copy
from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

# A person's answer stays: the task that runs again asks for it.
_KEPT_OF_A_FAILURE = frozenset([ERROR, INTERRUPT, RESUME, "__error_source_node__"])


def with_whole_tasks(checkpointer: BaseCheckpointSaver[Any] | None) -> BaseCheckpointSaver[Any] | None:
    """Return the checkpointer, storing a task's writes as a whole or not at all."""
    kind: Any = type(checkpointer)
    if checkpointer is None or getattr(kind, "keeps_whole_tasks", False):
        return checkpointer

    class WholeTasks(kind):
        keeps_whole_tasks = True

        async def aput_writes(
            self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
        ) -> None:
            await super().aput_writes(config, whole(writes), task_id, task_path)

    ours: Any = copy.copy(checkpointer)
    ours.__class__ = WholeTasks  # it shares what the other one holds: its connection, or its memory
    return ours


def whole(writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Return a task's writes, or, of one that did not come to its end, only that and what a person has answered."""
    if all(channel != ERROR for channel, _ in writes):
        return writes
    return [write for write in writes if write[0] in _KEPT_OF_A_FAILURE]

"""Whether a thread can go on, and which questions a resume value answers."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore
from langgraph.types import Command, StateSnapshot

from agents.incoming import clean_data

FORGETFUL = (
    "thread %r: the checkpointer outlives the process, the Store does not: what steps had done and "
    "found before the process ended is lost; give build_graph a store=, for example AsyncSqliteStore or "
    "AsyncPostgresStore, or use open_graph"
)
INTERRUPT_ID = re.compile("[0-9a-f]{32}")


def delivered_again(config: Mapping[str, Any], state: StateSnapshot) -> bool:
    """Return whether this very run has written to the thread before.

    An Agent Server whose worker has died gives the run to another one just as it was sent in: an answer that has
    been taken, or None though the run has ended. LangGraph knows such an input by the run id; so it does the same.
    """
    configurable = cast("Mapping[str, Any]", config.get("configurable") or {})
    metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
    run_id = configurable.get("run_id") or metadata.get("run_id")
    return bool(run_id) and str(run_id) == str(cast("Mapping[str, Any]", state.metadata or {}).get("run_id"))


def may_have_forgotten(checkpointer: object, store: BaseStore | None, state: StateSnapshot) -> bool:
    """Return whether steps were at work, and what they had done is kept only as long as this process lives."""
    at_work = any(task.name == "execute" for task in state.tasks)
    kept = store is not None or isinstance(
        checkpointer, (InMemorySaver, AsyncSqliteSaver)
    )  # see graph/beside.py
    return at_work and not kept


def nothing_to_resume(command: Command[Any] | None, state: StateSnapshot) -> str:
    """Return why a thread cannot go on with None or a Command, or ""."""
    if not state.values and not state.tasks:
        return "has nothing to resume: there is no such thread"
    if command is None:
        # Not `next`: it leaves out tasks that have written, while their superstep's checkpoint is still to come.
        return "" if state.tasks else "has nothing to resume: its run has ended"
    if command.goto or command.update:
        return ""
    open_questions = {question.id for question in state.interrupts}
    named = named_questions(command.resume)
    if not open_questions:
        return "does not wait for an answer"
    return "does not wait for this answer" if named and not named & open_questions else ""


def named_questions(answer: Any) -> set[str]:
    """Return the interrupt ids that a resume value answers one by one; empty when it answers the open question."""
    keys = {str(key) for key in cast("dict[Any, Any]", answer)} if isinstance(answer, dict) else set[str]()
    return keys if all(INTERRUPT_ID.fullmatch(key) for key in keys) else set()


def answering(command: Command[Any] | None, state: StateSnapshot) -> Command[Any] | None:
    """Return the command, its answer as valid text; None and {} are put to every open question: LangGraph takes them
    for no answer at all.
    """  # noqa: D205
    if command is None or command.goto or command.update:
        return command
    if command.resume not in (None, {}):
        return replace(command, resume=clean_data(command.resume))
    return replace(command, resume={question.id: command.resume for question in state.interrupts})

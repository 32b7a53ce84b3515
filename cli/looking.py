"""What a thread has come to, of its current objective alone."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from langgraph.types import StateSnapshot

from graph.runner import Outcome, outcome_of, thread_config
from schemas.evidence import Usage

if TYPE_CHECKING:
    from graph.threads import TaskGraph


@dataclass(frozen=True)
class Seen:
    """A thread's state and what it says."""

    snapshot: StateSnapshot
    outcome: Outcome

    @property
    def values(self) -> dict[str, Any]:
        """The state's values; they may belong to an earlier objective."""
        return cast("dict[str, Any]", self.snapshot.values or {})


async def look(graph: "TaskGraph", thread_id: str) -> Seen:
    """Return what a thread's latest run has come to; empty for a thread that does not exist."""
    snapshot = await graph.aget_state(thread_config(thread_id))
    return Seen(snapshot, current(snapshot, thread_id))


def current(snapshot: StateSnapshot, thread_id: str) -> Outcome:
    """Return what a checkpoint says of the objective that the thread is at.

    Until `plan` has run, the state still holds what the objective before has left.
    """
    found = outcome_of(snapshot, thread_id)
    values = cast("dict[str, Any]", snapshot.values or {})
    if values.get("run_id") == values.get("planned_run_id"):
        return found
    return replace(
        found,
        status="running",
        stop_reason=None,
        final_answer="",
        evidence=[],
        sources=[],
        review=None,
        plan=None,
        plans=[],
        usage=Usage(),
    )

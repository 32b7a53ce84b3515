"""More budget for a run that has ended with gaps: it goes on, and repeats nothing that has passed."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph.threads import TaskGraph
from nodes.extend import extension
from schemas.errors import InputError, NothingToResume
from schemas.state import TaskState

# run_id too: what is written now is not of that call (see graph/resuming.py).
LANGGRAPHS_OWN = {
    "source",
    "step",
    "writes",
    "parents",
    "thread_id",
    "run_id",
    "counters_since_delta_snapshot",
}


async def extend(
    graph: TaskGraph,
    thread_id: str,
    *,
    tool_calls: int = 0,
    replans: int = 0,
    seconds: float = 0,
    tokens: int = 0,
    steps: int = 0,
) -> None:
    """Raise the limits of an ended run; `await graph.ainvoke(None, config)` then goes on with it.

    The same by hand: `more = extension(state.values, tool_calls=10)`, then
    `await graph.aupdate_state(config, more.update, as_node=more.after)`.

    Args:
        graph: with a checkpointer.
        thread_id: of the run.
        tool_calls: to add to the run's tool budget.
        replans: to add.
        seconds: to add to the run's deadline.
        tokens: to add to max_tokens, where the run has such a bound.
        steps: to add to max_attempted_steps.

    Raises:
        NothingToResume: there is no such thread.
        InputError: the run has not ended, is completed, or nothing is added.
        ThreadBusy: a run is working on the thread.
    """
    config = cast("RunnableConfig", {"configurable": {"thread_id": thread_id}})
    async with graph.locks.hold(thread_id):
        snapshot = await graph.aget_state(config)
        if not snapshot.values:
            raise NothingToResume(f"there is no thread {thread_id!r}")
        if snapshot.tasks:
            raise InputError(
                f"the run of thread {thread_id!r} has not ended: resume it, its limits still hold"
            )
        state = cast("TaskState", snapshot.values)
        more = extension(
            state, tool_calls=tool_calls, replans=replans, seconds=seconds, tokens=tokens, steps=steps
        )
        # What the run was started with stands in the metadata of each of its checkpoints, this one too.
        await graph.aupdate_state(
            {**config, "metadata": own_metadata(snapshot)}, more.update, as_node=more.after
        )


def own_metadata(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return what a run's caller and its choices have put into its checkpoints' metadata, without LangGraph's part."""
    stored = cast("Mapping[str, Any]", snapshot.metadata or {})
    return {key: value for key, value in stored.items() if key not in LANGGRAPHS_OWN}

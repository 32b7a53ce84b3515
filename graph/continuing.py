"""More budget for a run that has ended with gaps: it goes on, and repeats nothing that has passed."""

from typing import cast

from langchain_core.runnables import RunnableConfig

from graph.threads import TaskGraph
from nodes.extend import extension
from schemas.errors import InputError, NothingToResume
from schemas.state import TaskState


async def extend(
    graph: TaskGraph, thread_id: str, *, tool_calls: int = 0, replans: int = 0, seconds: float = 0
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
        more = extension(state, tool_calls=tool_calls, replans=replans, seconds=seconds)
        await graph.aupdate_state(config, more.update, as_node=more.after)

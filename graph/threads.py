"""Threads: one run at a time, checked before anything is written; and a list of them."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import Command, StateSnapshot
from typing_extensions import override

from graph.choices import keep_choices, repeated_choices
from graph.intake import task_input
from graph.locks import ThreadLocks, thread_digest
from graph.resuming import (
    FORGETFUL,
    answering,
    delivered_again,
    may_have_forgotten,
    nothing_to_resume,
)
from graph.serializer import with_our_serializer
from graph.whole_tasks import with_whole_tasks
from nodes.dataflow import with_finished
from nodes.parts import Parts, approvals_root, finished_root, ledger_root
from nodes.streamed import with_early
from schemas.context import RunContext
from schemas.errors import InputError, NothingToResume, StorageError
from schemas.evidence import Usage
from schemas.state import TaskInput, TaskOutput, TaskState
from tools.results import clean_text

logger = logging.getLogger(__name__)
INDEX = ("planweave", "threads")
# Supersteps, not model calls: each wave takes two, and every loop has a bound of its own that is reached first.
RECURSION_LIMIT = 5_000
# LangGraph's old default, which some front ends still send: too low for our bounds.
OLD_LIMIT = 25


@dataclass(frozen=True)
class ThreadSummary:
    """One thread, for lists. `status` is running, waiting, interrupted, or how the run ended."""

    thread_id: str
    objective: str
    status: str
    stop_reason: str | None
    updated_at: datetime
    tool_calls: int
    model_calls: int


class TaskGraph(CompiledStateGraph[TaskState, RunContext, TaskInput, TaskOutput]):
    """The compiled graph, guarded: a thread has one run at a time, and a resume needs something to resume.

    ainvoke and every way of streaming go through `astream`, so that the guard stands there.
    """

    parts: Parts
    locks: ThreadLocks

    @classmethod
    def of(cls, compiled: CompiledStateGraph[Any, Any, Any, Any], parts: Parts, locks: ThreadLocks) -> Self:
        """Wrap a compiled graph."""
        graph = cls(**{key: value for key, value in vars(compiled).items() if key != "__orig_class__"})
        graph.parts, graph.locks = parts, locks
        return graph

    @override
    def copy(self, update: dict[str, Any] | None = None) -> Self:
        own = ("parts", "locks", "__orig_class__")
        update = dict(update or {})
        if isinstance(update.get("checkpointer"), BaseCheckpointSaver):
            # An Agent Server brings its own, whose serializer does not know our classes.
            update["checkpointer"] = with_whole_tasks(with_our_serializer(update["checkpointer"]))
        attrs = {key: value for key, value in vars(self).items() if key not in own} | update
        graph = type(self)(**attrs)
        graph.parts, graph.locks = self.parts, self.locks
        return graph

    @override
    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state; in an unfinished superstep, or beside a planner, with what steps have finished so far."""
        snapshot = await super().aget_state(config, subgraphs=subgraphs)
        thread_id = self._thread(config)
        checkpoint_id = snapshot.config.get("configurable", {}).get("checkpoint_id")
        at_work = {task.name for task in snapshot.tasks} & {"plan", "execute"}
        if not thread_id or not checkpoint_id or not at_work:
            return snapshot
        namespace = (*finished_root(thread_id), str(checkpoint_id))
        with_work = with_finished if "execute" in at_work else with_early
        return snapshot._replace(values=await with_work(snapshot.values, self._index_store(), namespace))

    @override
    async def astream(self, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        config = cast("dict[str, Any]", {"recursion_limit": RECURSION_LIMIT, **(config or {})})
        if config["recursion_limit"] == OLD_LIMIT:
            config["recursion_limit"] = RECURSION_LIMIT
        thread_id = self._thread(config)
        async with AsyncExitStack() as stack:
            if thread_id:
                await stack.enter_async_context(self.locks.hold(thread_id))
                kwargs["durability"] = kwargs.get("durability") or "sync"
            if isinstance(input, Mapping):
                input = task_input(cast("Mapping[str, Any]", input))
                keep_choices(config, kwargs)
                await self._note(thread_id, input)
            else:
                input, kwargs["context"] = await self._resumable(input, config, kwargs.get("context"))
            chunks = cast("AsyncGenerator[Any]", super().astream(input, config, **kwargs))
            try:
                async with aclosing(chunks):
                    async for chunk in chunks:
                        yield chunk
            except StorageError:
                raise  # what follows would only wait for the same database again
            except BaseException:
                await self._settle(thread_id)
                raise
            await self._settle(thread_id)

    def _thread(self, config: Any) -> str:
        """Return the id of the thread that a run is kept on, or "" where runs are not kept."""
        if not self.checkpointer:
            return ""
        address: Any = merge_configs(self.config, config)
        return str(address.get("configurable", {}).get("thread_id", ""))

    async def _resumable(self, input: Any, config: Any, context: Any) -> tuple[Any, Any]:
        """Return the input and the context to go on with: that of the run, if it was started with one.

        Raises:
            InputError: there is no usable objective. NothingToResume: no unfinished run, or no such question.
        """
        thread_id = self._thread(config)
        if not thread_id or not (input is None or isinstance(input, Command)):
            raise InputError("an objective is needed: pass {'objective': '...'}")
        state = await self.aget_state(config)
        context = repeated_choices(config, state) or context
        if delivered_again(config, state):
            return None, context
        problem = nothing_to_resume(cast("Command[Any] | None", input), state)
        if problem:
            await self._settle(thread_id)
            raise NothingToResume(f"thread {thread_id!r} {problem}")
        await self._warn_if_forgotten(thread_id, state)
        if state.values.get("objective"):
            await self._put(thread_id, **summary_fields(state) | {"status": "running"})
        return answering(cast("Command[Any] | None", input), state), context

    async def _warn_if_forgotten(self, thread_id: str, state: StateSnapshot) -> None:
        if may_have_forgotten(cast("object", self.checkpointer), self.store, state):
            known = await self.parts.store.asearch(ledger_root(thread_id), limit=1)
            if not known:
                logger.warning(FORGETFUL, thread_id)

    async def _note(self, thread_id: str, input: dict[str, Any]) -> None:
        if thread_id:
            await self._put(thread_id, objective=input["objective"][:500], status="running", stop_reason=None)

    async def _settle(self, thread_id: str) -> None:
        """Bring the list of threads up to date, and drop what only a running step needs; never at the run's price."""
        if not thread_id:
            return
        try:
            state = await self.aget_state(cast("Any", {"configurable": {"thread_id": thread_id}}))
            if not state.values.get("objective"):
                return
            if not state.tasks:
                await self._forget(thread_id)
            fields = summary_fields(state)
            known = await self._index_store().aget(INDEX, thread_digest(thread_id))
            if (
                known is None or {**known.value, **fields} != known.value
            ):  # else nothing has happened to the thread
                await self._put(thread_id, **fields)
        except Exception as error:  # noqa: BLE001 - the run has ended as it has, whatever becomes of the list
            logger.warning("the list of threads is not up to date: %s", error)

    async def _forget(self, thread_id: str) -> None:
        """Drop the ledgers and the checkpoints of workers: a run that has ended has all it needs in its state."""
        store = self._index_store()
        roots = (ledger_root(thread_id), finished_root(thread_id), approvals_root(thread_id))
        items = [item for root in roots for item in await store.asearch(root, limit=100_000)]
        await store.abatch([PutOp(item.namespace, item.key, None) for item in items])
        await self.parts.sweep(thread_id)

    def _index_store(self) -> BaseStore:
        return cast("Any", self.store) or self.parts.store

    async def _put(self, thread_id: str, **fields: Any) -> None:
        value = {"thread_id": clean_text(thread_id), "updated_at": datetime.now(UTC).isoformat(), **fields}
        await self._index_store().aput(INDEX, thread_digest(thread_id), value, index=False)

    async def drain(self) -> int:
        """Let running tool calls end and begin nothing more; then cancel the tasks that await runs, and resume them later.

        Returns:
            How many calls were still at work when PLANWEAVE_GRACE_SECONDS had passed.
        """
        return await self.parts.drain.finish()

    async def threads(self, limit: int = 1000) -> list[ThreadSummary]:
        """Return the threads of this store, the last used first."""
        items = await self._index_store().asearch(INDEX, limit=limit)
        held = await self.locks.held(str(item.value["thread_id"]) for item in items)
        found = [self._summary(item.value, item.value["thread_id"] in held) for item in items]
        return sorted(found, key=lambda thread: thread.updated_at, reverse=True)

    @staticmethod
    def _summary(value: dict[str, Any], held: bool) -> ThreadSummary:
        status = str(value["status"])
        if status == "running" and not held:
            status = "interrupted"
        elif held:
            status = "running"
        return ThreadSummary(
            thread_id=value["thread_id"],
            objective=value["objective"],
            status=status,
            stop_reason=value.get("stop_reason"),
            updated_at=datetime.fromisoformat(value["updated_at"]),
            tool_calls=value.get("tool_calls", 0),
            model_calls=value.get("model_calls", 0),
        )

    @property
    def offline(self) -> bool:
        """Whether the embedded model does all the work."""
        return set(self.model_names.values()) == {"offline"}

    @property
    def registry(self) -> Any:
        """The tools: the same list that prompts, validation and workers read."""
        return self.parts.registry

    @property
    def model_names(self) -> dict[str, str]:
        """Return the model of each role, by name; "offline" for the embedded one."""
        models = self.parts.models
        roles = ("planner", "worker", "reviewer", "writer")
        return {role: model_name(getattr(models, role)) for role in roles}


def summary_fields(state: StateSnapshot) -> dict[str, Any]:
    """Return what the list of threads shows of a run."""
    values = cast("dict[str, Any]", state.values)
    usage: Usage = values.get("usage") or Usage()
    status = "waiting" if state.interrupts else ("interrupted" if state.tasks else values.get("status"))
    return {
        "objective": values["objective"][:500],
        "status": status,
        "stop_reason": values.get("stop_reason"),
        "tool_calls": usage.tool_calls,
        "model_calls": usage.model_calls,
    }


def model_name(model: Any) -> str:
    """Return a model's name as a person knows it."""
    if model._llm_type == "planweave-offline":
        return "offline"
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return str(name or type(model).__name__)

"""Threads: one run at a time, checked before anything is written; and a list of them."""

import asyncio
import copy
import hashlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, cast

from filelock import FileLock, Timeout
from langchain_core.messages import AnyMessage, HumanMessage, convert_to_messages
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command
from typing_extensions import override

from nodes.parts import Parts
from schemas.context import RunContext
from schemas.errors import InputError, NothingToResume, ThreadBusy
from schemas.state import CHECKPOINT_TYPES, MAX_OBJECTIVE_CHARS, TaskInput, TaskOutput, TaskState
from tools.results import clean_text

INDEX = ("planweave", "threads")
# Supersteps, not model calls: each wave takes two, and every loop has a bound of its own that is reached first.
RECURSION_LIMIT = 5_000


def readable(checkpointer: BaseCheckpointSaver[Any] | None) -> BaseCheckpointSaver[Any] | None:
    """Return the checkpointer with a serializer that may read our classes back, with or without strict msgpack."""
    if checkpointer is None or type(checkpointer.serde) is not JsonPlusSerializer:
        return checkpointer
    ours = copy.copy(checkpointer)
    ours.serde = serializer()
    return ours


def serializer() -> JsonPlusSerializer:
    """Return the serializer of our checkpoints: LangChain's messages, and an explicit list of our own classes."""
    return JsonPlusSerializer(
        allowed_msgpack_modules=[(kind.__module__, kind.__name__) for kind in CHECKPOINT_TYPES]
    )


class ThreadLocks:
    """Holds each thread for one run: within this process, and across processes where a folder is given.

    Args:
        folder: of lock files (flock): the system releases them when a process dies, however it dies.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._held: set[str] = set()

    @asynccontextmanager
    async def hold(self, thread_id: str) -> AsyncGenerator[None]:
        """Hold a thread.

        Raises:
            ThreadBusy: another run holds it.
        """
        if thread_id in self._held:
            raise ThreadBusy(f"thread {thread_id!r} is busy: another run is working on it")
        self._held.add(thread_id)
        lock = self._file_lock(thread_id)
        try:
            if lock is not None:
                try:
                    lock.acquire(blocking=False)
                except Timeout:
                    raise ThreadBusy(
                        f"thread {thread_id!r} is busy: another process is working on it"
                    ) from None
            yield
        finally:
            self._held.discard(thread_id)
            if lock is not None:
                lock.release()

    def is_held(self, thread_id: str) -> bool:
        """Return whether a run is working on the thread, in this process or another."""
        if thread_id in self._held:
            return True
        lock = self._file_lock(thread_id)
        if lock is None:
            return False
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return True
        lock.release()
        return False

    def _file_lock(self, thread_id: str) -> FileLock | None:
        if self._folder is None:
            return None
        name = hashlib.sha256(thread_id.encode("utf-8", "replace")).hexdigest()[:32]
        return FileLock(self._folder / f"{name}.lock", is_singleton=False, thread_local=False)


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
        attrs = {key: value for key, value in vars(self).items() if key not in own} | (update or {})
        graph = type(self)(**attrs)
        graph.parts, graph.locks = self.parts, self.locks
        return graph

    @override
    async def astream(self, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        config = cast("dict[str, Any]", {"recursion_limit": RECURSION_LIMIT, **(config or {})})
        if (
            config["recursion_limit"] == 25
        ):  # LangGraph's old default, set by some front ends: too low for our bounds
            config["recursion_limit"] = RECURSION_LIMIT
        thread_id = str(config.get("configurable", {}).get("thread_id", ""))
        async with AsyncExitStack() as stack:
            if thread_id and self.checkpointer:
                await stack.enter_async_context(self.locks.hold(thread_id))
                kwargs.setdefault("durability", "sync")
                if kwargs["durability"] is None:
                    kwargs["durability"] = "sync"
            input = await self._checked(input, config)
            await self._note(thread_id, input)
            stream = super().astream(input, config, **kwargs)
            try:
                async for chunk in stream:
                    yield chunk
            finally:
                await cast("Any", stream).aclose()
                await self._note_end(thread_id)

    async def _checked(self, input: Any, config: Any) -> Any:
        """Return the input to run with.

        Raises:
            InputError: there is no usable objective. NothingToResume: no unfinished run, or no such question.
        """
        if isinstance(input, Mapping):
            return task_input(cast("Mapping[str, Any]", input))
        if not self.checkpointer:
            raise InputError("an objective is needed: pass {'objective': '...'}")
        thread_id = config.get("configurable", {}).get("thread_id")
        state = await self.aget_state(config)
        if isinstance(input, Command):
            command = cast("Command[Any]", input)
            if command.resume is not None and not state.interrupts:
                raise NothingToResume(f"thread {thread_id!r} does not wait for an answer")
        elif input is None and not state.next:
            why = "its run has ended" if state.values else "there is no such thread"
            raise NothingToResume(f"thread {thread_id!r} has nothing to resume: {why}")
        return cast("Any", input)

    async def _note(self, thread_id: str, input: Any) -> None:
        if not thread_id or not isinstance(input, dict):
            return
        await self._put(thread_id, objective=input["objective"][:500], status="running", stop_reason=None)

    async def _note_end(self, thread_id: str) -> None:
        """Bring the list up to date; never at the price of the run itself."""
        if not thread_id or not self.checkpointer:
            return
        address = {"configurable": {"thread_id": thread_id}}
        state = await asyncio.shield(self.aget_state(cast("Any", address)))
        values = state.values
        if not values.get("objective"):
            return
        usage = values.get("usage")
        status = "waiting" if state.interrupts else ("interrupted" if state.next else values.get("status"))
        await self._put(
            thread_id,
            objective=values["objective"][:500],
            status=status,
            stop_reason=values.get("stop_reason"),
            tool_calls=usage.tool_calls if usage else 0,
            model_calls=usage.model_calls if usage else 0,
        )

    async def _put(self, thread_id: str, **fields: Any) -> None:
        store: BaseStore = cast("Any", self.store) or self.parts.store
        key = hashlib.sha256(thread_id.encode("utf-8", "replace")).hexdigest()[:32]
        value = {"thread_id": clean_text(thread_id), "updated_at": datetime.now(UTC).isoformat(), **fields}
        await store.aput(INDEX, key, value, index=False)

    async def threads(self, limit: int = 1000) -> list[ThreadSummary]:
        """Return the threads of this store, the last used first."""
        store: BaseStore = cast("Any", self.store) or self.parts.store
        items = await store.asearch(INDEX, limit=limit)
        found = [self._summary(item.value) for item in items]
        return sorted(found, key=lambda thread: thread.updated_at, reverse=True)

    def _summary(self, value: dict[str, Any]) -> ThreadSummary:
        status = str(value["status"])
        if status == "running" and not self.locks.is_held(value["thread_id"]):
            status = "interrupted"
        elif status != "running" and self.locks.is_held(value["thread_id"]):
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


def model_name(model: Any) -> str:
    """Return a model's name as a person knows it."""
    if model._llm_type == "planweave-offline":
        return "offline"
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return str(name or type(model).__name__)


def task_input(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a new run: the objective, its message, and a run id.

    Raises:
        InputError: the objective is missing, empty, too long, or not text.
    """
    messages = cast("list[AnyMessage]", convert_to_messages(given.get("messages") or []))
    objective = given.get("objective")
    if objective is None:
        human = [m for m in messages if isinstance(m, HumanMessage)]
        objective = human[-1].text if human else None
    if not isinstance(objective, str) or not objective.strip():
        raise InputError("the objective is missing or empty: pass {'objective': '...'} or a human message")
    if len(objective) > MAX_OBJECTIVE_CHARS:
        raise InputError(
            f"the objective has {len(objective)} characters: at most {MAX_OBJECTIVE_CHARS} are allowed"
        )
    objective = clean_text(objective).strip()
    if not objective:
        raise InputError("the objective holds no readable text")
    return {
        "objective": objective,
        "messages": messages or [HumanMessage(objective)],
        "run_id": given.get("run_id") or uuid.uuid4().hex,
    }

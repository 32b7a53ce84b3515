"""What the nodes are built from: models, tools, stores, clocks. Everything from outside comes in here."""

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from agents.checks import StepVerifier
from agents.models import ResolvedModels
from schemas.context import RunContext
from schemas.evidence import Evidence
from schemas.plan import Plan
from schemas.state import StepTask, TaskState
from tools.artifacts import ArtifactStore
from tools.registry import ToolRegistry

GoalVerifier = Callable[[Plan, list[Evidence]], bool | Awaitable[bool]]
Writer = Callable[[Any], None]
Emit = Callable[[BaseModel], None]


class Node(Protocol):
    """A node of the graph: reads the state, returns its update."""

    async def __call__(self, state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        """Run the node."""
        ...


class QuietNode(Protocol):
    """A node that needs nothing of the runtime."""

    async def __call__(self, state: TaskState) -> dict[str, Any]:
        """Run the node."""
        ...


class StepNode(Protocol):
    """The node that `Send` starts: reads one step's task."""

    async def __call__(self, state: StepTask, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        """Run the step."""
        ...


async def sweep_nothing(thread_id: str) -> None:
    """Keep everything: used where the checkpointer is the application's own."""


class StepSlots:
    """At most `limit` steps of one thread at work at once; and one lock per thread for tools that change something.

    LangGraph's max_concurrency is set by the caller's config; this is the run's own limit, whoever calls.
    """

    def __init__(self) -> None:
        self._slots: dict[tuple[int, str, int], tuple[asyncio.Semaphore, list[int]]] = {}
        self._locks: dict[tuple[int, str], asyncio.Lock] = {}

    @asynccontextmanager
    async def slot(self, thread_id: str, limit: int) -> AsyncGenerator[asyncio.Lock]:
        """Wait for a place; yield the thread's lock for tools that change something."""
        loop = id(asyncio.get_running_loop())
        key = (loop, thread_id, limit)
        semaphore, users = self._slots.setdefault(key, (asyncio.Semaphore(limit), [0]))
        lock = self._locks.setdefault((loop, thread_id), asyncio.Lock())
        users[0] += 1
        try:
            async with semaphore:
                yield lock
        finally:
            users[0] -= 1
            if not users[0]:
                self._slots.pop(key, None)
                self._locks.pop((loop, thread_id), None)


@dataclass(frozen=True)
class Parts:
    """The application: given to every node by build_graph.

    Attributes:
        store: holds the ledgers where the runtime brings no store.
        sweep: drops what only running steps need (worker checkpoints) from a thread.
        now: wall clock; clock: monotonic seconds.
    """

    models: ResolvedModels
    registry: ToolRegistry
    artifacts: ArtifactStore
    store: BaseStore
    verify_step: StepVerifier | None = None
    verify_goal: GoalVerifier | None = None
    sweep: Callable[[str], Awaitable[None]] = sweep_nothing
    slots: StepSlots = field(default_factory=StepSlots)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic


def emitter(write: Writer) -> Emit:
    """Return a function that sends RunEvents to the custom stream as JSON objects."""
    return lambda event: write(event.model_dump(mode="json"))


def thread_id() -> str:
    """Return the thread id of the run that the calling node belongs to, or "" where there is no thread."""
    return str(get_config().get("configurable", {}).get("thread_id", ""))


def ledger_root(thread_id: str) -> tuple[str, ...]:
    """Return the Store namespace of a thread's ledgers. Thread ids may hold dots, namespaces may not."""
    return ("planweave", "ledger", hashlib.sha256(thread_id.encode("utf-8", "replace")).hexdigest()[:24])

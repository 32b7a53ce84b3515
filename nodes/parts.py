"""What the nodes are built from: models, tools, stores, clocks. Everything from outside comes in here."""

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from agents.checks import StepVerifier
from agents.draining import Drain
from agents.models import ResolvedModels
from nodes.dataflow import Flows
from nodes.slots import StepSlots
from schemas.context import RunContext
from schemas.evidence import Evidence
from schemas.plan import Plan
from schemas.state import LaneTask, TaskState
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


class LaneNode(Protocol):
    """The node that `Send` starts."""

    async def __call__(self, state: LaneTask, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        """Run the lane."""
        ...


async def sweep_nothing(thread_id: str) -> None:
    """Keep everything: used where the checkpointer is the application's own."""


@dataclass(frozen=True)
class Parts:
    """The application: given to every node by build_graph.

    Attributes:
        store: holds the ledgers where the runtime brings no store.
        sweep: drops what only running steps need (worker checkpoints) from a thread.
        now: wall clock; clock: monotonic seconds.
        drain: stops a process in good order.
    """

    models: ResolvedModels
    registry: ToolRegistry
    artifacts: ArtifactStore
    store: BaseStore
    verify_step: StepVerifier | None = None
    verify_goal: GoalVerifier | None = None
    sweep: Callable[[str], Awaitable[None]] = sweep_nothing
    slots: StepSlots = field(default_factory=StepSlots)
    flows: Flows = field(default_factory=Flows)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic
    drain: Drain = field(default_factory=Drain)


def emitter(write: Writer) -> Emit:
    """Return a function that sends RunEvents to the custom stream as JSON objects."""
    return lambda event: write(event.model_dump(mode="json"))


def thread_id() -> str:
    """Return the thread id of the run that the calling node belongs to, or "" where there is no thread."""
    return str(get_config().get("configurable", {}).get("thread_id", ""))


def can_wait() -> bool:
    """Return whether the run is kept somewhere, so that it can pause for a person and go on later."""
    # The only place that knows: an Agent Server brings its checkpointer along with the call.
    return get_config().get("configurable", {}).get("__pregel_checkpointer") is not None


def finished_root(thread_id: str) -> tuple[str, ...]:
    """Return the Store namespace of the steps that a thread's running supersteps have finished."""
    return ("planweave", "finished", ledger_root(thread_id)[-1])


def approvals_root(thread_id: str, *run_id: str) -> tuple[str, ...]:
    """Return the Store namespace of what a person has allowed on a thread; for one of its runs, if that is named."""
    return ("planweave", "approvals", *(ledger_root(name)[-1] for name in (thread_id, *run_id)))


def ledger_root(thread_id: str) -> tuple[str, ...]:
    """Return the Store namespace of a thread's ledgers. Thread ids may hold dots, namespaces may not."""
    return ("planweave", "ledger", hashlib.sha256(thread_id.encode("utf-8", "replace")).hexdigest()[:24])

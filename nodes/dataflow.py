"""What runs, what is done and what may start inside one superstep: steps wait for their dependencies, not for waves.

`schedule` sends out the steps that are ready; each of them is a lane. When a lane's step is done, the lane also runs
the steps that this has made ready. Finished evidence goes at once into the Store, under the checkpoint of the
superstep: after a crash a lane that is entered again returns what it had done, counts what all lanes have done, and
goes on. A fork has another checkpoint, and runs its steps anew.
"""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict

from agents.middleware.approval import Approvals
from agents.worker import Attempt
from nodes.readiness import Grant, next_wave, remaining_seconds, seconds_left, step_task, tokens_left
from schemas.evidence import Evidence, Source, Usage
from schemas.plan import Plan
from schemas.state import StepTask, TaskState, merge_evidence, merge_sources

READ = "__pregel_read"
MOST = 100_000
STATE_KEYS = ["run_id", "choices", "objective", "plan", "limits", "evidence", "sources", "usage"]


class Finished(BaseModel):
    """One finished step, as the Store keeps it until the superstep's own checkpoint is written.

    Attributes:
        lane: id of the graph task that ran it, and that returns it.
    """

    model_config = ConfigDict(extra="forbid")

    lane: str
    evidence: Evidence
    sources: list[Source]
    usage: Usage


@dataclass
class Flow:
    """The common knowledge of all lanes of a superstep. Everything here is quick: lanes share one event loop.

    Attributes:
        state: of the graph when the superstep began; never changed.
        namespace: of finished steps in the Store; ledgers: root of the ledgers of the superstep's steps.
        running: steps at work, with the tool runs reserved for them; those that wait for a person, too.
        finished: what has been done in this superstep, in this life or an earlier one of the process.
        recorded: step key (see step_key) -> tool calls that an earlier life has recorded.
        at_work: attempts that run in this life, by step.
        evidence, usage: all there is, of this superstep too.
        left: seconds before the deadline when this life of the superstep began; what earlier lives have spent is gone.
        clock, began: monotonic seconds; began_at: wall clock at that moment. Whatever happens to the wall clock while
            steps are at work, their times are taken from the monotonic one: a deadline counts seconds, not jumps.
    """

    state: TaskState
    store: BaseStore
    namespace: tuple[str, ...]
    ledgers: tuple[str, ...]
    approvals: Approvals
    clock: Callable[[], float]
    began: float
    began_at: datetime
    running: dict[str, int] = field(default_factory=dict[str, int])
    finished: list[Finished] = field(default_factory=list[Finished])
    recorded: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    at_work: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    evidence: list[Evidence] = field(init=False)
    usage: Usage = field(init=False)
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self._count()

    def _count(self) -> None:
        """Bring what adds up over all finished steps up to date."""
        self.evidence = merge_evidence(self.state["evidence"], [item.evidence for item in self.finished])
        self.usage = sum((item.usage for item in self.finished), start=self.state["usage"])

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return cast("Plan", self.state["plan"])

    @cached_property
    def ways(self) -> dict[str, float]:
        """The longest way from each step's start to the plan's end: what to start first."""
        return remaining_seconds(self.plan)

    def leads(self, step_id: str) -> bool:
        """Return whether other steps wait for this one."""
        return any(step_id in step.depends_on for step in self.plan.steps)

    def seconds_left(self) -> float:
        """Return the seconds before the run's deadline."""
        return self.left - (self.clock() - self.began)

    def tokens_left(self) -> int | None:
        """Return the tokens that the run may still use, None = no bound; what steps at work have used is gone."""
        left = tokens_left(self.state["limits"], self.usage)
        return None if left is None else left - sum(a.work.spent.tokens for a in self.at_work.values())

    @contextmanager
    def working(self, attempt: Attempt) -> Generator[None]:
        """Count what an attempt uses, as long as it runs."""
        self.at_work[attempt.step.id] = attempt
        try:
            yield
        finally:
            del self.at_work[attempt.step.id]

    def now(self) -> datetime:
        """Return the wall clock's time, as if it had not been set since the superstep began."""
        return self.began_at + timedelta(seconds=self.clock() - self.began)

    def attempt(self, step_id: str) -> int:
        """Return the number of a step's next attempt."""
        return 1 + sum(record.step_id == step_id for record in self.evidence)

    def claim(self, step_id: str) -> list[Grant]:
        """Return the step that a lane was sent out with, unless it is done already."""
        if any(item.evidence.step_id == step_id for item in self.finished):
            return []
        return [Grant(self.plan.step(step_id), self.running[step_id])]

    def take(self) -> list[Grant]:
        """Return the steps that may start now, and count them as running."""
        wave = next_wave(
            self.plan, self.evidence, self.usage, self.state["limits"], self.running, self.seconds_left()
        )
        self.running.update({grant.step.id: grant.tool_calls for grant in wave.grants})
        return wave.grants

    def task(self, grant: Grant) -> StepTask:
        """Return what a step's worker is given: its direct dependencies' evidence, and what is left of the run."""
        sources = [source for item in self.finished for source in item.sources]
        now = {
            **self.state,
            "evidence": self.evidence,
            "usage": self.usage,
            "sources": merge_sources(self.state["sources"], sources),
        }
        return {**step_task(cast("TaskState", now), self.plan, grant), "seconds_left": self.seconds_left()}

    async def put(self, item: Finished) -> None:
        """Keep a finished step: first where a crash cannot take it, then for the other lanes."""
        evidence = item.evidence
        key = record_key(evidence.step_id, evidence.attempt)
        await self.store.aput(self.namespace, key, item.model_dump(mode="json"), index=False)
        self.finished.append(item)
        self.evidence = merge_evidence(self.evidence, [evidence])
        self.usage = self.usage + item.usage
        self.running.pop(evidence.step_id, None)

    async def load(self) -> None:
        """Read what an interrupted life of this superstep has left, and reserve for the steps it was sent with."""
        # Asked for together, a database answers them in one round trip.
        _, items, calls = await asyncio.gather(
            self.approvals.load(),
            self.store.asearch(self.namespace, limit=MOST),
            self.store.asearch(self.ledgers, limit=MOST),
        )
        for item in calls:
            self.recorded.setdefault(item.namespace[-1], []).append(item.value)
        wave = next_wave(self.plan, self.state["evidence"], self.state["usage"], self.state["limits"])
        found = [
            Finished.model_validate(item.value) for item in sorted(items, key=lambda item: item.created_at)
        ]
        done = {item.evidence.step_id for item in found}
        self.finished = found
        self.resume()
        self.running = {g.step.id: g.tool_calls for g in wave.grants if g.step.id not in done}

    def resume(self) -> None:
        """Go on behind what is finished: its cost, and its time."""
        self._count()
        # A clock that was set back between two lives: what is done now is later all the same, and counts in full.
        self.left = seconds_left(self.state["limits"], self.evidence, self.state["usage"])
        self.began_at = max([self.began_at, *(record.finished_at for record in self.evidence)])


async def with_finished(
    values: dict[str, Any], store: BaseStore, namespace: tuple[str, ...]
) -> dict[str, Any]:
    """Return state values together with what lanes of an unfinished superstep have already left in the Store."""
    items = await store.asearch(namespace, limit=1000)
    known = {(e.step_id, e.plan_version, e.attempt) for e in values.get("evidence", [])}
    found = [Finished.model_validate(item.value) for item in sorted(items, key=lambda item: item.created_at)]
    new = [f for f in found if (f.evidence.step_id, f.evidence.plan_version, f.evidence.attempt) not in known]
    if not new:
        return values
    return with_items(values, new)


def with_items(values: dict[str, Any], items: Sequence[Finished]) -> dict[str, Any]:
    """Return state values together with what these steps leave."""
    sources = [source for item in items for source in item.sources]
    return {
        **values,
        "evidence": merge_evidence(values.get("evidence", []), [item.evidence for item in items]),
        "sources": merge_sources(values.get("sources", []), sources),
        "usage": sum((item.usage for item in items), start=values.get("usage") or Usage()),
    }


def record_key(step_id: str, attempt: int) -> str:
    """Return the key under which the Store keeps an attempt's record: of any id, and of any length."""
    return hashlib.sha256(f"{step_id}\n{attempt}".encode()).hexdigest()[:32]


def read_state(config: RunnableConfig) -> TaskState:
    """Return the graph's state as it was when the superstep began.

    A node that `Send` starts gets only its argument. This is the way in which LangGraph's own ToolNode reads the
    state from there; a copy of it in every Send would be stored once for each lane.
    """
    read: Callable[[list[str], bool], dict[str, Any]] = config.get("configurable", {})[READ]
    return cast("TaskState", read(STATE_KEYS, False))


def step_key(checkpoint_id: str, step_id: str, attempt: int) -> str:
    """Return the name of an attempt's ledger and worker: the same whichever lane runs it, another one in a fork."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{checkpoint_id}\n{step_id}\n{attempt}").hex


@dataclass
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    flow: Flow | None = None
    users: int = 0


class Flows:
    """The flows of the supersteps at work in this process."""

    def __init__(self) -> None:
        self._entries: dict[Sequence[object], _Entry] = {}

    @asynccontextmanager
    async def join(
        self, thread_id: str, checkpoint_id: str, make: Callable[[], Awaitable[Flow]]
    ) -> AsyncGenerator[Flow]:
        """Give a lane the flow of its superstep; the first lane makes it, the last one drops it."""
        key = (id(asyncio.get_running_loop()), thread_id, checkpoint_id)
        entry = self._entries.setdefault(key, _Entry())
        entry.users += 1
        try:
            async with entry.lock:
                if entry.flow is None:
                    entry.flow = await make()
            yield entry.flow
        finally:
            entry.users -= 1
            if not entry.users:
                self._entries.pop(key, None)

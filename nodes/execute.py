"""execute: a lane. It runs the step it was sent with, then those that this has made ready.

Whatever happens in a step becomes evidence; one step never costs another its work. See nodes/dataflow.py.
"""

import asyncio
import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.types import Interrupt

from agents.crew import Crew
from agents.ledger import StepLedger
from agents.middleware.approval import SCRATCHPAD, Approvals
from agents.worker import Attempt, WorkerParts
from nodes.dataflow import Finished, Flow, read_state, step_key
from nodes.parts import Emit, LaneNode, Parts, approvals_root, emitter, finished_root, ledger_root, thread_id
from nodes.readiness import Grant
from schemas.context import RunContext
from schemas.events import StepFinished, StepReady, StepStarted
from schemas.evidence import Evidence
from schemas.state import LaneTask, add_usage

DURABILITY = "__pregel_durability"


def make_execute(parts: Parts) -> LaneNode:
    """Return the node. At most limits.max_parallel_steps of a thread are at work; a step's clock starts then."""
    workers = worker_parts(parts)

    async def execute(state: LaneTask, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        config, thread = get_config(), thread_id()
        info = runtime.execution_info
        checkpoint_id = info.checkpoint_id if info else ""
        lane_id = info.task_id if info else ""
        store = runtime.store or parts.store

        async def make() -> Flow:
            namespace = (*finished_root(thread), checkpoint_id)
            ledgers = (*ledger_root(thread), checkpoint_id)
            state = read_state(config)
            approvals = Approvals(state["choices"].autonomy, store, approvals_root(thread, state["run_id"]))
            flow = Flow(state, store, namespace, ledgers, approvals, parts.clock, parts.clock(), parts.now())
            await flow.load()
            return flow

        async with parts.flows.join(thread, checkpoint_id, make) as flow:
            lane = Lane(
                parts, workers, flow, lane_id, thread, checkpoint_id, config, emitter(runtime.stream_writer)
            )
            await lane.run(state["step_id"])
            return lane.update()

    return execute


def worker_parts(parts: Parts) -> WorkerParts:
    """Return what all workers of the application share."""
    return WorkerParts(
        Crew(parts.models.role("worker"), parts.registry, parts.artifacts),
        parts.registry,
        parts.artifacts,
        parts.verify_step,
        clock=parts.clock,
        drain=parts.drain,
    )


@dataclass
class Lane:
    """One branch of a superstep, while it runs."""

    parts: Parts
    workers: WorkerParts
    flow: Flow
    lane_id: str
    thread: str
    checkpoint_id: str
    config: RunnableConfig
    emit: Emit
    tasks: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])
    questions: list[Interrupt] = field(default_factory=list[Interrupt])
    failure: Exception | None = None

    async def run(self, step_id: str) -> None:
        """Run the lane's own step and what becomes ready, until nothing of it is left.

        Raises:
            GraphInterrupt: steps wait for a person; everything else in the lane has been done before.
            StorageError: what had finished before is kept; a resume goes on from there.
        """
        again = bool(self.flow.finished)
        self._start(self.flow.claim(step_id))
        if again:
            self._start(self.flow.take(), announce=True)
        try:
            while self.tasks:
                done, self.tasks = await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._settle(task)
                if self.failure is None:
                    self._start(self.flow.take(), announce=True)
        finally:  # cancelled, or by a fault of our own: no step outlives its lane
            await cancelled(self.tasks)
        if self.failure is not None:
            raise self.failure
        if self.questions:
            raise GraphInterrupt(tuple(self.questions))

    def update(self) -> dict[str, Any]:
        """Return the state update: all that this lane has finished, in the order of the plan."""
        places = {step.id: n for n, step in enumerate(self.flow.plan.steps)}
        mine = sorted(
            (item for item in self.flow.finished if item.lane == self.lane_id),
            key=lambda item: (places[item.evidence.step_id], item.evidence.attempt),
        )
        update: dict[str, Any] = {
            "evidence": [item.evidence for item in mine],
            "sources": [source for item in mine for source in item.sources],
        }
        for item in mine:
            update["usage"] = add_usage(update["usage"], item.usage) if "usage" in update else item.usage
        return update

    def _start(self, grants: list[Grant], *, announce: bool = False) -> None:
        for grant in grants:
            if announce:
                attempt = self.flow.attempt(grant.step.id)
                self.emit(StepReady(step_id=grant.step.id, grant=grant.tool_calls, attempt=attempt))
            self.tasks.add(asyncio.create_task(self._step(grant), name=f"step {grant.step.id}"))

    def _settle(self, task: "asyncio.Task[None]") -> None:
        try:
            task.result()
        except GraphInterrupt as pause:
            self.questions += pause.args[0]
        except Exception as error:  # noqa: BLE001 - the lane's other steps finish first; then it is raised
            self.failure = self.failure or error

    async def _step(self, grant: Grant) -> None:
        flow, parts = self.flow, self.parts
        limits = flow.state["limits"]
        key = step_key(self.checkpoint_id, grant.step.id, flow.attempt(grant.step.id))
        ledger = self._ledger(grant)
        way, leads = flow.ways[grant.step.id], flow.leads(grant.step.id)
        run = self.thread or self.checkpoint_id  # runs without a thread share nothing either
        async with parts.slots.slot(run, limits.max_parallel_steps, way, leads=leads) as exclusive:
            await parts.drain.gate()
            # The task is made here: the run's deadline does not wait with the step.
            attempt = self._attempt(grant, ledger, exclusive)
            self.emit(started(attempt, grant))
            with flow.working(attempt):
                outcome = await attempt.run(worker_config(self.config, key))
            if outcome.evidence.error_type in ("timeout", "deadline"):
                await parts.drain.gate()  # it was held back: the time was not its own
            item = Finished(
                lane=self.lane_id, evidence=outcome.evidence, sources=outcome.sources, usage=outcome.usage
            )
            await flow.put(item)
        self.emit(finished(outcome.evidence))

    def _ledger(self, grant: Grant) -> StepLedger:
        """Return the attempt's ledger, with what an earlier life has recorded in it."""
        flow = self.flow
        key = step_key(self.checkpoint_id, grant.step.id, flow.attempt(grant.step.id))
        ledger = StepLedger(
            flow.store,
            (*flow.ledgers, key),
            step_id=grant.step.id,
            grant=grant.tool_calls,
            artifacts=self.parts.artifacts,
            max_result_chars=flow.state["limits"].max_result_chars,
            now=flow.now,
        )
        ledger.restore(flow.recorded.get(key, []))
        return ledger

    def _attempt(self, grant: Grant, ledger: StepLedger, exclusive: asyncio.Lock) -> Attempt:
        flow = self.flow
        return Attempt(
            self.workers,
            flow.task(grant),
            ledger,
            exclusive,
            flow.approvals,
            self.emit,
            flow.now,
            flow.tokens_left,
        )


async def cancelled(tasks: "Collection[asyncio.Task[Any]]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def worker_config(config: RunnableConfig, key: str) -> RunnableConfig:
    """Return the config for a step's worker: a checkpoint namespace that names the step, not the order of calls.

    LangGraph numbers the subgraphs that one task calls. Lanes call theirs in the order in which steps finish, which a
    resume need not repeat: a worker could go on from another one's checkpoint.

    It writes checkpoints only where it waits for a person, or fails: whatever it needs after a crash is in its ledger.
    """
    configurable = dict(config.get("configurable", {}))
    configurable["checkpoint_ns"] = f"execute:{key}"
    configurable[DURABILITY] = "exit"
    scratchpad = configurable.get(SCRATCHPAD)
    if scratchpad is not None and dataclasses.is_dataclass(scratchpad) and not isinstance(scratchpad, type):
        configurable[SCRATCHPAD] = dataclasses.replace(scratchpad, subgraph_counter=lambda: 0)
    return {**config, "configurable": configurable}


def started(attempt: Attempt, grant: Grant) -> StepStarted:
    """Return the event that tells of a worker at work."""
    step = grant.step
    return StepStarted(
        step_id=step.id, task=step.task, grant=grant.tool_calls, timeout_seconds=attempt.seconds
    )


def finished(evidence: Evidence) -> StepFinished:
    """Return the event that tells of a step's evidence."""
    return StepFinished(
        step_id=evidence.step_id,
        passed=evidence.passed,
        error_type=evidence.error_type,
        detail=evidence.detail[:300],
        tool_calls=evidence.tool_calls,
        seconds=round((evidence.finished_at - evidence.started_at).total_seconds(), 3),
    )

"""plan, while steps are already at work: the planner is heard as it writes, and its answer is held against what has begun.

Off unless `RunContext.stream_plan`. See nodes/early_flow.py for the steps, agents/streamed.py for the reading, and
nodes/matching.py for what becomes of steps that the whole plan does not have.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from agents.middleware.approval import Approvals
from agents.streamed import PlanListener, can_stream, heard_by, reporting_usage
from agents.worker import WorkerParts
from nodes.dataflow import with_items
from nodes.early_flow import EarlyFlow, KeptPlan, early_records
from nodes.early_lane import EarlyLane
from nodes.matching import begun_version, fitted, same_work
from nodes.parts import Emit, Parts, approvals_root, emitter, finished_root, ledger_root, thread_id
from nodes.roles import RoleAnswer
from nodes.verdict import all_steps
from schemas.context import RunContext
from schemas.events import PlanReady
from schemas.evidence import Evidence, Usage
from schemas.plan import Plan, PlanDraft, Step
from schemas.state import TaskState, latest

Ask = Callable[[TaskState, BaseChatModel], Awaitable[RoleAnswer[PlanDraft]]]
Accept = Callable[[TaskState, PlanDraft, Emit], dict[str, Any]]


def streams(state: TaskState) -> bool:
    """Return whether steps may start before the plan is whole.

    Not where a person approves the plan, and not under max_tokens: what the planner's stream costs is known at its end.
    """
    choices = state["choices"]
    wanted = choices.stream_plan and choices.mode in ("auto", "plan")
    return wanted and choices.review_plan == "never" and state["limits"].max_tokens is None


@dataclass
class EarlyWork:
    """One planning, with the steps that it has already set to work.

    Attributes:
        state: of the graph, as it is for this run.
        began, ended: when the planner was at work.
        kept: the plan that an interrupted life of this planning has taken.
    """

    parts: Parts
    state: TaskState
    flow: EarlyFlow
    lane: EarlyLane
    emit: Emit
    worker: "asyncio.Task[None]"
    began: datetime
    kept: KeptPlan | None = None
    announced: list[PlanReady] = field(default_factory=list[PlanReady])

    def answer_begins(self) -> None:
        """See agents.streamed.Audience."""
        self.flow.answer_begins()

    def step_written(self, raw: Any, *, asks: bool) -> None:
        """See agents.streamed.Audience. Nothing starts while questions are open."""
        if self.flow.may_start and not asks:
            self.flow.offer(raw)
            self.lane.news.set()

    async def ask(self, state: TaskState, ask: Ask) -> RoleAnswer[PlanDraft]:
        """Ask the planner, and hear what it writes; one whose server does not stream is asked in the ordinary way."""
        model = self.parts.models.planner
        if not can_stream(model):
            return await ask(state, model)
        listener = PlanListener("Plan", self)
        with heard_by(listener):
            answer = await ask(state, reporting_usage(model))
        self.flow.may_start = False
        if answer.value is None and answer.error_type in ("model", "schema") and not listener.heard:
            again = await ask(state, model)
            answer = replace(again, usage=answer.usage + again.usage)
        return answer

    async def without_plan(self, usage: Usage) -> dict[str, Any]:
        """Return the update where there is no plan: what is at work is finished, and all of it is kept as evidence."""
        ended = self.flow.now()
        await self.lane.drop(set(self.flow.interrupted))
        await self._finish()
        plans = self.state["plans"]
        begun = self.flow.begun
        new = [begun_version(begun, (), plans, self.state["objective"])] if begun else []
        update = self._update(usage, new, self.began, ended)
        return update | ({"plans": [*plans, *new]} if new else {})

    async def with_plan(
        self, answer: RoleAnswer[PlanDraft], draft: PlanDraft, accept: Accept
    ) -> dict[str, Any]:
        """Return the update for a valid plan: what has begun and is in it goes on, and so does what this makes ready."""
        ended, flow, plans = self.flow.now(), self.flow, self.state["plans"]
        draft = fitted(draft, {**flow.ran, **flow.begun})
        own = {step.id for step in draft.steps}
        await self.lane.drop({*flow.begun, *flow.interrupted} - own)
        state, new = self.state, list[Plan]()
        if not own.issuperset(flow.begun):
            new = [begun_version(flow.begun, own, plans, state["objective"])]
            now = {"plans": [*plans, *new], "evidence": flow.evidence, "usage": flow.usage}
            state = cast("TaskState", {**state, **now})
        found = accept(state, draft, self._announce)
        kept = KeptPlan(
            versions=[*new, found["plan"]],
            announced=self.announced,
            max_replans=found["max_replans"],
            answers=state["answers"],
            usage=answer.usage,
            began=self.began,
            ended=ended,
        )
        await flow.keep_plan(kept)
        return await self.carry_on(kept)

    async def carry_on(self, kept: KeptPlan) -> dict[str, Any]:
        """Return the update for a plan that has been taken; see with_plan."""
        for event in kept.announced:  # only now: what is told of a plan outlives a kill
            self.emit(event)
        plan, plans = kept.versions[-1], self.state["plans"]
        self.flow.adopt(plan)
        await self._finish()
        return self._update(kept.usage, kept.versions, kept.began, kept.ended) | {
            "plan": plan,
            "plans": [*plans, *kept.versions],
            "max_replans": kept.max_replans,
            "answers": kept.answers,
        }

    def _announce(self, event: BaseModel) -> None:
        if isinstance(event, PlanReady):
            self.announced.append(event)
        else:
            self.emit(event)

    async def _finish(self) -> None:
        self.lane.last = True
        self.lane.news.set()
        await self.worker
        if self.lane.failure is not None:
            raise self.lane.failure

    def _update(self, usage: Usage, versions: list[Plan], began: datetime, ended: datetime) -> dict[str, Any]:
        """Return what the steps leave, under the version that each of them belongs to; and all that was spent."""
        done = self.flow.finished
        places = {step_id: n for n, step_id in enumerate(self.flow.begun)}
        records = [in_version(item.evidence, self.flow.begun, versions) for item in done]
        both = overlap([item.evidence for item in done], began, ended)
        usage = usage.model_copy(update={"seconds": max(0.0, usage.seconds - both)})
        spent = sum((item.usage for item in done), start=usage + self.lane.held_usage())
        return {
            "evidence": sorted(records, key=lambda e: (places[e.step_id], e.attempt)),
            "sources": [source for item in done for source in item.sources],
            "usage": spent,
        }


def in_version(record: Evidence, begun: dict[str, Step], versions: list[Plan]) -> Evidence:
    """Return a record under the last of the versions that has its step."""
    step = begun[record.step_id]
    found = [v.version for v in versions if any(s.id == step.id and same_work(s, step) for s in v.steps)]
    return record.model_copy(update={"plan_version": found[-1]}) if found else record


def overlap(records: list[Evidence], began: datetime, ended: datetime) -> float:
    """Return the seconds between two times in which steps were at work too: active time counts once."""
    total, reached = 0.0, began
    for start, end in sorted((r.started_at, r.finished_at) for r in records):
        start, end = max(start, reached), min(end, ended)
        if end > start:
            total, reached = total + (end - start).total_seconds(), end
    return total


@asynccontextmanager
async def early_work(
    parts: Parts, workers: WorkerParts, state: TaskState, runtime: Runtime[RunContext]
) -> AsyncGenerator[EarlyWork]:
    """Open a planning in which steps may start; on the way out nothing of it runs any more."""
    config, thread = get_config(), thread_id()
    info = runtime.execution_info
    checkpoint_id, task_id = (info.checkpoint_id, info.task_id) if info else ("", "")
    store = runtime.store or parts.store
    approvals = Approvals(state["choices"].autonomy, store, approvals_root(thread, state["run_id"]))
    steps, records = all_steps(state["plans"]), latest(state["evidence"])
    flow = EarlyFlow(
        state,
        store,
        (*finished_root(thread), checkpoint_id),
        (*ledger_root(thread), checkpoint_id),
        approvals,
        parts.clock,
        parts.clock(),
        parts.now(),
        registry=parts.registry,
        ran={step_id: step for step_id, step in steps.items() if step_id in records},
    )
    await flow.load()
    kept = await flow.kept_plan()
    emit = emitter(runtime.stream_writer)
    lane = EarlyLane(parts, workers, flow, task_id, thread, checkpoint_id, config, emit)
    worker = asyncio.create_task(lane.work(), name="early steps")
    try:
        yield EarlyWork(parts, state, flow, lane, emit, worker, flow.now(), kept)
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


async def with_early(values: dict[str, Any], store: BaseStore, namespace: tuple[str, ...]) -> dict[str, Any]:
    """Return state values together with what steps have left so far whose plan is still being written."""
    done, _ = await early_records(store, namespace)
    if not done:
        return values
    if values.get("run_id") != values.get("planned_run_id"):  # what stands there is an earlier run's
        values = {**values, "evidence": [], "sources": [], "usage": Usage(), "plans": [], "plan": None}
        values |= {"review": None, "status": "running", "stop_reason": None, "final_answer": ""}
    return with_items(values, done)

"""Steps that start while their plan is still being written, inside the `plan` node.

This module says which of them may start, and what a crash must not take. Two things are kept in the Store beyond what a
lane keeps: which steps have begun, so that no tool run is lost to a plan that no longer has its step; and what each of
them was, because after a kill the planner may write another plan. nodes/early_lane.py runs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from nodes.dataflow import MOST, Finished, Flow, record_key
from nodes.matching import same_work
from nodes.readiness import Grant, next_wave, remaining_seconds, tool_runs_left
from schemas.errors import PlanInvalid
from schemas.events import PlanReady
from schemas.evidence import Evidence, Usage
from schemas.plan import Plan, PlanDraft, Step, parse_draft, raw_steps
from schemas.plan_repair import parsed_with_repairs
from tools.registry import ToolRegistry

PLAN_KEY = "plan"
MAX_STEPS = 20


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EarlyFinished(Finished):
    """A finished step, and what it was."""

    step: Step


class Begun(_Kept):
    """A step that is about to start, with its reserved tool runs."""

    step: Step
    tool_calls: int
    attempt: int


class KeptPlan(_Kept):
    """The plan, once it is whole and valid: what is left of the node needs no planner.

    Attributes:
        versions: the new ones; the last one is in force.
        usage: of the planner; began, ended: when it was at work.
    """

    versions: list[Plan]
    announced: list[PlanReady]
    max_replans: int
    answers: list[dict[str, str]]
    usage: Usage
    began: datetime
    ended: datetime


@dataclass
class EarlyFlow(Flow):
    """What has begun, and what may start, of a plan that is being written.

    Attributes:
        ran: steps of earlier versions that have evidence, by id.
        begun: all that have begun in this planning, in this life of the process or an earlier one.
        written: whole and valid steps of the answer that is being written, or of the plan once it is valid.
        interrupted: begun in an earlier life, and not finished.
        whole: the plan, once it is valid.
        may_start: whether anything more starts.
    """

    registry: ToolRegistry = field(kw_only=True)
    ran: dict[str, Step] = field(kw_only=True)
    begun: dict[str, Step] = field(default_factory=dict[str, Step])
    written: dict[str, Step] = field(default_factory=dict[str, Step])
    interrupted: dict[str, Begun] = field(default_factory=dict[str, Begun])
    whole: Plan | None = None
    may_start: bool = False

    @property
    @override
    def plan(self) -> Plan:
        startable = {step.id: step for step in self.startable()}
        return self._version(
            [*self.begun.values(), *(s for i, s in startable.items() if i not in self.begun)]
        )

    @property
    @override
    def ways(self) -> dict[str, float]:  # pyright: ignore[reportIncompatibleVariableOverride] - the plan grows
        return remaining_seconds(self.plan)

    def _version(self, steps: list[Step]) -> Plan:
        return self.whole or Plan(steps=steps, version=len(self.state["plans"]) + 1)

    def answer_begins(self) -> None:
        """Forget what has not begun: the answer it stood in is not the one that will count."""
        self.written, self.may_start = {}, True

    def offer(self, raw: Any) -> None:
        """Take a step of the answer. After one that is not valid nothing of this answer starts: it will be asked again."""
        limits = self.state["limits"]
        known = self.registry.names(self.state["choices"].autonomy)

        def parse(given: Any) -> PlanDraft:
            needs = [need for step in raw_steps(given) for need in needs_of(step)]
            return parse_draft(given, tools=known, known=needs, replaceable=())

        try:
            draft = parsed_with_repairs({"steps": [raw]}, parse, tools=known)
        except PlanInvalid:
            self.may_start = False
            return
        step = draft.steps[0]
        ids = {step_id.casefold() for step_id in self.written}
        if step.id.casefold() in ids or len(ids) >= limits.max_plan_steps:
            self.may_start = False
            return
        self.written[step.id] = step

    def startable(self) -> list[Step]:
        """Return the written steps that may run early, each behind all of its dependencies."""
        chosen: dict[str, Step] = {}
        room = MAX_STEPS - len(self.begun)
        while True:
            more = [
                step
                for step in self.written.values()
                if step.id not in chosen and self._may_run(step) and all(d in chosen for d in step.depends_on)
            ]
            if not more:
                return list(chosen.values())
            for step in more:
                room -= step.id not in self.begun
                if room < 0:
                    return list(chosen.values())
                chosen[step.id] = step

    def _may_run(self, step: Step) -> bool:
        earlier = {**self.ran, **self.begun}
        if step.id in earlier:
            return same_work(earlier[step.id], step) and self._reads_only(step)
        return step.id.casefold() not in {i.casefold() for i in earlier} and self._reads_only(step)

    def _reads_only(self, step: Step) -> bool:
        tools = self.registry.for_step(step.tools, self.state["choices"].autonomy)
        return all(self.registry.spec(tool.name).permission == "read" for tool in tools)

    @override
    def take(self) -> list[Grant]:
        """Return the steps that may start now, each with its whole tool budget, and count them as running."""
        steps = {step.id: step for step in self.startable()} if self.may_start else {}
        if not steps:
            return []
        again = [Grant(steps[i], kept.tool_calls) for i, kept in self.interrupted.items() if i in steps]
        grants = [*again, *self._new_grants(list(steps.values()))]
        for grant in grants:
            self.interrupted.pop(grant.step.id, None)
            self.running[grant.step.id] = grant.tool_calls
            self._begin(grant.step, steps)
        return grants

    def _new_grants(self, steps: list[Step]) -> list[Grant]:
        reserved = {**self.running, **{i: kept.tool_calls for i, kept in self.interrupted.items()}}
        evidence, limits = self.evidence, self.state["limits"]

        def ready(plan: Plan) -> list[Grant]:
            return next_wave(plan, evidence, self.usage, limits, reserved, self.seconds_left()).grants

        ids = {step.id for step in steps}
        if self.whole is not None and any(grant.step.id not in ids for grant in ready(self.whole)):
            return []  # a step that cannot run here is ready: nothing may keep it waiting longer than it must
        version = len(self.state["plans"]) + 1 if self.whole is None else self.whole.version
        grants = ready(Plan(steps=steps, version=version))
        return [g for g in grants if g.tool_calls == tool_runs_left(g.step, evidence)]

    def _begin(self, step: Step, steps: dict[str, Step]) -> None:
        for need in step.depends_on:  # a version has its steps' dependencies, those of an earlier round too
            if need not in self.begun:
                self._begin(steps[need], steps)
        self.begun[step.id] = step

    async def note(self, grant: Grant) -> None:
        """Keep that a step begins, before any tool of it runs."""
        attempt = self.attempt(grant.step.id)
        kept = Begun(step=grant.step, tool_calls=grant.tool_calls, attempt=attempt)
        key = "begun-" + record_key(grant.step.id, attempt)
        await self.store.aput(self.namespace, key, kept.model_dump(mode="json"), index=False)

    @override
    async def put(self, item: Finished) -> None:
        """Keep a finished step, with what it was."""
        step = self.begun[item.evidence.step_id]
        fields = {name: getattr(item, name) for name in Finished.model_fields}
        fields["evidence"] = self._placed(item.evidence, step)
        await super().put(EarlyFinished(**fields, step=step))

    def _placed(self, record: Evidence, step: Step) -> Evidence:
        """Return a record under the valid plan's version, if that has the step: what failed there has failed."""
        whole = self.whole
        if whole is None or not any(s.id == step.id and same_work(s, step) for s in whole.steps):
            return record
        return record.model_copy(update={"plan_version": whole.version})

    @override
    async def load(self) -> None:
        """Read what an interrupted life of this planning has begun and finished."""
        await self.approvals.load()
        done, begun = await early_records(self.store, self.namespace)
        for item in await self.store.asearch(self.ledgers, limit=MOST):
            self.recorded.setdefault(item.namespace[-1], []).append(item.value)
        self.finished = [*done]
        self.resume()
        ended = {(item.evidence.step_id, item.evidence.attempt) for item in done}
        for kept in begun:
            self._begin(kept.step, {**self.ran, **{other.step.id: other.step for other in begun}})
        self.interrupted = {k.step.id: k for k in begun if (k.step.id, k.attempt) not in ended}

    async def kept_plan(self) -> KeptPlan | None:
        """Return the plan that an interrupted life has taken."""
        item = await self.store.aget(self.namespace, PLAN_KEY)
        return KeptPlan.model_validate(item.value) if item is not None else None

    async def keep_plan(self, kept: KeptPlan) -> None:
        """Keep the plan where a crash cannot take it."""
        await self.store.aput(self.namespace, PLAN_KEY, kept.model_dump(mode="json"), index=False)

    def adopt(self, plan: Plan) -> None:
        """Go on with the plan itself, now that it is valid."""
        self.whole, self.may_start = plan, True
        self.written = {step.id: step for step in plan.steps}
        # What is left of others has been recorded; what had only waited for its place has nothing to be resumed.
        self.interrupted = {i: kept for i, kept in self.interrupted.items() if i in self.written}
        placed = [
            (item, self._placed(item.evidence, self.begun[item.evidence.step_id])) for item in self.finished
        ]
        self.finished = [item.model_copy(update={"evidence": record}) for item, record in placed]
        self._count()


def needs_of(step: Mapping[str, Any]) -> list[str]:
    """Return the dependencies of a step that may not be valid: they may be written further down."""
    given = step.get("depends_on")
    return (
        [item for item in cast("list[Any]", given) if isinstance(item, str)]
        if isinstance(given, list)
        else []
    )


async def early_records(
    store: BaseStore, namespace: tuple[str, ...]
) -> tuple[list[EarlyFinished], list[Begun]]:
    """Return what a planning has finished and begun, in the order in which it happened."""
    items = sorted(await store.asearch(namespace, limit=MOST), key=lambda item: item.created_at)
    begun = [Begun.model_validate(item.value) for item in items if item.key.startswith("begun-")]
    done = [
        EarlyFinished.model_validate(item.value)
        for item in items
        if item.key != PLAN_KEY and not item.key.startswith("begun-")
    ]
    return done, begun

"""Runs steps whose plan is still being written: as in a lane of `execute`, by the same places, ledgers and events."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from typing_extensions import override

from agents.conclusion import unconcluded
from agents.ledger import StepLedger
from agents.worker import Attempt
from nodes.dataflow import Finished
from nodes.early_flow import EarlyFlow
from nodes.execute import Lane, cancelled, finished
from nodes.readiness import Grant
from schemas.evidence import Evidence, Usage

DROPPED = "the plan no longer has this step"


@dataclass
class EarlyLane(Lane):
    """Runs steps beside the planner, and after it, until nothing more of them can run here.

    Attributes:
        flow: of the planning.
        news: set when something may be able to start.
        last: no more news will come.
        attempts: that have started, by step id; held: of these, what waits for a person, and runs anew in `execute`.
    """

    flow: EarlyFlow  # pyright: ignore[reportIncompatibleVariableOverride] - it is never set again
    news: asyncio.Event = field(default_factory=asyncio.Event)
    last: bool = False
    attempts: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    held: list[str] = field(default_factory=list[str])
    told: set[str] = field(default_factory=set[str])

    async def work(self) -> None:
        """Run what may start, whenever there are news, until the last of it is done."""
        waiting: asyncio.Task[Any] | None = None
        try:
            while True:
                self._retell()
                self._start(self.flow.take() if self.failure is None else [], announce=True)
                if self.last and not self.tasks:
                    return
                waiting = asyncio.create_task(self.news.wait())
                done, _ = await asyncio.wait({*self.tasks, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                self.news.clear()
                for task in self.tasks & done:
                    self._settle(task)
                self.tasks -= done
        finally:
            await cancelled([*self.tasks, *([waiting] if waiting else [])])

    def _retell(self) -> None:
        """Tell of steps that an earlier life has finished, once this life's plan has them too."""
        mine = {step.id for step in self.flow.startable()}
        for item in self.flow.finished:
            step_id = item.evidence.step_id
            if step_id in mine and step_id not in self.told and step_id not in self.attempts:
                self.emit(finished(item.evidence))
                self.told.add(step_id)

    @override
    def _settle(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled():  # dropped
            return
        super()._settle(task)
        if self.questions:
            self.questions.clear()
            self.held.append(_step_of(task))

    @override
    async def _step(self, grant: Grant) -> None:
        await self.flow.note(grant)
        await super()._step(grant)

    @override
    def _attempt(self, grant: Grant, ledger: StepLedger, exclusive: asyncio.Lock) -> Attempt:
        attempt = super()._attempt(grant, ledger, exclusive)
        self.attempts[grant.step.id] = attempt
        return attempt

    async def drop(self, step_ids: Collection[str]) -> None:
        """Stop those of these steps that still run, or that an earlier life has left: record what they have spent."""
        stopped = {_step_of(task): task for task in self.tasks if _step_of(task) in step_ids}
        for task in stopped.values():
            task.cancel()
        await asyncio.gather(*stopped.values(), return_exceptions=True)
        for step_id in stopped:
            attempt, number = self.attempts.get(step_id), self.flow.attempt(step_id)
            if attempt is not None and attempt.task["attempt"] == number:
                await self._abandon(step_id, attempt.ledger, attempt.work.spent, attempt.started_at)
            elif number == 1:  # it was still waiting for its place
                del self.flow.begun[step_id]
                self.flow.running.pop(step_id, None)
        for step_id in [i for i in self.flow.interrupted if i in step_ids]:
            kept = self.flow.interrupted.pop(step_id)
            ledger = self._ledger(Grant(kept.step, kept.tool_calls))
            await self._abandon(step_id, ledger, Usage(), None)

    async def _abandon(
        self, step_id: str, ledger: StepLedger, spent: Usage, started_at: datetime | None
    ) -> None:
        now, step = self.flow.now(), self.flow.begun[step_id]
        base = Evidence(
            step_id=step_id,
            plan_version=len(self.flow.state["plans"]) + 1,
            attempt=self.flow.attempt(step_id),
            passed=False,
            error_type="cancelled",
            detail=DROPPED,
            tool_calls=ledger.used,
            model_calls=spent.model_calls,
            tokens=spent.tokens,
            started_at=started_at or now,
            finished_at=now,
        )
        evidence = unconcluded(base, step, ledger)
        usage = spent + Usage(tool_calls=ledger.used)
        sources = [*ledger.sources.values()]
        await self.flow.put(Finished(lane=self.lane_id, evidence=evidence, sources=sources, usage=usage))
        self.emit(finished(evidence))

    def held_usage(self) -> Usage:
        """Return what the steps that wait for a person have spent here."""
        mine = [self.attempts[step_id] for step_id in self.held]
        return sum((a.work.spent + Usage(tool_calls=a.ledger.used) for a in mine), start=Usage())


def _step_of(task: "asyncio.Task[None]") -> str:
    return task.get_name().removeprefix("step ")

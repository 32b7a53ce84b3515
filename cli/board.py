"""What a run looks like from outside, folded from its events: the data behind the live table and the plain lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import singledispatchmethod
from typing import Any, Literal

from cli.printable import one_line
from schemas.events import (
    AnswerText,
    Paused,
    PlanReady,
    Reviewed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepReady,
    StepSkipped,
    StepStarted,
    ToolFinished,
    ToolStarted,
)
from schemas.evidence import Evidence, Gap
from schemas.limits import RunLimits
from schemas.plan import Plan

StepState = Literal["waiting", "ready", "running", "asking", "passed", "failed", "skipped", "stopped"]
Phase = Literal["starting", "planning", "working", "reviewing", "concluding", "waiting", "ended"]
_AT_WORK: frozenset[StepState] = frozenset({"ready", "running"})
_OPEN: frozenset[StepState] = frozenset({"waiting", "ready", "running", "asking"})


@dataclass
class Row:
    """One step.

    Attributes:
        allowed: tool runs reserved for the step, or its budget before it is sent out.
        used: by the attempt at work, or the last one; earlier: by those before.
        seconds: how long it took; while it runs, see `elapsed`.
        activity: the last thing it did, or why it failed; tools: how many of its tools run just now.
        replaced_by: id of the step of a later plan that stands in for it.
    """

    step_id: str
    task: str = ""
    depends_on: tuple[str, ...] = ()
    state: StepState = "waiting"
    attempt: int = 1
    allowed: int = 0
    used: int = 0
    earlier: int = 0
    began: datetime | None = None
    seconds: float | None = None
    activity: str = ""
    tools: int = 0
    replaced_by: str = ""

    def elapsed(self, now: datetime) -> float | None:
        """Return the seconds the step took, or has taken until `now`; None before it begins."""
        if self.seconds is not None or self.began is None:
            return self.seconds
        return max(0.0, (now - self.began).total_seconds())

    @property
    def thinking(self) -> bool:
        """Whether the step's model is at work, and none of its tools."""
        return self.state == "running" and not self.tools


@dataclass
class Board:
    """All steps of a run, in the order in which they were planned.

    Attributes:
        limits: of the run; None = not known.
        spent_seconds: active seconds before the view that is open now.
        lint: what is odd about the plan in force; reason: why there is a new version.
    """

    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    limits: RunLimits | None = None
    spent_seconds: float = 0.0
    objective: str = ""
    version: int = 0
    created_by: str = "planner"
    goal: str = ""
    reason: str = ""
    lint: Sequence[str] = ()
    phase: Phase = "starting"
    gaps: Sequence[Gap] = ()
    answer_chars: int = 0

    @property
    def finished(self) -> int:
        """How many steps need nothing more."""
        return sum(row.state not in _OPEN for row in self.rows.values())

    @property
    def at_work(self) -> bool:
        """Whether a step is at work, or soon will be."""
        return any(row.state in _AT_WORK for row in self.rows.values())

    @property
    def tool_calls(self) -> int:
        """How many tool runs the steps on the board have used."""
        return sum(row.used + row.earlier for row in self.rows.values())

    def seed(self, plan: Plan | None, evidence: Sequence[Evidence]) -> None:
        """Take over what a run that goes on has already done."""
        if plan is not None:
            self.apply(
                PlanReady(
                    version=plan.version,
                    created_by=plan.created_by,
                    fingerprint=plan.fingerprint,
                    reason=plan.reason,
                    plan=plan.model_dump(mode="json"),
                )
            )
        for record in evidence:
            self._record(record)

    def stop(self) -> None:
        """Mark what was at work as stopped."""
        for row in self.rows.values():
            if row.state in _AT_WORK:
                row.state = "stopped"

    def row(self, step_id: str) -> Row:
        """Return the step's row, adding one for a step that no plan has named."""
        return self.rows.setdefault(step_id, Row(step_id))

    def _record(self, record: Evidence) -> None:
        row = self.row(record.step_id)
        row.state = "skipped" if record.skipped_because else "passed" if record.passed else "failed"
        row.earlier += row.used
        row.used, row.attempt, row.tools = record.tool_calls, record.attempt, 0
        row.seconds = max(0.0, (record.finished_at - record.started_at).total_seconds())
        row.activity = ""
        if not record.passed:
            row.activity = _reason(record.error_type, record.skipped_because or record.detail)

    @singledispatchmethod
    def apply(self, event: object) -> None:
        """Fold one RunEvent into the board; an unknown one changes nothing."""

    @apply.register
    def _(self, event: RunStarted) -> None:
        # A thread may hold several runs: a new objective starts with an empty board.
        self.rows.clear()
        self.spent_seconds = 0.0
        self.objective, self.phase, self.gaps, self.answer_chars = event.objective, "planning", (), 0

    @apply.register
    def _(self, event: PlanReady) -> None:
        self.version, self.created_by, self.phase = event.version, event.created_by, "working"
        self.goal = one_line(str(event.plan.get("goal") or ""), 300)
        self.reason, self.lint = one_line(event.reason, 300), [one_line(line, 300) for line in event.lint]
        steps = _steps(event.plan)
        named = {str(step.get("id", "")) for step in steps}
        # What still waits and is not named is of a plan that a person turned down or edited.
        self.rows = {i: row for i, row in self.rows.items() if row.state != "waiting" or i in named}
        for step in steps:
            row = self.row(str(step.get("id", "")))
            row.task = one_line(str(step.get("task", "")), 300)
            if step.get("replaces") in self.rows:
                self.rows[step["replaces"]].replaced_by = row.step_id
            row.depends_on = tuple(map(str, step.get("depends_on") or ()))
            # A skipped step that a new version carries on waits again.
            if row.state in ("waiting", "skipped", "stopped"):
                row.state, row.activity = "waiting", ""
                row.allowed = 0 if step.get("tools") == [] else int(step.get("tool_budget") or 0)
        self._look_for_the_end()

    @apply.register
    def _(self, event: StepReady) -> None:
        row = self.row(event.step_id)
        row.state, row.allowed, row.attempt = "ready", event.grant, event.attempt
        if event.attempt > 1 and row.seconds is not None:
            row.earlier += row.used
        row.used, row.began, row.seconds, row.activity, row.tools = 0, None, None, "", 0

    @apply.register
    def _(self, event: StepStarted) -> None:
        row = self.row(event.step_id)
        row.state, row.allowed, row.began, row.seconds = "running", event.grant, event.at, None
        row.task, row.tools = row.task or one_line(event.task, 300), 0

    @apply.register
    def _(self, event: ToolStarted) -> None:
        row = self.row(event.step_id)
        row.used, row.tools = max(row.used, event.calls_used), row.tools + 1
        row.activity = f"{one_line(event.tool, 60)} {one_line(event.arguments, 120)}".strip()

    @apply.register
    def _(self, event: ToolFinished) -> None:
        row = self.row(event.step_id)
        row.tools = max(0, row.tools - 1)
        if not event.ok:
            row.activity = f"{row.activity} ✗"

    @apply.register
    def _(self, event: StepFinished) -> None:
        row = self.row(event.step_id)
        row.state = "passed" if event.passed else "failed"
        row.used, row.seconds, row.tools = event.tool_calls, event.seconds, 0
        row.activity = "" if event.passed else _reason(event.error_type, event.detail)
        self._look_for_the_end()

    @apply.register
    def _(self, event: StepSkipped) -> None:
        row = self.row(event.step_id)
        row.state, row.activity = "skipped", one_line(event.because)
        self._look_for_the_end()

    def _look_for_the_end(self) -> None:
        # While a plan is being written its steps may be at work (stream_plan): the last one so far is not the last.
        if self.rows and self.finished == len(self.rows) and self.phase != "planning":
            self.phase = "reviewing"

    @apply.register
    def _(self, event: Reviewed) -> None:
        self.phase, self.gaps = "concluding", event.gaps

    @apply.register
    def _(self, event: Paused) -> None:
        if event.question.get("kind") == "tool_approval":
            row = self.row(str(event.question.get("step_id")))
            # Its time stands still while it waits for a person.
            row.state, row.tools, row.seconds = "asking", 0, row.elapsed(event.at)
            row.activity = one_line(str(event.question.get("tool")), 60)
        # Other steps may go on meanwhile.
        self.phase = "working" if self.at_work else "waiting"

    @apply.register
    def _(self, event: AnswerText) -> None:
        self.answer_chars += len(event.text)

    @apply.register
    def _(self, event: RunFinished) -> None:  # noqa: ARG002 - the closing line tells the rest
        self.phase = "ended"


def _steps(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    steps: list[Mapping[str, Any]] = plan.get("steps") or []
    return steps


def _reason(error_type: str | None, detail: str) -> str:
    return ": ".join(part for part in (error_type, one_line(detail)) if part)

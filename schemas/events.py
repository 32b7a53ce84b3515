"""Run events: one class for each thing that happens. They travel as JSON objects on the custom stream."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from schemas.evidence import ErrorType, Gap


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid")

    at: datetime = Field(default_factory=lambda: datetime.now(UTC))


class RunStarted(_Event):
    """The objective was taken up."""

    type: Literal["run_started"] = "run_started"
    objective: str


class PlanReady(_Event):
    """A plan version is valid. `plan` is its JSON; `lint` what is allowed, but probably not meant."""

    type: Literal["plan_ready"] = "plan_ready"
    version: int
    created_by: str
    fingerprint: str
    reason: str = ""
    plan: dict[str, Any]
    lint: list[str] = Field(default_factory=list[str])


class StepReady(_Event):
    """A step was sent out with a reserved number of tool runs."""

    type: Literal["step_ready"] = "step_ready"
    step_id: str
    grant: int
    attempt: int


class StepStarted(_Event):
    """A worker began, after waiting for a free place."""

    type: Literal["step_started"] = "step_started"
    step_id: str
    task: str
    grant: int
    timeout_seconds: float


class ToolStarted(_Event):
    """A tool body begins to run."""

    type: Literal["tool_started"] = "tool_started"
    step_id: str
    tool: str
    arguments: str
    calls_used: int


class ToolFinished(_Event):
    """A tool body ended."""

    type: Literal["tool_finished"] = "tool_finished"
    step_id: str
    tool: str
    ok: bool
    seconds: float
    source_ids: list[str] = Field(default_factory=list[str])


class StepFinished(_Event):
    """A step has its evidence."""

    type: Literal["step_finished"] = "step_finished"
    step_id: str
    passed: bool
    error_type: ErrorType | None
    detail: str
    tool_calls: int
    seconds: float


class StepSkipped(_Event):
    """A step will not run."""

    type: Literal["step_skipped"] = "step_skipped"
    step_id: str
    because: str


class Reviewed(_Event):
    """The evidence was judged."""

    type: Literal["reviewed"] = "reviewed"
    approved: bool
    gaps: list[Gap]


class Paused(_Event):
    """The run waits for a person; `question` is the interrupt's value."""

    type: Literal["paused"] = "paused"
    interrupt_id: str
    question: dict[str, Any]


class AnswerText(_Event):
    """A piece of the answer, as it is written."""

    type: Literal["answer_text"] = "answer_text"
    text: str


class RunFinished(_Event):
    """The run has its answer."""

    type: Literal["run_finished"] = "run_finished"
    status: str
    stop_reason: str | None
    tool_calls: int
    model_calls: int


RunEvent = Annotated[
    RunStarted
    | PlanReady
    | StepReady
    | StepStarted
    | ToolStarted
    | ToolFinished
    | StepFinished
    | StepSkipped
    | Reviewed
    | Paused
    | AnswerText
    | RunFinished,
    Field(discriminator="type"),
]
RUN_EVENT: TypeAdapter[RunEvent] = TypeAdapter(RunEvent)
"""Parses a RunEvent from the JSON object that the custom stream carries."""

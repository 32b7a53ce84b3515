"""The graph's state, its input and its output, and the reducers of the keys that parallel steps write."""

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from schemas.context import RunContext
from schemas.evidence import Evidence, Review, Source, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan, Step

Status = Literal["running", "completed", "partial", "failed", "cancelled"]
StopReason = Literal[
    "approved",
    "replan_limit",
    "not_recoverable",
    "no_progress",
    "tool_budget",
    "deadline",
    "attempted_steps",
    "review_unavailable",
    "plan_invalid",
    "plan_rejected",
    "model_refused",
    "model_unavailable",
    "cancelled",
]
MAX_OBJECTIVE_CHARS = 20_000


def merge_evidence(old: list[Evidence], new: list[Evidence]) -> list[Evidence]:
    """Append, except that a record of the same step, version and attempt replaces the earlier one."""
    merged = {(e.step_id, e.plan_version, e.attempt): e for e in [*old, *new]}
    return list(merged.values())


def merge_sources(old: list[Source], new: list[Source]) -> list[Source]:
    """Append sources whose (id, step) is new; the first record of a source stays."""
    merged: dict[tuple[str, str], Source] = {}
    for source in [*old, *new]:
        merged.setdefault((source.id, source.step_id), source)
    return list(merged.values())


def add_usage(old: Usage, new: Usage) -> Usage:
    """Add what was spent."""
    return old + new


class TaskInput(TypedDict, total=False):
    """The objective; or, from chat front ends, messages whose last human message is the objective."""

    objective: Annotated[
        str,
        Field(
            min_length=1, max_length=MAX_OBJECTIVE_CHARS, title="Objective", description="What is to be done"
        ),
    ]
    messages: SkipJsonSchema[Annotated[list[AnyMessage], add_messages]]
    run_id: SkipJsonSchema[str]


class TaskOutput(TypedDict):
    """What a run ends with; `messages` has the answer appended."""

    messages: Annotated[list[AnyMessage], add_messages]
    status: Status
    stop_reason: StopReason | None
    final_answer: str
    evidence: list[Evidence]
    sources: list[Source]
    review: Review | None
    plan: Plan | None
    usage: Usage


class TaskState(TypedDict):
    """Everything a run knows. Parallel steps write only evidence, sources and usage.

    Attributes:
        run_id: names one objective on the thread; planned_run_id: the one that the rest of the state belongs to.
        plans: every version; plan: the one in force.
        approved: fingerprint of the plan that a person approved; None when nobody is asked.
        feedback: a person's remarks on earlier plans, and hints on gaps.
        questions: the planner's, while they wait; answers: one mapping for each round that was asked.
        asked: ids of steps whose failure a person has been asked about.
        problem: why there is no plan, or no better one.
    """

    objective: str
    messages: Annotated[list[AnyMessage], add_messages]
    run_id: str
    planned_run_id: NotRequired[str]
    choices: RunContext
    limits: RunLimits
    plan: Plan | None
    plans: list[Plan]
    approved: NotRequired[str | None]
    evidence: Annotated[list[Evidence], merge_evidence]
    sources: Annotated[list[Source], merge_sources]
    usage: Annotated[Usage, add_usage]
    review: Review | None
    replan_count: int
    max_replans: int
    feedback: list[str]
    questions: list[str]
    answers: list[dict[str, str]]
    asked: list[str]
    problem: str
    status: Status
    stop_reason: StopReason | None
    final_answer: str


class LaneTask(TypedDict):
    """The argument of `Send("execute", ...)`: plain JSON, because a class in a Send comes back as a dict.

    It names the step; the rest a lane reads from the state, which would otherwise be stored once for each lane.
    """

    step_id: str
    task: str


class Dependency(TypedDict):
    """What a step is given of one it depends on: what that found, and the sources that it carries."""

    step_id: str
    task: str
    summary: str
    source_ids: list[str]
    sources: list[Source]


class StepTask(TypedDict):
    """What a step's worker is given. It travels nowhere: lanes make it where they use it.

    Attributes:
        grant: tool runs reserved for this step.
        seconds_left: of the run's deadline.
        dependencies: evidence of direct dependencies, in plan order, with their sources.
    """

    objective: str
    step: Step
    plan_version: int
    attempt: int
    grant: int
    seconds_left: float
    limits: RunLimits
    dependencies: list[Dependency]


def latest(evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    """Return each step's last record, by step id. Ids are never reused, so versions need no key."""
    return {e.step_id: e for e in evidence}


# What checkpoints may hold besides LangChain's messages: the allow-list of the serializer.
CHECKPOINT_TYPES: tuple[type, ...] = (RunContext, RunLimits, Plan, Evidence, Source, Review, Usage)

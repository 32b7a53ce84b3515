"""What a step found, where from, and what the reviewer says of it."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool

ErrorType = Literal[
    "timeout",
    "tool_budget",
    "model_limit",
    "no_progress",
    "schema",
    "transient",
    "auth",
    "refused",
    "tool",
    "model",
    "context_overflow",
    "unsupported_claim",
    "criteria_unmet",
    "check_failed",
    "dependency_failed",
    "deadline",
    "cancelled",
]


def _asked_for(**bounds: JsonValue) -> dict[str, JsonValue]:
    """Return narrower bounds for the schema that a model is shown: one that a grammar holds writes until they end it.

    What is accepted stays as the field says.
    """
    return bounds


class CriterionResult(BaseModel):
    """Whether one success criterion is met, and why."""

    model_config = ConfigDict(extra="forbid")

    criterion: str = Field(max_length=1000, json_schema_extra=_asked_for(maxLength=300))
    met: StrictBool
    reason: str = Field(default="", max_length=2000, json_schema_extra=_asked_for(maxLength=300))


class Finding(BaseModel):
    """The result of one step. Cite only source ids that the tools returned."""

    # Asked for, so that a grammar cannot leave them out; an answer without them is still read.
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"required": ["summary", "source_ids", "criteria"]}
    )

    summary: str = Field(min_length=1, max_length=8000, json_schema_extra=_asked_for(maxLength=1000))
    source_ids: list[str] = Field(
        default_factory=list[str],
        max_length=50,
        json_schema_extra=_asked_for(maxItems=20, items={"type": "string", "maxLength": 100}),
    )
    criteria: list[CriterionResult] = Field(
        default_factory=list[CriterionResult], max_length=20, json_schema_extra=_asked_for(minItems=1)
    )
    missing: list[str] = Field(
        default_factory=list[str],
        max_length=20,
        json_schema_extra=_asked_for(maxItems=5, items={"type": "string", "maxLength": 300}),
    )


class Source(BaseModel):
    """One place that a tool result came from.

    Attributes:
        locator: URL, path#line, or query: where a person finds it again.
        excerpt: the beginning of the text, or the part that matched.
        sha256: hex digest of the full text.
        artifact: reference of the full text in the artifact store.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    step_id: str
    tool: str
    locator: str
    title: str = ""
    excerpt: str = ""
    sha256: str = ""
    artifact: str | None = None
    retrieved_at: datetime


class Evidence(BaseModel):
    """What is recorded of one attempt at one step. `passed` is computed by code alone."""

    model_config = ConfigDict(extra="forbid")

    step_id: str
    plan_version: int
    attempt: int = 1
    summary: str = ""
    source_ids: list[str] = Field(default_factory=list[str])
    criteria: list[CriterionResult] = Field(default_factory=list[CriterionResult])
    passed: bool
    reasoning: bool = Field(default=False, description="Passed without any source: reasoning, not a finding")
    missing: list[str] = Field(default_factory=list[str])
    calls: list[str] = Field(default_factory=list[str], description="What tools were asked: tool(arguments)")
    error_type: ErrorType | None = None
    detail: str = ""
    skipped_because: str | None = Field(default=None, description="Id of the failed ancestor")
    tool_calls: int = 0
    model_calls: int = 0
    tokens: int = 0
    started_at: datetime
    finished_at: datetime


class Gap(BaseModel):
    """Something that the evidence does not answer."""

    model_config = ConfigDict(extra="forbid")

    description: str = Field(min_length=1, max_length=1000, json_schema_extra=_asked_for(maxLength=300))
    step_id: str | None = None
    recoverable: StrictBool = Field(default=True, description="Whether another step could close it")


class Review(BaseModel):
    """Whether the evidence answers the objective, and what is missing."""

    model_config = ConfigDict(extra="forbid")

    approved: StrictBool
    gaps: list[Gap] = Field(
        default_factory=list[Gap], max_length=20, json_schema_extra=_asked_for(maxItems=8)
    )


class ModelUsage(BaseModel):
    """What one role has spent on one model."""

    model_config = ConfigDict(extra="forbid")

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        return ModelUsage(
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class Usage(BaseModel):
    """What a run has spent; adds up over parallel steps.

    Attributes:
        seconds: active seconds outside steps (planning, reviewing, writing).
        by_role: role -> model -> its part of model_calls and tokens.
    """

    model_config = ConfigDict(extra="forbid")

    tool_calls: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    by_role: dict[str, dict[str, ModelUsage]] = Field(default_factory=dict[str, dict[str, ModelUsage]])

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            tool_calls=self.tool_calls + other.tool_calls,
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            by_role=_added(self.by_role, other.by_role),
        )

    @classmethod
    def of_call(cls, role: str, model: str, input_tokens: int = 0, output_tokens: int = 0) -> "Usage":
        """Return what one model call has cost, under its role and its model."""
        part = ModelUsage(model_calls=1, input_tokens=input_tokens, output_tokens=output_tokens)
        return cls(
            model_calls=1,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            by_role={role: {model: part}},
        )

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens


def _added(
    one: dict[str, dict[str, ModelUsage]], two: dict[str, dict[str, ModelUsage]]
) -> dict[str, dict[str, ModelUsage]]:
    added = {role: dict(models) for role, models in one.items()}
    for role, models in two.items():
        mine = added.setdefault(role, {})
        for model, usage in models.items():
            mine[model] = mine[model] + usage if model in mine else usage
    return added

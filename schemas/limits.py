"""Limits of one run. Every loop around a model has its bound here."""

from pydantic import BaseModel, ConfigDict, Field


class RunLimits(BaseModel):
    """What one run may spend. Copied from the context into the state when the run starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    total_tool_budget: int = Field(
        default=32, ge=0, le=10_000, description="Tool runs in the whole run, retries included"
    )
    deadline_seconds: float = Field(
        default=1800,
        gt=0,
        le=86_400,
        description="Active seconds for the whole run; waiting for a person is free",
    )
    max_parallel_steps: int = Field(default=8, ge=1, le=64, description="Steps at work at the same time")
    max_plan_steps: int = Field(default=20, ge=1, le=20, description="Steps in one plan version")
    max_attempted_steps: int = Field(
        default=40, ge=1, le=400, description="Steps started over all plan versions"
    )
    max_replans: int | None = Field(
        default=None, ge=0, le=10, description="Replans; empty = derived from plan and budget"
    )
    step_timeout_cap: float | None = Field(
        default=None, gt=0, le=600, description="Seconds; lowers every step's timeout"
    )
    step_timeout_floor: float | None = Field(
        default=None, gt=0, le=3600, description="Seconds; raises every step's timeout, for slow models"
    )
    max_model_calls_per_step: int = Field(default=16, ge=1, le=100, description="Model calls in one step")
    max_request_chars: int = Field(
        default=30_000, ge=2_000, le=2_000_000, description="Characters in one model request"
    )
    max_result_chars: int = Field(
        default=8_000, ge=200, le=200_000, description="Characters of one tool result for a model"
    )
    max_tokens: int | None = Field(
        default=None, ge=1, description="Tokens in the whole run; empty = no bound"
    )

    def step_seconds(self, timeout_seconds: float) -> float:
        """Return how long a step with this timeout may take; the cap wins over the floor."""
        seconds = max(timeout_seconds, self.step_timeout_floor or 0)
        return seconds if self.step_timeout_cap is None else min(seconds, self.step_timeout_cap)

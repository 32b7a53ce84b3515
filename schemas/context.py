"""Per-run choices: the context schema that Studio shows as a form."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.limits import RunLimits

Mode = Literal["auto", "plan", "react", "reflect"]
ReviewPlan = Literal["never", "first", "always"]
OnGaps = Literal["finish", "ask"]
Questions = Literal["ask", "assume"]
Autonomy = Literal["read", "ask", "all"]


class RunContext(BaseModel):
    """Choices for one run. `plan` copies them into the state, so that a resume need not repeat them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Mode = Field(
        default="auto",
        description="How to work: plan first, one worker (react), or plan and criticise (reflect)",
    )
    review_plan: ReviewPlan = Field(
        default="never", description="When a person approves the plan before it runs"
    )
    on_gaps: OnGaps = Field(default="finish", description="What to do when gaps remain and replans are spent")
    questions: Questions = Field(
        default="ask",
        description="Whether the planner's questions go to a person, or are answered by assumptions",
    )
    autonomy: Autonomy = Field(
        default="ask",
        description="Tools that write, execute or send: never (read), after a person's yes (ask), freely (all)",
    )
    stream_plan: bool = Field(
        default=False,
        description="Start steps that only read while the plan is still being written; not where a person reviews it",
    )
    limits: RunLimits = Field(default_factory=lambda: RunLimits(), description="What the run may spend")

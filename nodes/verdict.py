"""What a review comes to, and what happens next. Pure functions of the state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agents.claims import letters
from nodes.readiness import seconds_left, tokens_left, tool_budget_left
from schemas.evidence import ErrorType, Evidence, Gap, Review
from schemas.plan import Plan, Step
from schemas.state import Status, StopReason, TaskState, latest

# What another step could still close. The others need a person, a key, or more budget.
RECOVERABLE: frozenset[ErrorType | None] = frozenset(
    {
        None,
        "timeout",
        "model_limit",
        "no_progress",
        "schema",
        "transient",
        "tool",
        "model",
        "context_overflow",
        "unsupported_claim",
        "criteria_unmet",
        "check_failed",
        "tool_budget",
    }
)


# Wall clock and monotonic clock differ a little: a step that the deadline ended may seem to leave some of it.
CLOCK_SLACK = 0.05
# With so much left, a deadline that ended a step must have been raised since.
RAISED_SECONDS = 1.0


def choose_max_replans(steps: int, budget_left: int) -> int:
    """Return how often a plan may be repaired: 0 under 2 tool runs a step, 1 up to 6 steps, 2 above."""
    if budget_left < 2 * steps:
        return 0
    return 1 if steps <= 6 else 2


def all_steps(plans: Sequence[Plan]) -> dict[str, Step]:
    """Return each step of any version, by id, in the order of first appearance."""
    steps: dict[str, Step] = {}
    for plan in plans:
        for step in plan.steps:
            steps[step.id] = step
    return steps


def open_failures(plans: Sequence[Plan], evidence: Sequence[Evidence]) -> list[tuple[Step, Evidence]]:
    """Return the steps that did not pass, that may not fail, and that no later step stands in for."""
    records = latest(evidence)
    replaced = replaced_steps(plans, records)
    return [
        (step, records[i])
        for i, step in all_steps(plans).items()
        if i in records and not records[i].passed and i not in replaced and not step.optional
    ]


def replaced_steps(plans: Sequence[Plan], records: Mapping[str, Evidence]) -> set[str]:
    """Return the steps whose place another one has taken, so that its gap, if it leaves one, is theirs.

    The other one is of a later version: a plan cannot plan its own failures away. An optional one stands in only by
    passing: else the gap would vanish with it.
    """
    first: dict[str, int] = {}
    for plan in plans:
        for step in plan.steps:
            first.setdefault(step.id, plan.version)
    taken: set[str] = set()
    for step in sorted(all_steps(plans).values(), key=lambda s: -first[s.id]):
        old, record = step.replaces, records.get(step.id)
        if old is None or record is None or first.get(old, first[step.id]) >= first[step.id]:
            continue
        if record.passed or not step.optional or step.id in taken:
            taken.add(old)
    return taken


def failure_gap(step: Step, record: Evidence, *, time_left: bool = False) -> Gap:
    """Return the gap that a failed or skipped step leaves; what the deadline cut needs time to be closed."""
    if record.skipped_because:
        text = f"{step.task[:400]} (skipped: step {record.skipped_because} did not pass)"
    else:
        unmet = [c.criterion for c in record.criteria if not c.met]
        text = "; ".join(unmet)[:600] or step.task[:400]
        text += _why(record)
    closable: set[ErrorType] = {"dependency_failed", "deadline"} if time_left else {"dependency_failed"}
    recoverable = record.error_type in RECOVERABLE or record.error_type in closable
    return Gap(description=text[:1000], step_id=step.id, recoverable=recoverable)


def _why(record: Evidence) -> str:
    if record.error_type == "criteria_unmet":
        return ""
    if record.error_type == "unsupported_claim":  # the claim itself, told again, would read as a finding
        return " (unsupported_claim: what was stated stands in nothing that a tool returned)"
    return f" ({record.error_type}: {record.detail[:200]})"


def settle(
    review: Review | None,
    plans: Sequence[Plan],
    evidence: Sequence[Evidence],
    *,
    time_left: bool = False,
    unreviewed: str = "The evidence was not reviewed.",
) -> Review:
    """Combine the reviewer's words with the facts: failures and skips are gaps, and gaps veto approval.

    Args:
        review: the reviewer's; None where there is none.
        plans: every version.
        evidence: every record.
        time_left: whether a deadline that has cut steps was raised since.
        unreviewed: the gap that a missing review leaves, where there is no other one.
    """
    failures = open_failures(plans, evidence)
    gaps = [failure_gap(step, record, time_left=time_left) for step, record in failures]
    named = {gap.step_id for gap in gaps}
    if review is not None:
        known = {step.id for step in all_steps(plans).values()}
        for gap in review.gaps:
            step_id = gap.step_id if gap.step_id in known else None
            if step_id is None or step_id not in named:
                gaps.append(gap.model_copy(update={"step_id": step_id}))
        if not review.approved and not gaps:
            gaps = [Gap(description="The reviewer did not approve, and named no gap.", recoverable=False)]
        if not gaps and not any(record.passed for record in evidence):
            gaps = [Gap(description="No step ended with evidence that passed.")]
    elif not gaps:
        gaps = [Gap(description=unreviewed[:1000], recoverable=False)]
    return Review(approved=bool(review and review.approved and not gaps), gaps=gaps[:20])


@dataclass(frozen=True)
class Move:
    """What happens after a review; `reason` is the stop reason when it is the end."""

    to: Literal["finish", "replan"]
    reason: StopReason | None = None


def asking_steps(state: TaskState) -> list[str]:
    """Return the failed steps whose failure a person is to be asked about, and has not been yet."""
    if state["choices"].questions == "assume":
        return []  # nobody is there to be asked
    failures = open_failures(state["plans"], state["evidence"])
    return [s.id for s, _ in failures if s.on_failure == "ask" and s.id not in state["asked"]]


def same_gaps(before: Review | None, after: Review, plan: Plan, evidence: Sequence[Evidence]) -> bool:
    """Return whether a repaired plan has changed nothing: the same gaps, and none of its new steps passed."""
    if before is None or plan.created_by != "replanner" or not after.gaps:
        return False
    if any(e.passed and e.plan_version == plan.version for e in evidence):
        return False
    return {letters(g.description) for g in before.gaps} == {letters(g.description) for g in after.gaps}


def next_move(state: TaskState, before: Review | None = None) -> Move:
    """Decide whether to replan, or why to stop.

    Args:
        state: with the new review in it.
        before: the review of the plan version before.
    """
    review = state["review"]
    if state["stop_reason"] is not None:
        return Move("finish", state["stop_reason"])
    if review is None or review.approved:
        return Move("finish", "approved" if review else "review_unavailable")
    limit = _limit_reached(state)
    if limit is not None:
        return Move("finish", limit)
    if not any(gap.recoverable for gap in review.gaps):
        return Move("finish", "not_recoverable")
    if state["replan_count"] >= state["max_replans"]:
        return Move("finish", "replan_limit")
    plan = state["plan"]
    if plan is not None and same_gaps(before, review, plan, evidence=state["evidence"]):
        return Move("finish", "no_progress")
    return Move("replan")


def _limit_reached(state: TaskState) -> StopReason | None:
    evidence, limits, usage = state["evidence"], state["limits"], state["usage"]
    if seconds_left(limits, evidence, usage) <= CLOCK_SLACK:
        return "deadline"
    if sum(e.finished_at > e.started_at for e in evidence) >= limits.max_attempted_steps:
        return "attempted_steps"
    if tokens_left(limits, usage) == 0:
        return "not_recoverable"
    if tool_budget_left(limits, usage) == 0 and limits.total_tool_budget > 0:
        return "tool_budget"
    return None


def final_status(state: TaskState, reason: StopReason) -> Status:
    """Return completed (approved), partial (an answer with gaps), failed (nothing usable) or cancelled."""
    if reason in ("cancelled", "plan_rejected"):
        return "cancelled"
    if reason == "approved":
        return "completed"
    return "partial" if any(map(is_usable, state["evidence"])) else "failed"


def is_usable(record: Evidence) -> bool:
    """Return whether an answer may be made of a record: it passed; or it has found, with sources, a part of what was asked.

    The replan looks for the rest alone: what is left out here would be lost.
    """
    partly = record.error_type == "criteria_unmet" and any(c.met for c in record.criteria)
    return record.passed or (partly and bool(record.source_ids))

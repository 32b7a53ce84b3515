"""More budget for an ended run: what may be added, to which runs, and what then runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodes.extend import extension, unstarted_steps
from schemas.context import RunContext
from schemas.errors import InputError
from schemas.evidence import Evidence, Gap, Review, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan, Step
from schemas.state import TaskState

START = datetime(2030, 1, 1, tzinfo=UTC)


def a_step(step_id: str, *needs: str, **fields: Any) -> Step:
    return Step(id=step_id, task=step_id, success_criteria=["ok"], depends_on=list(needs), **fields)


def record(step_id: str, kind: str) -> Evidence:
    """kind: passed, failed, late (cut by the deadline), refused (by a limit), skipped."""
    error: Any = {
        "failed": "criteria_unmet",
        "late": "deadline",
        "refused": "tool_budget",
        "skipped": "dependency_failed",
    }
    ended = kind in ("passed", "failed", "late")
    return Evidence(
        step_id=step_id,
        plan_version=1,
        passed=kind == "passed",
        error_type=error.get(kind),
        skipped_because="root" if kind == "skipped" else None,
        started_at=START,
        finished_at=START + timedelta(seconds=ended),
    )


def ended(plan: Plan | None, kinds: dict[str, str], **more: Any) -> TaskState:
    gaps = [
        Gap(description=i, step_id=i, recoverable=kind != "late")
        for i, kind in kinds.items()
        if kind != "passed"
    ]
    state: Any = {
        "plan": plan,
        "plans": [plan] if plan else [],
        "evidence": [record(i, kind) for i, kind in kinds.items()],
        "usage": Usage(tool_calls=4),
        "limits": RunLimits(total_tool_budget=4),
        "review": Review(approved=not gaps, gaps=gaps),
        "choices": RunContext(),
        "replan_count": 0,
        "max_replans": 1,
        "stop_reason": "tool_budget",
    }
    return state | more


PLAN = Plan(
    steps=[a_step("a"), a_step("b", "a"), a_step("c", "b"), a_step("o", "a", optional=True), a_step("d", "o")]
)


@pytest.mark.parametrize(
    ("kinds", "waiting"),
    [
        ({"a": "passed", "b": "refused", "c": "skipped", "o": "passed", "d": "passed"}, ["b", "c"]),
        (
            {"a": "refused", "b": "skipped", "c": "skipped", "o": "skipped", "d": "refused"},
            ["a", "b", "c", "o", "d"],
        ),
        ({"a": "passed", "b": "failed", "c": "skipped", "o": "failed", "d": "refused"}, ["d"]),
        ({"a": "passed", "b": "passed", "c": "passed", "o": "refused", "d": "passed"}, ["o"]),
        ({"a": "failed", "b": "skipped", "c": "skipped", "o": "skipped", "d": "passed"}, []),
        ({"a": "passed", "b": "late", "c": "skipped", "o": "failed", "d": "failed"}, []),
        ({}, ["a", "b", "o", "d", "c"]),
    ],
)
def test_what_a_limit_kept_from_starting_and_what_waits_for_it_can_start(
    kinds: dict[str, str], waiting: list[str]
) -> None:
    found = unstarted_steps(PLAN, {i: record(i, kind) for i, kind in kinds.items()})
    assert sorted(s.id for s in found) == sorted(waiting)


def test_the_next_version_holds_what_passed_and_what_may_start_and_nothing_that_ran() -> None:
    kinds = {"a": "passed", "b": "failed", "c": "skipped", "o": "failed", "d": "refused"}
    more = extension(ended(PLAN, kinds), tool_calls=4)
    new = more.update["plan"]
    assert more.after == "replan"
    assert {s.id: s.depends_on for s in new.steps} == {"a": [], "d": []}
    assert (new.version, new.parent_version, new.created_by) == (2, 1, "human")
    assert "limits were raised" in new.reason
    assert more.update["plans"] == [PLAN, new]


def test_amounts_are_added_and_the_reason_to_stop_is_gone() -> None:
    update = extension(ended(PLAN, {"a": "failed"}), tool_calls=3, replans=2, seconds=60.5).update
    limits = update["limits"]
    assert (limits.total_tool_budget, limits.deadline_seconds, update["max_replans"]) == (7, 1860.5, 3)
    assert (update["stop_reason"], update["status"]) == (None, "running")


ALL_RAN = {"a": "passed", "b": "failed", "c": "skipped", "o": "passed", "d": "passed"}


@pytest.mark.parametrize(
    ("spent", "allowed", "tool_calls", "replans", "becomes"),
    [(0, 1, 4, 0, 1), (1, 1, 4, 0, 2), (1, 1, 0, 3, 4), (0, 0, 1, 0, 1), (2, 2, 0, 1, 3)],
)
def test_a_run_whose_replans_are_spent_gets_as_many_as_its_gaps_allow(
    spent: int, allowed: int, tool_calls: int, replans: int, becomes: int
) -> None:
    state = ended(PLAN, ALL_RAN, replan_count=spent, max_replans=allowed)
    more = extension(state, tool_calls=tool_calls, replans=replans)
    assert (more.after, more.update["max_replans"]) == ("review", becomes)


def test_what_the_deadline_cut_can_be_closed_once_there_is_time() -> None:
    state = ended(PLAN, ALL_RAN | {"b": "late"}, stop_reason="deadline")
    gaps = extension(state, seconds=60).update["review"].gaps
    assert [gap.recoverable for gap in gaps if gap.step_id == "b"] == [True]
    assert "review" not in extension(state, tool_calls=4).update


def test_a_run_whose_reviewer_was_down_is_reviewed_first() -> None:
    assert extension(ended(PLAN, ALL_RAN, stop_reason="review_unavailable"), seconds=60).after == "schedule"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"tool_calls": 0, "replans": 0, "seconds": 0},
        {"tool_calls": -1},
        {"tool_calls": 5, "seconds": -1},
        {"tool_calls": 10_000},
        {"seconds": 90_000},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
    ],
)
def test_nothing_less_than_nothing_and_too_much_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        extension(ended(PLAN, ALL_RAN), **wrong)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (ended(PLAN, {"a": "passed"}), "completed"),
        (ended(None, {}, review=Review(approved=False), stop_reason="plan_invalid"), "no plan"),
        (ended(PLAN, {}, review=None, stop_reason="plan_rejected"), "turned down"),
    ],
)
def test_runs_that_have_nothing_to_go_on_with_are_refused_with_the_reason(
    state: TaskState, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        extension(state, tool_calls=5)

"""What a review comes to: the facts veto, and every end has its reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.verdict import RECOVERABLE, choose_max_replans, open_failures, settle
from schemas.evidence import Evidence, Gap, Review
from schemas.plan import Plan, Step

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def a_step(step_id: str, **fields: Any) -> Step:
    return Step(id=step_id, task=f"do {step_id}", success_criteria=["ok"], **fields)


def record(step_id: str, passed: bool = True, **fields: Any) -> Evidence:
    fields.setdefault("error_type", None if passed else "criteria_unmet")
    return Evidence(
        step_id=step_id,
        plan_version=1,
        passed=passed,
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=1),
        **fields,
    )


PLAN = Plan(steps=[a_step("a"), a_step("b"), a_step("o", optional=True)])


def test_a_failure_vetoes_approval_and_an_optional_one_does_not() -> None:
    ok = [record("a"), record("b"), record("o", passed=False)]
    assert settle(Review(approved=True), [PLAN], ok).approved
    bad = [record("a"), record("b", passed=False), record("o")]
    settled = settle(Review(approved=True), [PLAN], bad)
    assert (settled.approved, [g.step_id for g in settled.gaps]) == (False, ["b"])


def test_no_review_never_approves() -> None:
    settled = settle(None, [PLAN], [record("a"), record("b"), record("o")])
    assert not settled.approved
    assert settled.gaps


def test_a_failure_that_a_later_step_stands_in_for_is_closed() -> None:
    second = Plan(steps=[a_step("a"), a_step("b2", replaces="b")], version=2)
    evidence = [record("a"), record("b", passed=False), record("b2")]
    assert open_failures([PLAN, second], evidence) == []
    assert settle(Review(approved=True), [PLAN, second], evidence).approved


def test_a_stand_in_that_failed_is_the_open_failure() -> None:
    second = Plan(steps=[a_step("a"), a_step("b2", replaces="b")], version=2)
    evidence = [record("a"), record("b", passed=False), record("b2", passed=False)]
    assert [step.id for step, _ in open_failures([PLAN, second], evidence)] == ["b2"]


@pytest.mark.parametrize("kind", ["auth", "refused", "deadline", "cancelled"])
def test_what_no_other_step_could_close_is_not_recoverable(kind: Any) -> None:
    gaps = settle(
        Review(approved=False), [PLAN], [record("a", passed=False, error_type=kind), record("b")]
    ).gaps
    assert kind not in RECOVERABLE
    assert [gap.recoverable for gap in gaps] == [False]


def test_a_gap_says_what_is_missing_and_why() -> None:
    gap = settle(
        None, [PLAN], [record("a", passed=False, error_type="timeout", detail="timeout after 2 s")]
    ).gaps[0]
    assert "do a" in gap.description or "ok" in gap.description
    assert "timeout after 2 s" in gap.description


reviews = st.none() | st.builds(
    Review,
    approved=st.booleans(),
    gaps=st.lists(
        st.builds(
            Gap,
            description=st.text(min_size=1, max_size=20),
            step_id=st.sampled_from([None, "a", "b", "ghost"]),
            recoverable=st.booleans(),
        ),
        max_size=20,
    ),
)


@given(reviews, st.lists(st.booleans(), min_size=3, max_size=3))
def test_approved_means_no_gap_and_no_failure_and_something_that_passed(
    review: Review | None, passed: list[bool]
) -> None:
    evidence = [record(i, passed=ok) for i, ok in zip("abo", passed, strict=True)]
    settled = settle(review, [PLAN], evidence)
    if settled.approved:
        assert not settled.gaps
        assert passed[0]
        assert passed[1]
        assert review is not None
        assert review.approved
        assert not review.gaps
    else:
        assert settled.gaps
    assert {g.step_id for g in settled.gaps} <= {None, "a", "b", "o"}
    if review is not None and len(settled.gaps) < 20:
        failed = {i for i, ok in zip("ab", passed[:2], strict=True) if not ok}
        assert failed <= {g.step_id for g in settled.gaps}


@given(st.integers(1, 20), st.integers(-5, 400))
def test_more_budget_never_means_fewer_replans(steps: int, budget: int) -> None:
    assert choose_max_replans(steps, budget) <= choose_max_replans(steps, budget + 1) <= 2

"""Which steps start: any acyclic plan and any outcomes end, no step runs twice, budgets hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.readiness import active_seconds, next_wave
from schemas.evidence import ErrorType, Evidence, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan, Step

START = datetime(2030, 1, 1, tzinfo=UTC)


def a_step(step_id: str, *needs: str, **fields: Any) -> Step:
    return Step(id=step_id, task=step_id, success_criteria=["ok"], depends_on=list(needs), **fields)


def record(
    step_id: str, *, passed: bool, seconds: float = 1, error_type: ErrorType | None = None, **fields: Any
) -> Evidence:
    return Evidence(
        step_id=step_id,
        plan_version=1,
        passed=passed,
        error_type=error_type or (None if passed else "criteria_unmet"),
        started_at=START,
        finished_at=START + timedelta(seconds=seconds),
        **fields,
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any acyclic plan of up to 8 steps, in any order."""
    count = draw(st.integers(1, 8))
    steps: list[Step] = []
    for n in range(count):
        needs = (
            draw(st.lists(st.sampled_from([s.id for s in steps]), unique=True, max_size=3)) if steps else []
        )
        steps.append(
            a_step(
                f"s{n}",
                *needs,
                tool_budget=draw(st.integers(0, 4)),
                tools=draw(st.sampled_from([None, None, []])),
                optional=draw(st.booleans()) and draw(st.booleans()),
                on_failure=draw(st.sampled_from(["replan", "replan", "retry"])),
            )
        )
    return Plan(steps=draw(st.permutations(steps)))


class Simulation:
    """Plays schedule and execute: what is granted runs, what is skipped or refused is recorded."""

    def __init__(self, plan: Plan, limits: RunLimits) -> None:
        self.plan, self.limits = plan, limits
        self.evidence: list[Evidence] = []
        self.usage = Usage()
        self.runs: list[str] = []
        self.reserved: list[int] = []

    def play(self, outcome: Any) -> None:
        for _ in range(4 * len(self.plan.steps) + 4):
            wave = next_wave(self.plan, self.evidence, self.usage, self.limits)
            self.evidence += [
                record(i, passed=False, seconds=0, error_type="dependency_failed", skipped_because=root)
                for i, root in wave.skipped.items()
            ]
            self.evidence += [
                record(i, passed=False, seconds=0, error_type="tool_budget") for i in wave.refused
            ]
            if not wave.grants and not wave.skipped and not wave.refused:
                return
            self.reserved.append(self.usage.tool_calls + sum(g.tool_calls for g in wave.grants))
            for grant in wave.grants:
                passed, used = outcome(grant.step.id, grant.tool_calls)
                assert used <= grant.tool_calls <= grant.step.tool_budget
                self.runs.append(grant.step.id)
                self.usage = self.usage + Usage(tool_calls=used)
                self.evidence.append(record(grant.step.id, passed=passed, tool_calls=used))
        raise AssertionError(f"the run does not end: {self.evidence}")


@settings(max_examples=300, deadline=None)
@given(plans(), st.integers(0, 20), st.integers(1, 10), st.data())
def test_any_plan_and_any_outcomes_end_within_the_limits(
    plan: Plan, budget: int, attempts: int, data: st.DataObject
) -> None:
    sim = Simulation(plan, RunLimits(total_tool_budget=budget, max_attempted_steps=attempts))
    sim.play(lambda step_id, grant: (data.draw(st.booleans()), data.draw(st.integers(0, grant))))
    last = {e.step_id: e for e in sim.evidence}
    assert set(last) == {s.id for s in plan.steps}, "every step has a record"
    assert max(sim.reserved, default=0) <= budget
    assert len(sim.runs) <= attempts
    for step in plan.steps:
        allowed = 2 if step.on_failure == "retry" else 1
        assert sim.runs.count(step.id) <= allowed
        tries = [e for e in sim.evidence if e.step_id == step.id]
        assert not any(e.passed for e in tries[:-1]), "what passed never runs again"


@settings(max_examples=200, deadline=None)
@given(plans(), st.data())
def test_exactly_the_descendants_of_failed_steps_are_skipped(plan: Plan, data: st.DataObject) -> None:
    failing = {s.id for s in plan.steps if data.draw(st.booleans())}
    sim = Simulation(plan, RunLimits(total_tool_budget=1000, max_attempted_steps=400))
    sim.play(lambda step_id, grant: (step_id not in failing, 0))
    blocked: dict[str, set[str]] = {}
    optional = {s.id for s in plan.steps if s.optional}
    for _ in plan.steps:
        for step in plan.steps:
            for need in step.depends_on:
                if need not in optional and (need in failing or need in blocked):
                    blocked.setdefault(step.id, set()).update(blocked.get(need) or {need})
    last = {e.step_id: e for e in sim.evidence}
    skipped = {i for i, e in last.items() if e.error_type == "dependency_failed"}
    assert skipped == set(blocked)
    assert skipped.isdisjoint(sim.runs)
    for step_id in skipped:
        root = last[step_id].skipped_because
        assert root in failing
        assert root not in skipped


def test_a_step_waits_for_its_whole_budget_while_others_can_run() -> None:
    plan = Plan(steps=[a_step("a", tool_budget=4), a_step("b", tool_budget=4), a_step("c", tools=[])])
    wave = next_wave(plan, [], Usage(), RunLimits(total_tool_budget=5))
    assert [(g.step.id, g.tool_calls) for g in wave.grants] == [("a", 4), ("c", 0)]
    assert wave.refused == {}
    later = next_wave(
        plan,
        [record("a", passed=True), record("c", passed=True)],
        Usage(tool_calls=3),
        RunLimits(total_tool_budget=5),
    )
    assert [(g.step.id, g.tool_calls) for g in later.grants] == [("b", 2)]


def test_an_empty_budget_refuses_what_needs_tools_and_runs_what_reasons() -> None:
    plan = Plan(steps=[a_step("a"), a_step("b", tools=[])])
    limits = RunLimits(total_tool_budget=0)
    assert [g.step.id for g in next_wave(plan, [], Usage(), limits).grants] == ["b"]
    wave = next_wave(plan, [record("b", passed=True)], Usage(), limits)
    assert (wave.grants, wave.refused) == ([], {"a": "tool_budget"})


def test_nothing_starts_after_the_deadline() -> None:
    plan = Plan(steps=[a_step("a"), a_step("b", "a"), a_step("c")])
    done = [record("a", passed=True, seconds=100)]
    wave = next_wave(plan, done, Usage(seconds=1), RunLimits(deadline_seconds=100))
    assert (wave.grants, wave.refused) == ([], {"b": "deadline", "c": "deadline"})


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 5),
        ([(0, 10)], 15),
        ([(0, 10), (5, 12)], 17),
        ([(0, 10), (2, 3)], 15),
        ([(0, 1), (100, 101)], 7),
        ([(3, 3)], 5),
    ],
)
def test_active_seconds_count_overlaps_once_and_waiting_not_at_all(
    spans: list[tuple[int, int]], seconds: float
) -> None:
    evidence = [
        record("a", passed=True).model_copy(
            update={"started_at": START + timedelta(seconds=a), "finished_at": START + timedelta(seconds=b)}
        )
        for a, b in spans
    ]
    assert active_seconds(evidence, Usage(seconds=5)) == seconds

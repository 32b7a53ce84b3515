"""What a valid plan may still be improved in, and what it may cost, before anything runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodes.lint import forecast, lint
from schemas.evidence import Evidence
from schemas.limits import RunLimits
from schemas.plan import Plan, Step
from tests.conftest import Look
from tests.reopening import answer, asked_of
from tests.running import bench, config, context
from tests.scripted import finding, look, plan, step

START = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = RunLimits(total_tool_budget=100)


def a_step(step_id: str, *needs: str, criterion: str = "The price is stated", **fields: Any) -> Step:
    fields.setdefault("task", f"Find the price of {step_id}")
    return Step(id=step_id, success_criteria=[criterion], depends_on=list(needs), **fields)


def done(step_id: str, seconds: float = 1, *, passed: bool = True) -> Evidence:
    end = START + timedelta(seconds=seconds)
    return Evidence(step_id=step_id, plan_version=1, passed=passed, started_at=START, finished_at=end)


SOUND = {
    "one step": [a_step("a")],
    "parallel steps and a conclusion": [a_step("a"), a_step("b"), a_step("c", "a", "b", tools=[])],
    "a chain": [a_step("a"), a_step("b", "a"), a_step("c", "b")],
    "a diamond": [a_step("a"), a_step("b", "a"), a_step("c", "a"), a_step("d", "b", "c")],
    "a conclusion from the first and the last": [
        a_step("a"),
        a_step("b", "a"),
        a_step("c", "a", "b", tools=[]),
    ],
    "writing one after the other": [a_step("a", tools=["send"]), a_step("b", "a", tools=["send"])],
    "writing beside reading": [a_step("a", tools=["send"]), a_step("b", tools=["look"])],
    "a machine check in place of a criterion": [
        a_step("a", criterion="done", checks=[{"type": "min_sources", "count": 1}])
    ],
    "zh": [
        a_step("a", task="查找青云的价格", criterion="列出每个套餐的月价，并注明来源"),
        a_step("b", task="查找海浪的价格", criterion="价格已注明"),
        a_step("c", "a", "b", task="比较两者", criterion="说明哪个更便宜", tools=[]),
    ],
    "zh, with the words of wishes in it": [
        a_step("a", criterion="列出完成日期"),
        a_step("b", criterion="最好的价格及其来源"),
    ],
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_plan_has_no_lint(name: str) -> None:
    assert lint(Plan(steps=SOUND[name]), LIMITS, writers=["send"]) == []


@pytest.mark.parametrize(
    "criterion",
    [
        "done",
        "Good quality",
        "The text is complete",
        "A thorough answer.",
        "works properly",
        "好",
        "完成",
        "高质量。",
        "质量良好",
        "内容完善",
        "任务已完成",
    ],
)
def test_a_wish_in_place_of_a_criterion_is_named(criterion: str) -> None:
    (line,) = lint(Plan(steps=[a_step("a"), a_step("b", criterion=criterion)]), LIMITS)
    assert line.startswith("b has no criterion that can be checked")
    assert criterion in line


def test_one_criterion_that_can_be_checked_is_enough() -> None:
    assert (
        lint(Plan(steps=[Step(id="a", task="x", success_criteria=["done", "The price is stated"])]), LIMITS)
        == []
    )


def test_a_dependency_that_another_one_already_waits_for_is_named() -> None:
    steps = [a_step("a"), a_step("b", "a"), a_step("c", "b"), a_step("d", "a", "c")]
    assert lint(Plan(steps=steps), LIMITS) == [
        "d need not wait for a: another of its dependencies already does"
    ]


def test_parallel_steps_that_write_are_named_in_pairs() -> None:
    steps = [
        a_step("a", tools=["send"]),
        a_step("b", tools=["look", "send"]),
        a_step("c", "a", tools=["send"]),
    ]
    assert lint(Plan(steps=steps), LIMITS, writers=["send"]) == [
        "a and b may write at the same time: let one depend on the other",
        "b and c may write at the same time: let one depend on the other",
    ]


@pytest.mark.parametrize(("old", "new"), [("Find the price", "find  the PRICE"), ("查找价格", " 查找价格 ")])
def test_a_step_that_repeats_passed_work_is_named(old: str, new: str) -> None:
    lines = lint(Plan(steps=[a_step("a", task=old), a_step("b", task=new)]), LIMITS, passed={"a": old})
    assert lines == ["b repeats the work of a, which has passed"]


def test_more_tool_runs_than_the_run_has_are_named() -> None:
    steps = [a_step("a", tool_budget=6), a_step("b", tool_budget=5), a_step("c", tools=[], tool_budget=9)]
    assert lint(Plan(steps=steps), RunLimits(total_tool_budget=11)) == []
    (line,) = lint(Plan(steps=steps), RunLimits(total_tool_budget=10))
    assert "11 tool runs" in line
    assert "10" in line


def test_the_budget_line_counts_what_is_left_of_the_run() -> None:
    steps = [a_step("a", tool_budget=6), a_step("b", tool_budget=5)]
    (line,) = lint(
        Plan(steps=steps), RunLimits(total_tool_budget=30), passed={"a": "Find the price of a"}, budget_left=4
    )
    assert "5 tool runs" in line
    assert "4 left" in line


DIAMOND = [
    a_step("a", timeout_seconds=30),
    a_step("b", "a", timeout_seconds=60),
    a_step("c", "a", timeout_seconds=20),
    a_step("d", "b", "c", timeout_seconds=10, tools=[]),
]


def test_the_forecast_adds_up_the_worst_case() -> None:
    cost = forecast(Plan(steps=DIAMOND), LIMITS)
    assert cost.waves == [["a"], ["b", "c"], ["d"]]
    assert (cost.critical_path, cost.critical_seconds) == (["a", "b", "d"], 100)
    assert cost.tool_calls == 12
    assert cost.model_calls == 3 * (4 + 3) + 3


def test_the_forecast_keeps_to_the_limits_of_the_run() -> None:
    limits = RunLimits(total_tool_budget=10, step_timeout_cap=25, max_model_calls_per_step=5)
    cost = forecast(Plan(steps=DIAMOND), limits)
    assert (cost.critical_seconds, cost.tool_calls, cost.model_calls) == (60, 10, 18)
    assert forecast(Plan(steps=DIAMOND), limits, budget_left=3).tool_calls == 3


def test_the_forecast_counts_nothing_for_what_has_passed_and_learns_from_how_long_it_took() -> None:
    cost = forecast(Plan(steps=DIAMOND), LIMITS, [done("a", 15), done("x", 5, passed=False)])
    assert cost.critical_seconds == 0 + 15 + 10
    assert (cost.tool_calls, cost.model_calls) == (8, 17)


def test_the_forecast_counts_both_attempts_of_a_step_that_is_retried() -> None:
    once, twice = (forecast(Plan(steps=[a_step("a", on_failure=f)]), LIMITS) for f in ("replan", "retry"))
    assert (twice.critical_seconds, twice.model_calls) == (2 * once.critical_seconds, 2 * once.model_calls)
    assert twice.tool_calls == once.tool_calls  # the budget is the step's, not the attempt's


def test_steps_in_any_order_have_the_same_forecast() -> None:
    assert forecast(Plan(steps=DIAMOND[::-1]), LIMITS).critical_seconds == 100


async def test_a_person_is_shown_the_lint_and_the_forecast_and_the_stream_carries_them() -> None:
    steps = [step("a", success_criteria=["done"]), step("b", "a", tool_budget=6)]
    b = bench(*steps, tools=[Look().tool()])
    events: list[dict[str, Any]] = []
    async for event in b.graph.astream(
        {"objective": "x"},
        config(),
        context=context(review_plan="first", total_tool_budget=5),
        stream_mode="custom",
    ):
        events.append(event)
    shown = (await b.graph.aget_state(config())).interrupts[0].value
    assert len(shown["lint"]) == 2
    assert [e["lint"] for e in events if e["type"] == "plan_ready"] == [shown["lint"]]
    summary = shown["summary"]
    assert (summary["steps"], summary["waves"], summary["first"]) == (2, 2, ["a"])
    assert (summary["critical_path"], summary["critical_seconds"]) == (["a", "b"], 180)
    assert (summary["worst_case_tool_calls"], summary["worst_case_model_calls"]) == (5, 7 + 9)


async def test_before_a_repair_is_approved_its_cost_is_held_against_what_is_left() -> None:
    work = {"a": [look("1", "x"), look("2", "y"), finding("a", met=False)]}
    replies = [plan(step("a")), plan(step("a2", replaces="a", tool_budget=10))]
    tools = [Look().tool()]
    b = bench(planner=replies, work=work, tools=tools)
    await b.run(review_plan="always", total_tool_budget=6, max_replans=1)
    shown = asked_of(await answer(b, {"decision": "approve"}, tools))
    assert shown["plan"]["version"] == 2
    assert shown["summary"]["worst_case_tool_calls"] == 4
    assert shown["lint"] == [
        "the steps ask for 10 tool runs, the run has 4 left: some will wait or end short"
    ]

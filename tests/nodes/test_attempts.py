"""Second attempts at a step: when one is made, what it may spend, and who waits for it."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from tests.conftest import Look
from tests.reopening import briefs, ran
from tests.running import Bench, bench, config, context
from tests.scripted import finding, look, plan, step

DOWN = ConnectionError("connection lost")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries inside a model call wait for seconds; here they do not."""
    monkeypatch.setattr("agents.retrying.FIRST_DELAY", 0.0)


DOWN_FOR_GOOD = [DOWN] * 3  # one call and its two retries


def attempts(out: dict[str, Any], step_id: str) -> list[tuple[int, bool, str | None]]:
    return [(e.attempt, e.passed, e.error_type) for e in out["evidence"] if e.step_id == step_id]


def trying(*answers: Any, tool: Look | None = None, **fields: Any) -> Bench:
    tool = tool or Look()
    return bench(
        step("a", **fields),
        step("b", "a"),
        work={"a": list(answers), "b": [look(), finding("b", "s1")]},
        tools=[tool.tool()],
    )


async def test_a_model_that_was_down_before_any_tool_ran_is_tried_once_more() -> None:
    b = trying(*DOWN_FOR_GOOD, look(), finding("a", "s1"))
    out = await b.run(max_replans=0)
    assert attempts(out, "a") == [(1, False, "transient"), (2, True, None)]
    assert out["status"] == "completed"
    assert ran(b) == ["a"] * 4 + ["b"]


async def test_what_depends_on_the_step_waits_for_its_second_attempt() -> None:
    b = trying(*DOWN_FOR_GOOD, look(), finding("a", "s1"))
    out = await b.run()
    assert attempts(out, "b") == [(1, True, None)]
    assert [d["step_id"] for d in b.worker.asked[-1].brief["dependencies"]] == ["a"]


async def test_a_second_attempt_that_fails_is_the_last_and_then_the_gap_is_planned() -> None:
    b = trying(*DOWN_FOR_GOOD, *DOWN_FOR_GOOD)
    b.planner.answers.append(plan(step("a2", replaces="a")))
    b.worker.by_step["a2"] = [look(), finding("a2", "s1")]
    out = await b.run()
    assert attempts(out, "a") == [(1, False, "transient"), (2, False, "transient")]
    assert out["status"] == "completed"
    assert len(briefs(b, "replanner")) == 1


async def test_a_mail_that_was_sent_is_not_sent_again() -> None:
    mail = Look("mail")  # neither marked idempotent nor as one that writes
    b = trying(look(tool="mail"), *DOWN_FOR_GOOD, tool=mail)
    out = await b.run(max_replans=0)
    assert attempts(out, "a") == [(1, False, "transient")]
    assert mail.runs == ["q"]


async def test_a_mail_is_sent_again_only_where_the_plan_says_retry() -> None:
    mail = Look("mail")
    b = trying(
        look(tool="mail"),
        *DOWN_FOR_GOOD,
        look(tool="mail"),
        finding("a", "s1"),
        tool=mail,
        on_failure="retry",
    )
    b.worker.by_step["b"][0] = look(tool="mail")
    out = await b.run()
    assert attempts(out, "a") == [(1, False, "transient"), (2, True, None)]
    assert mail.runs == ["q"] * 3


async def test_a_tool_that_writes_asks_again_before_a_second_attempt_runs_it() -> None:
    send = Look("send", permission="write")
    b = trying(
        look(tool="send"),
        *DOWN_FOR_GOOD,
        look(tool="send"),
        finding("a", "s1"),
        tool=send,
        on_failure="retry",
        tools=["send"],
    )
    b.worker.by_step["b"] = [finding("b", "s1")]
    await b.run()
    out = await b.go_on(Command(resume={"decision": "approve"}))
    assert send.runs == ["q"]
    assert out["__interrupt__"][0].value["kind"] == "tool_approval"
    await b.go_on(Command(resume={"decision": "approve"}))
    assert send.runs == ["q", "q"]


@pytest.mark.parametrize(
    "first",
    [
        [finding("a", met=False)],
        [look(), finding("a", "s1", met=False)],
        [look(), ValueError("broke")],
        [look(), *DOWN_FOR_GOOD],
    ],
)
async def test_retry_tries_any_failure_once_more(first: list[Any]) -> None:
    b = trying(*first, look(), finding("a", "s1"), on_failure="retry")
    out = await b.run(max_replans=0)
    assert [passed for _, passed, _ in attempts(out, "a")] == [False, True]
    assert out["status"] == "completed"


async def test_retry_means_once() -> None:
    b = trying(*[finding("a", met=False)] * 2, on_failure="retry")
    out = await b.run(max_replans=0)
    assert len(attempts(out, "a")) == 2
    assert attempts(out, "b") == [(1, False, "dependency_failed")]


class Denied(Exception):
    status_code = 401


@pytest.mark.parametrize("failure", [Denied("no key"), ValueError("content_filter")])
async def test_what_another_attempt_cannot_change_is_not_tried_again(failure: Exception) -> None:
    b = trying(failure, on_failure="retry")
    out = await b.run(max_replans=0)
    assert len(attempts(out, "a")) == 1


@pytest.mark.parametrize("first", [[finding("a", met=False)], [ValueError("broke")]])
async def test_other_failures_are_not_tried_again_unless_the_plan_says_so(first: list[Any]) -> None:
    out = await trying(*first).run(max_replans=0)
    assert len(attempts(out, "a")) == 1


async def test_the_steps_tool_budget_is_for_both_attempts_together() -> None:
    tool = Look()
    first = [look("1", "x"), look("2", "y"), finding("a", "s1", met=False)]
    second = [look("3", "z"), look("4", "u"), finding("a", "s1")]
    b = trying(*first, *second, tool=tool, on_failure="retry", tool_budget=3)
    out = await b.run()
    assert [e.tool_calls for e in out["evidence"] if e.step_id == "a"] == [2, 1]
    assert tool.runs == ["x", "y", "z", "q"]


async def test_without_a_tool_run_left_there_is_no_second_attempt() -> None:
    b = trying(look(), finding("a", "s1", met=False), on_failure="retry", tool_budget=1)
    out = await b.run(max_replans=0)
    assert len(attempts(out, "a")) == 1
    assert attempts(out, "b")[0][2] == "dependency_failed"


async def test_the_runs_tool_budget_binds_over_attempts() -> None:
    tool = Look()
    first = [look("1", "x"), finding("a", "s1", met=False)]
    b = trying(*first, look("2", "y"), look("3", "z"), finding("a", "s1"), tool=tool, on_failure="retry")
    b.worker.by_step["b"] = []
    out = await b.run(total_tool_budget=2, max_replans=0)
    assert tool.runs == ["x", "y"]
    assert out["usage"].tool_calls == 2


async def test_attempts_count_against_the_steps_that_a_run_may_start() -> None:
    b = trying(*[finding("a", met=False)] * 2, on_failure="retry")
    out = await b.run(max_attempted_steps=1)
    assert len(attempts(out, "a")) == 1
    assert out["stop_reason"] == "attempted_steps"


async def test_the_stream_tells_of_the_second_attempt() -> None:
    b = trying(*[finding("a", met=False)], look(), finding("a", "s1"), on_failure="retry")
    ready: list[tuple[str, int]] = []
    async for event in b.graph.astream(
        {"objective": "x"}, config(), context=context(max_replans=0), stream_mode="custom"
    ):
        if event["type"] == "step_ready":
            ready.append((event["step_id"], event["attempt"]))
    assert ready == [("a", 1), ("a", 2), ("b", 1)]


async def test_an_optional_step_is_retried_too_and_then_holds_up_nobody() -> None:
    b = trying(*[finding("a", met=False)] * 2, on_failure="retry", optional=True)
    out = await b.run()
    assert len(attempts(out, "a")) == 2
    assert attempts(out, "b") == [(1, True, None)]
    assert out["status"] == "completed"


async def test_what_an_optional_skipped_step_held_up_is_announced_like_any_other() -> None:
    steps = (step("a"), step("o", "a", optional=True), step("c", "o"), step("d"))
    work = {"a": [finding("a", met=False)], **{i: [look(), finding(i, "s1")] for i in "cd"}}
    b = bench(*steps, work=work, tools=[Look().tool()])
    ready: list[str] = []
    async for event in b.graph.astream(
        {"objective": "x"}, config(), context=context(max_replans=0), stream_mode="custom"
    ):
        if event["type"] == "step_ready":
            ready.append(event["step_id"])
    assert sorted(ready) == sorted(set(ran(b))) == ["a", "c", "d"]

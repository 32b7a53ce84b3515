"""A person decides about gaps: once for each failure that asks for it, and where replans are spent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Look
from tests.reopening import answer, asked_of, briefs, ran
from tests.running import Bench, bench, of
from tests.scripted import finding, look, plan, step

TOOLS = [Look().tool()]
EXTEND = {"decision": "extend", "tool_calls": 4, "replans": 1, "seconds": 60}
DECISIONS: dict[str, dict[str, Any]] = {
    "accept": {"decision": "accept"},
    "stop": {"decision": "stop"},
    "hint": {"decision": "hint", "hint": "ask the archive"},
    "extend": EXTEND,
}


def failing(*more: Any, **fields: Any) -> Bench:
    """a passes, b never does; the replanner answers `more`."""
    work = {
        "a": [look(), finding("a", "s1")],
        **{i: [look(), finding(i, "s1", met=False)] for i in ("b", "b2")},
    }
    work["b3"] = [look(), finding("b3", "s1")]
    return bench(planner=[plan(step("a"), step("b", **fields)), *more], work=work, tools=TOOLS)


async def test_with_on_gaps_ask_a_person_is_asked_once_the_replans_are_spent() -> None:
    b = failing(plan(step("b2", replaces="b")))
    shown = asked_of(await b.run(on_gaps="ask", max_replans=1))
    assert (shown["kind"], shown["stop_reason"], shown["error"]) == ("escalate", "replan_limit", None)
    assert [gap["step_id"] for gap in shown["gaps"]] == ["b2"]
    assert shown["tool_calls"] == {"used": 3, "allowed": 32}
    assert shown["replans"] == {"used": 1, "allowed": 1}


async def test_without_it_nobody_is_asked() -> None:
    out = await failing().run(max_replans=0)
    assert out["stop_reason"] == "replan_limit"


async def test_accept_ends_with_a_partial_answer_and_its_gaps() -> None:
    b = failing()
    await b.run(on_gaps="ask", max_replans=0)
    out = await answer(b, DECISIONS["accept"], TOOLS)
    assert (out["status"], out["stop_reason"]) == ("partial", "replan_limit")
    assert "b is known" in out["final_answer"]
    assert len(b.planner.asked) == 1


async def test_stop_ends_as_cancelled_and_keeps_what_was_found() -> None:
    b = failing()
    await b.run(on_gaps="ask", max_replans=0)
    out = await answer(b, DECISIONS["stop"], TOOLS)
    assert (out["status"], out["stop_reason"]) == ("cancelled", "cancelled")
    assert of(out, "a").passed
    assert "The answer." in out["final_answer"]
    assert "b is known" in out["final_answer"]


async def test_a_hint_reaches_the_replanner_and_allows_one_more_repair() -> None:
    b = failing(plan(step("b3", replaces="b")))
    await b.run(on_gaps="ask", max_replans=0)
    out = await answer(b, DECISIONS["hint"], TOOLS)
    assert out["status"] == "completed"
    assert briefs(b, "replanner")[0]["feedback"] == ["ask the archive"]
    assert ran(b) == ["a", "b", "b3"]


async def test_more_budget_allows_what_was_added_and_no_more() -> None:
    b = failing(plan(step("b2", replaces="b")), plan(step("b3", replaces="b2")))
    await b.run(on_gaps="ask", max_replans=0)
    again = asked_of(await answer(b, EXTEND, TOOLS))
    assert again["replans"] == {"used": 1, "allowed": 1}
    assert again["tool_calls"]["allowed"] == 36
    assert (await b.values())["limits"].deadline_seconds == 1860
    out = await answer(b, {"decision": "extend", "replans": 1}, TOOLS)
    assert out["status"] == "completed"
    assert ran(b) == ["a", "b", "b2", "b3"]


@pytest.mark.parametrize(
    "wrong",
    [
        "accept",
        7,
        ["accept"],
        {"decision": "ok"},
        {"decision": ["accept"]},
        {"decision": "hint"},
        {"decision": "hint", "hint": "  "},
        {"decision": "hint", "hint": 7},
        {"decision": "extend"},
        {"decision": "extend", "tool_calls": 0},
        {"decision": "extend", "tool_calls": -4, "replans": 9},
        {"decision": "extend", "tool_calls": "10"},
        {"decision": "extend", "tool_calls": True},
        {"decision": "extend", "tool_calls": 0.5},
        {"decision": "extend", "tool_calls": float("inf")},
        {"decision": "extend", "tool_calls": 10**9},
        {"decision": "extend", "seconds": float("nan")},
        {"decision": "extend", "seconds": float("inf")},
        {"decision": "extend", "seconds": 1e9},
        {"decision": "extend", "replans": None},
    ],
    ids=repr,
)
async def test_any_other_answer_asks_again_with_the_reason_and_changes_nothing(wrong: Any) -> None:
    b = failing()
    before = asked_of(await b.run(on_gaps="ask", max_replans=0))
    again = asked_of(await answer(b, wrong, TOOLS))
    assert again["error"]
    assert again | {"error": None} == before
    assert len(b.planner.asked) == 1
    assert (await answer(b, DECISIONS["accept"], TOOLS))["status"] == "partial"


@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_step_that_asks_on_failure_is_put_to_a_person_before_any_repair(decision: str) -> None:
    b = failing(plan(step("b3", replaces="b")), on_failure="ask")
    shown = asked_of(await b.run())
    assert (shown["kind"], shown["stop_reason"]) == ("escalate", None)
    assert len(b.planner.asked) == 1
    out = await answer(b, DECISIONS[decision], TOOLS)
    status = {"accept": "partial", "stop": "cancelled"}.get(decision, "completed")
    assert out["status"] == status
    assert out["stop_reason"]


async def test_a_failure_is_asked_about_only_once() -> None:
    b = failing(plan(step("b2", replaces="x")), on_failure="ask")
    b.planner.answers[1] = plan(step("c", tools=[]))  # closes nothing
    b.worker.by_step["c"] = [finding("c")]
    b.planner.answers.append(plan())
    await b.run(max_replans=2)
    out = await answer(b, DECISIONS["hint"], TOOLS)
    assert "__interrupt__" not in out
    assert (out["status"], out["stop_reason"]) == ("partial", "no_progress")


async def test_another_step_that_asks_is_another_question() -> None:
    b = failing(
        plan(step("b2", replaces="b", on_failure="ask")), plan(step("b3", replaces="b2")), on_failure="ask"
    )
    await b.run(max_replans=2)
    second = asked_of(await answer(b, DECISIONS["hint"], TOOLS))
    assert [gap["step_id"] for gap in second["gaps"]] == ["b2"]
    assert (await answer(b, DECISIONS["hint"], TOOLS))["status"] == "completed"


async def test_an_optional_step_that_asks_is_not_asked_about() -> None:
    out = await failing(on_failure="ask", optional=True).run()
    assert out["status"] == "completed"


@pytest.mark.parametrize("build", ["nobody is there", "kept nowhere"])
async def test_where_nobody_can_answer_nobody_is_asked(build: str) -> None:
    b = failing(plan(step("b3", replaces="b")), on_failure="ask")
    if build == "nobody is there":
        out = await b.run(questions="assume")
    else:
        b.graph.checkpointer = None
        out = await b.run(on_gaps="ask")
    assert out["status"] == "completed"
    assert ran(b) == ["a", "b", "b3"]


async def test_steps_that_a_limit_kept_from_starting_run_after_more_budget_without_a_replan() -> None:
    b = bench(step("a"), step("b", "a"), work={i: [look(), finding(i, "s1")] for i in "ab"}, tools=TOOLS)
    shown = asked_of(await b.run(on_gaps="ask", total_tool_budget=1))
    assert shown["stop_reason"] == "tool_budget"
    out = await answer(b, {"decision": "extend", "tool_calls": 4}, TOOLS)
    assert out["status"] == "completed"
    assert (ran(b), len(b.planner.asked)) == (["a", "b"], 1)


async def test_more_of_what_was_not_short_ends_at_the_same_limit_and_asks_no_replanner() -> None:
    b = bench(step("a"), step("b", "a"), work={"a": [look(), finding("a", "s1")]}, tools=TOOLS)
    await b.run(on_gaps="ask", total_tool_budget=1)
    again = asked_of(await answer(b, {"decision": "extend", "seconds": 60}, TOOLS))
    assert again["stop_reason"] == "tool_budget"
    assert (ran(b), len(b.planner.asked)) == (["a"], 1)

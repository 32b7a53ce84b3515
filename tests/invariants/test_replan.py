"""Invariants 11 and 12: repairs keep what passed, and every run says how it ended."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from nodes.verdict import choose_max_replans
from tests.conftest import Look
from tests.running import Bench, bench, of
from tests.scripted import ScriptedModel, finding, look, plan, review, step


@pytest.mark.parametrize(
    ("steps", "budget", "replans"),
    [
        (1, 1, 0),
        (1, 2, 1),
        (6, 11, 0),
        (6, 12, 1),
        (7, 13, 0),
        (7, 14, 2),
        (20, 40, 2),
        (20, 39, 0),
        (3, 0, 0),
    ],
)
def test_invariant_11_replans_follow_from_plan_and_budget(steps: int, budget: int, replans: int) -> None:
    assert choose_max_replans(steps, budget) == replans


def repaired(*second: dict[str, Any], first: list[dict[str, Any]] | None = None, **build: Any) -> Bench:
    """a passes, b fails and c waits for it; then a plan of `second`."""
    steps = first or [step("a"), step("b"), step("c", "a", "b")]
    work = {
        "a": [look(), finding("a", "s1")],
        "b": [finding("b", met=False)],
        **{i: [look(), finding(i, "s1")] for i in ("b2", "b3", "c", "d")},
    }
    return bench(planner=[plan(*steps), plan(*second)], work=work, tools=[Look().tool()], **build)


async def test_invariant_11_passed_steps_are_kept_and_skipped_ones_follow_the_new_step() -> None:
    b = repaired(step("b2", replaces="b"))
    out = await b.run()
    assert out["status"] == "completed"
    ran = [asked.brief["step"]["id"] for asked in b.worker.asked]
    assert ran.count("a") == 2  # one look, one finding
    assert {s.id: s.depends_on for s in out["plan"].steps} == {"a": [], "b2": [], "c": ["a", "b2"]}
    assert of(out, "c").passed
    assert (out["plan"].version, out["plan"].parent_version, out["plan"].created_by) == (2, 1, "replanner")


async def test_invariant_11_every_version_is_kept() -> None:
    b = repaired(step("b2", replaces="b"))
    await b.run()
    plans = (await b.values())["plans"]
    assert [(p.version, [s.id for s in p.steps]) for p in plans] == [
        (1, ["a", "b", "c"]),
        (2, ["a", "b2", "c"]),
    ]
    assert plans[0].fingerprint != plans[1].fingerprint


async def test_invariant_11_a_step_replaced_by_two_waits_for_both() -> None:
    out = await repaired(step("b2", replaces="b"), step("b3", "a", replaces="b")).run()
    assert sorted(out["plan"].step("c").depends_on) == ["a", "b2", "b3"]
    assert of(out, "c").passed


async def test_invariant_11_a_skipped_step_that_is_itself_replaced_is_not_carried() -> None:
    b = repaired(step("b2", replaces="b"), step("d", "b2", replaces="c"))
    out = await b.run()
    assert [s.id for s in out["plan"].steps] == ["a", "b2", "d"]
    assert out["status"] == "completed"


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (step("a"), "'a'"),
        (step("b"), "'b'"),
        (step("c", replaces="b"), "'c'"),
        (step("x", replaces="a"), "'a'"),
        (step("x", replaces="ghost"), "'ghost'"),
        (step("x", "b"), "'b'"),
        (step("x", "ghost"), "'ghost'"),
        (step("x", task="DO  a"), "'a'"),
        (step("x", "x"), "'x'"),
        (step("x", tools=["ghost"]), "'ghost'"),
    ],
)
async def test_invariant_11_a_bad_repair_is_refused_with_the_reason(bad: dict[str, Any], named: str) -> None:
    b = repaired(bad)
    b.planner.answers.append(plan(step("b2", replaces="b")))
    out = await b.run()
    assert out["status"] == "completed"
    assert named in b.planner.asked[-1].messages[-1].text


async def test_invariant_11_the_replanner_sees_passed_steps_gaps_and_what_was_tried() -> None:
    b = repaired(step("b2", replaces="b"))
    await b.run()
    brief = b.planner.asked[1].brief
    assert [p["step_id"] for p in brief["passed"]] == ["a"]
    assert {t["step_id"] for t in brief["tried"]} >= {"b"}
    assert brief["taken_ids"] == ["a", "b", "c"]
    assert any(gap["step_id"] == "b" for gap in brief["gaps"])


async def test_invariant_11_gaps_that_no_step_can_close_are_not_replanned() -> None:
    gap = {"description": "needs a signed contract", "recoverable": False}
    work = {"a": [look(), finding("a", "s1")]}
    b = bench(step("a"), work=work, tools=[Look().tool()], reviewer=[review(False, gap)])
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("partial", "not_recoverable")
    assert len(b.planner.asked) == 1
    assert "needs a signed contract" in out["final_answer"]


async def test_invariant_11_ids_are_new_over_all_versions() -> None:
    fail = {i: [finding(i, met=False)] for i in ("b", "b2")} | {"b3": [look(), finding("b3", "s1")]}
    replies = [
        plan(step("b")),
        plan(step("b2", replaces="b")),
        plan(step("b")),
        plan(step("b3", replaces="b2")),
    ]
    b = bench(planner=replies, work=fail, tools=[Look().tool()])
    out = await b.run(max_replans=2)
    assert out["status"] == "completed"
    assert "used again: 'b'" in b.planner.asked[-1].messages[-1].text


async def test_invariant_12_the_list_of_gaps_is_appended_by_code() -> None:
    b = repaired(writer=AIMessage("All is well. Gaps: None."))
    b.planner.answers[1] = plan()
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("partial", "no_progress")
    for gap in out["review"].gaps:
        assert gap.description in out["final_answer"]
    assert out["final_answer"].index("Gaps: None.") < out["final_answer"].index("b is known")


async def test_invariant_12_the_gap_list_is_in_the_objectives_language() -> None:
    out = await bench(step("a"), work={"a": [finding("a", met=False)]}).run("查找定价", max_replans=0)
    assert "尚未解决" in out["final_answer"]


ENDINGS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "no valid plan": ({"planner": [AIMessage("no")] * 3}, {}, ("failed", "plan_invalid")),
    "planner refuses": (
        {"planner": [AIMessage("", additional_kwargs={"refusal": "I will not do that"})]},
        {},
        ("failed", "model_refused"),
    ),
    "planner is down": ({"planner": [ValueError("boom")]}, {}, ("failed", "model_unavailable")),
    "reviewer is down": ({"reviewer": [ValueError("boom")]}, {}, ("partial", "review_unavailable")),
    "writer is down": ({"writer": ValueError("boom")}, {}, ("completed", "approved")),
    "writer says nothing": ({"writer": AIMessage("  \n")}, {}, ("completed", "approved")),
    "no tool budget": ({}, {"total_tool_budget": 0}, ("failed", "not_recoverable")),
    "approved": ({}, {}, ("completed", "approved")),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_invariant_12_every_run_has_a_status_a_reason_and_an_answer(name: str) -> None:
    build, limits, expected = ENDINGS[name]
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()], **build)
    out = await b.run(**limits)
    assert out["status"] == expected[0]
    if name != "no tool budget":
        assert out["stop_reason"] == expected[1]
    assert out["stop_reason"]
    assert out["final_answer"].strip()
    assert out["messages"][-1].text == out["final_answer"]
    if expected[0] != "completed":
        assert "Open gaps" in out["final_answer"]


async def test_invariant_12_a_failed_writer_leaves_the_findings_with_their_sources() -> None:
    work = {"a": [look(), finding("a", "s1")]}
    out = await bench(step("a"), work=work, tools=[Look().tool()], writer=ValueError("boom")).run()
    assert "a found [1]" in out["final_answer"]
    assert "https://e.test/q" in out["final_answer"]


async def test_invariant_12_every_role_failing_at_once_still_ends_the_run() -> None:
    broken = ScriptedModel(always=RuntimeError("down"))
    b = bench(step("a"), worker=broken, reviewer=[RuntimeError("down")], writer=RuntimeError("down"))
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("failed", "review_unavailable")
    assert "Nothing could be established" in out["final_answer"]

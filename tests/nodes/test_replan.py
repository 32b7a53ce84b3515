"""Repairs: only of gaps, checked like any plan, all faults named at once, and nothing that waits is lost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from nodes.readiness import next_wave
from nodes.replan import next_version
from nodes.verdict import open_failures
from schemas.evidence import Evidence, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan, Step
from tests.conftest import Look
from tests.nodes.test_readiness import plans
from tests.reopening import answer, asked_of, briefs, ran, reopened
from tests.running import Bench, bench, of
from tests.scripted import Asked, finding, look, plan, review, step

START = datetime(2030, 1, 1, tzinfo=UTC)
TOOLS = [Look().tool()]


def repairing(
    *plans: AIMessage, fails: tuple[str, ...] = ("b",), reviewer: Any = None, **build: Any
) -> Bench:
    """Every step passes with one look, but those in `fails`, which look and then do not meet their criterion."""

    def work(asked: Any) -> AIMessage:
        step_id = asked.brief["step"]["id"]
        searched = any(isinstance(m, AIMessage) for m in asked.messages)
        if not searched and asked.tools != ["Finding"]:
            return look(f"c-{step_id}", query=step_id)
        return finding(
            step_id, "s1" if asked.tools != ["Finding"] or searched else "", met=step_id not in fails
        )

    b = bench(planner=plans, tools=TOOLS, reviewer=reviewer, **build)
    b.worker.always = work
    return b


ABC = plan(step("a"), step("b"), step("c", "a", "b"))


async def test_every_fault_of_a_repair_is_named_in_one_re_ask() -> None:
    bad = plan(
        step("a"),  # an id of an earlier version
        step("x", task="Do  A"),  # passed work
        step("y", "b", replaces="ghost"),  # needs a step that failed; replaces one that is unknown
        step("z", tools=["ghost-tool"], replaces="a"),  # replaces one that passed
    )
    b = repairing(ABC, bad, plan(step("b2", replaces="b")))
    out = await b.run()
    assert out["status"] == "completed"
    problems = b.planner.asked[2].messages[-1].text
    for words in (
        "used again: 'a'",
        "'x' repeats the passed step 'a'",
        "'y' depends on unknown steps: 'b'",
        "'y' replaces 'ghost'",
        "'z' replaces 'a'",
        "unknown tools: 'ghost-tool'",
        "(there are: b, c)",
    ):
        assert words in problems
    assert len(b.planner.asked) == 3


async def test_a_repair_whose_faults_stay_ends_the_run_and_nothing_of_it_runs() -> None:
    b = repairing(ABC, *[plan(step("x", replaces="a"))] * 3)
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("partial", "plan_invalid")
    assert ran(b) == ["a", "b"]
    assert "b is known" in out["final_answer"]


@pytest.mark.parametrize(
    "circle", [(step("x", "y", replaces="b"), step("y", "x")), (step("x", "a", "c", replaces="b"),)]
)
async def test_a_repair_that_would_wait_for_itself_is_refused(circle: Any) -> None:
    """c waits for b: a step that stands in for b and needs c would close a circle."""
    b = repairing(ABC, plan(*circle), plan(step("b2", replaces="b")))
    out = await b.run()
    assert out["status"] == "completed"
    assert "'x'" in b.planner.asked[2].messages[-1].text


@pytest.mark.parametrize("replaces", ["ghost", "b", "a"])
async def test_a_first_plan_has_nothing_to_replace(replaces: str) -> None:
    """A step that stood in for its own neighbour would hide that neighbour's failure."""
    b = repairing(plan(step("a", replaces=replaces), step("b")), plan(step("a"), step("b")))
    out = await b.run(max_replans=0)
    assert f"replaces '{replaces}'" in b.planner.asked[1].messages[-1].text
    assert out["status"] == "partial"


async def test_a_persons_edit_may_not_hide_a_failure_either() -> None:
    b = repairing(plan(step("a"), step("b")))
    await b.run(review_plan="first")
    edit = {"decision": "edit", "plan": {"steps": [step("a", replaces="b"), step("b")]}}
    assert "replaces 'b'" in asked_of(await answer(b, edit, TOOLS))["error"]


async def test_a_failure_cannot_be_planned_away_by_an_optional_stand_in() -> None:
    b = repairing(ABC, plan(step("b2", replaces="b", optional=True)), fails=("b", "b2"))
    out = await b.run()
    assert out["status"] == "partial"
    assert {gap.step_id for gap in out["review"].gaps} >= {"b"}


async def test_a_skipped_step_follows_through_two_repairs_of_its_dependencies() -> None:
    """a and b fail, c waits for both: v2 repairs a, v3 repairs b, and only then c can run."""
    b = repairing(ABC, plan(step("a2", replaces="a")), plan(step("b2", replaces="b")), fails=("a", "b"))
    out = await b.run(max_replans=2)
    assert [[s.id for s in p.steps] for p in (await b.values())["plans"]] == [
        ["a", "b", "c"],
        ["a2"],
        ["a2", "b2", "c"],
    ]
    assert out["plan"].step("c").depends_on == ["a2", "b2"]
    assert out["status"] == "completed"
    assert ran(b) == ["a", "b", "a2", "b2", "c"]


async def test_a_step_replaced_twice_passes_its_place_on() -> None:
    b = repairing(ABC, plan(step("b2", replaces="b")), plan(step("b3", replaces="b2")), fails=("b", "b2"))
    out = await b.run(max_replans=2)
    assert out["plan"].step("c").depends_on == ["a", "b3"]
    assert (out["status"], ran(b)) == ("completed", ["a", "b", "b2", "b3", "c"])


async def test_a_repaired_step_sees_its_renamed_dependencies_and_nothing_else() -> None:
    b = repairing(plan(step("a"), step("b"), step("u"), step("c", "a", "b")), plan(step("b2", replaces="b")))
    await b.run()
    brief = b.worker.asked[-1].brief
    assert brief["step"]["id"] == "c"
    assert [d["step_id"] for d in brief["dependencies"]] == ["a", "b2"]
    assert "do u" not in b.worker.asked[-1].text


@pytest.mark.parametrize("fails", [("o", "b"), ("b",)])
async def test_a_step_that_went_on_without_an_optional_one_is_kept(fails: tuple[str, ...]) -> None:
    first = plan(step("o", optional=True), step("a", "o"), step("b"), step("c", "o", "b"))
    b = repairing(first, plan(step("b2", replaces="b")), fails=fails)
    out = await b.run()
    assert out["status"] == "completed"
    kept = ["o"] if "o" not in fails else []
    assert {s.id: s.depends_on for s in out["plan"].steps if s.id != "o"} == {
        "a": kept,
        "b2": [],
        "c": [*kept, "b2"],
    }
    assert ran(b).count("o") == ran(b).count("a") == 1


async def test_a_skipped_optional_step_runs_with_the_repair_it_waited_for() -> None:
    first = plan(step("b"), step("o", "b", optional=True), step("c", "b", "o"))
    b = repairing(first, plan(step("b2", replaces="b")))
    out = await b.run()
    assert ran(b) == ["b", "b2", "o", "c"]
    assert out["plan"].step("c").depends_on == ["b2", "o"]


async def test_an_optional_step_that_stays_skipped_holds_up_nobody() -> None:
    first = plan(step("a"), step("b"), step("o", "a", optional=True), step("c", "o", "b"))
    b = repairing(first, plan(step("b2", replaces="b")), plan(), fails=("a", "b"))
    out = await b.run(max_replans=2)
    assert of(out, "c").passed
    assert out["stop_reason"] == "no_progress"


async def test_a_version_is_never_larger_than_the_run_allows() -> None:
    first = plan(step("a"), step("b"), step("c", "a", "b"))
    big = plan(step("b2", replaces="b"), step("b3"), step("b4"))
    b = repairing(first, big, plan(step("b2", replaces="b")))
    out = await b.run(max_plan_steps=3)
    assert "3 new steps beside 2 kept ones: at most 3" in b.planner.asked[2].messages[-1].text
    assert out["status"] == "completed"
    assert max(len(p.steps) for p in (await b.values())["plans"]) == 3


async def test_a_full_plan_that_has_passed_can_still_be_added_to() -> None:
    """What passed and is not needed gives way in the new version; its evidence counts as before."""
    ids = [f"s{n}" for n in range(20)]
    gap = {"description": "the second year is missing", "recoverable": True}
    first = plan(*(step(i, tool_budget=1) for i in ids))
    b = repairing(first, plan(step("more", "s0")), reviewer=[review(False, gap), review()])
    out = await b.run(total_tool_budget=100)
    assert out["status"] == "completed"
    assert len(out["plan"].steps) == 20
    assert out["plan"].step("more").depends_on == ["s0"]
    seen = [s["id"] for s in b.reviewer.asked[-1].brief["steps"]]
    assert sorted(seen) == sorted([*ids, "more"])
    assert len(ran(b)) == 21


async def test_without_a_tool_run_left_only_reasoning_may_be_planned() -> None:
    wants = plan(step("b2", replaces="b"), step("c2", tools=[]))
    b = bench(
        planner=[plan(step("b", tools=[])), wants, plan(step("b3", tools=[], replaces="b"))],
        work={"b": [finding("b", met=False)], "b3": [finding("b3")]},
        tools=TOOLS,
    )
    out = await b.run(total_tool_budget=0, max_replans=1)
    assert briefs(b, "replanner")[0]["limits"]["tool_budget"] == 0
    assert "no tool runs are left" in b.planner.asked[2].messages[-1].text
    assert "'b2'" in b.planner.asked[2].messages[-1].text
    assert out["status"] == "completed"


async def test_the_replanner_is_told_what_is_left_and_gets_no_texts() -> None:
    secret = "the whole text of a source that nobody needs to plan with"
    look_up = Look()
    look_up.before = lambda query: [{"source_id": "s1", "text": secret, "url": "https://e.test/x"}]
    work = {
        "a": [look(), finding("a", "s1", summary="a long summary. " * 100)],
        "b": [
            look("1", "first way"),
            look("2", "second way"),
            finding("b", "s1", met=False, missing=["the price"]),
        ],
        "b2": [look(), finding("b2", "s1")],
    }
    b = bench(
        planner=[plan(step("a"), step("b")), plan(step("b2", replaces="b"))],
        work=work,
        tools=[look_up.tool()],
    )
    await b.run(total_tool_budget=9, max_plan_steps=5)
    asked = b.planner.asked[1]
    assert asked.brief["limits"] == {"max_steps": 4, "tool_budget": 6}
    assert secret not in asked.text
    (passed,) = asked.brief["passed"]
    assert (passed["step_id"], passed["source_ids"]) == ("a", ["s1"])
    assert len(passed["summary"]) <= 400
    (tried,) = asked.brief["tried"]
    assert (tried["step_id"], tried["missing"], tried["error_type"]) == ("b", ["the price"], "criteria_unmet")
    assert [q for q in tried["queries"] if "first way" in q or "second way" in q] == tried["queries"]


async def test_the_second_replanner_still_sees_what_the_first_plan_tried() -> None:
    b = repairing(ABC, plan(step("b2", replaces="b")), plan(step("b3", replaces="b2")), fails=("b", "b2"))
    await b.run(max_replans=2)
    assert [t["step_id"] for t in briefs(b, "replanner")[1]["tried"] if t["queries"]] == ["b", "b2"]


async def test_an_empty_repair_is_no_progress() -> None:
    out = await repairing(ABC, plan()).run()
    assert (out["status"], out["stop_reason"]) == ("partial", "no_progress")


async def test_the_same_gaps_after_a_repair_that_passed_nothing_are_no_progress() -> None:
    same = {"task": "find the price", "success_criteria": ["the price is known"]}
    replies = [
        plan(step("b", **same)),
        plan(step("b2", replaces="b", **same)),
        plan(step("b3", replaces="b2", **same)),
    ]
    b = repairing(*replies, fails=("b", "b2", "b3"))
    out = await b.run(max_replans=3)
    assert out["stop_reason"] == "no_progress"
    assert len(briefs(b, "replanner")) == 1


async def test_other_gaps_are_progress() -> None:
    replies = [plan(step("b")), plan(step("b2", replaces="b")), plan(step("b3", replaces="b2"))]
    out = await repairing(*replies, fails=("b", "b2")).run(max_replans=3)
    assert out["status"] == "completed"


@pytest.mark.parametrize("replans", [0, 1, 3])
async def test_c32_a_reviewer_that_never_approves_gets_exactly_the_replans_allowed(replans: int) -> None:
    gap = {"description": "something is missing", "recoverable": True}
    more = [plan(step(f"m{n}", task=f"more {n}")) for n in range(5)]
    b = repairing(plan(step("a")), *more, fails=())
    b.reviewer.answers, b.reviewer.always = [], review(False, gap)
    out = await b.run(max_replans=replans)
    assert len(briefs(b, "replanner")) == replans
    assert (out["status"], out["stop_reason"]) == ("partial", "replan_limit")
    assert out["final_answer"].count("something is missing") == 1


async def test_c32_a_stop_while_the_replanner_answers_costs_no_replan() -> None:
    b = repairing(plan(step("b")), plan(step("b2", replaces="b")))
    reached = asyncio.Event()

    def stop(asked: Any) -> AIMessage:
        reached.set()
        run.cancel()
        return plan(step("lost", replaces="b"))

    b.planner.answers.insert(1, stop)
    run = asyncio.ensure_future(b.run(max_replans=1))
    with pytest.raises(asyncio.CancelledError):
        await run
    assert reached.is_set()
    out = await reopened(b, TOOLS).go_on()
    assert out["status"] == "completed"
    values = await b.values()
    assert (values["replan_count"], [p.version for p in values["plans"]]) == (1, [1, 2])


class Denied(Exception):
    status_code = 403


@pytest.mark.parametrize(
    ("failure", "error_type"),
    [(Denied("no key"), "auth"), (AIMessage("", additional_kwargs={"refusal": "no"}), "refused")],
)
async def test_what_no_other_step_can_close_is_not_planned_again(failure: Any, error_type: str) -> None:
    b = bench(step("a"), step("b"), work={"a": [look(), finding("a", "s1")], "b": [failure]}, tools=TOOLS)
    out = await b.run(max_replans=3)
    assert of(out, "b").error_type == error_type
    assert (out["status"], out["stop_reason"]) == ("partial", "not_recoverable")
    assert briefs(b, "replanner") == []


async def test_what_the_deadline_cut_is_not_planned_again() -> None:
    seconds = [0.0]
    tool = Look()

    async def hang(query: str) -> None:
        seconds[0] += 100
        await asyncio.Event().wait()

    tool.before = hang
    b = bench(step("a"), work={"a": [look()]}, tools=[tool.tool()], parts={"clock": lambda: seconds[0]})
    out = await b.run(deadline_seconds=0.5, max_replans=3)
    assert of(out, "a").error_type == "deadline"
    assert out["stop_reason"] in ("deadline", "not_recoverable")
    assert briefs(b, "replanner") == []


async def test_recoverable_gaps_beside_others_are_repaired() -> None:
    work = {"a": [Denied("no key")], "b": [finding("b", met=False)], "b2": [look(), finding("b2", "s1")]}
    b = bench(planner=[plan(step("a"), step("b")), plan(step("b2", replaces="b"))], work=work, tools=TOOLS)
    out = await b.run(max_replans=3)
    assert of(out, "b2").passed
    assert out["stop_reason"] == "not_recoverable"
    assert [gap.step_id for gap in out["review"].gaps] == ["a"]


async def test_each_version_says_who_made_it_from_what_and_why() -> None:
    b = repairing(plan(step("a")), plan(step("a"), step("b")), plan(step("b2", replaces="b")))
    await b.run(review_plan="always")
    await answer(b, {"decision": "revise", "feedback": "also look for b"}, TOOLS)
    again = asked_of(await answer(b, {"decision": "approve"}, TOOLS))
    edited = again["plan"] | {"steps": [*again["plan"]["steps"], step("e", "b2")]}
    out = await answer(b, {"decision": "edit", "plan": edited}, TOOLS)
    assert out["status"] == "completed"
    rows = [(p.version, p.parent_version, p.created_by, p.reason) for p in (await b.values())["plans"]]
    assert rows == [
        (1, None, "planner", ""),
        (2, 1, "planner", "also look for b"),
        (3, 2, "replanner", "gaps in: b"),
        (4, 3, "human", "edited by a person"),
    ]


async def test_a_repair_that_a_person_turns_down_is_planned_again_from_what_has_run() -> None:
    b = repairing(ABC, plan(step("b2", replaces="b")), plan(step("b3", replaces="b")))
    await b.run(review_plan="always")
    await answer(b, {"decision": "approve"}, TOOLS)
    shown = asked_of(await answer(b, {"decision": "revise", "feedback": "another way"}, TOOLS))
    assert briefs(b, "replanner")[1]["feedback"] == ["another way"]
    assert {s["id"]: s["depends_on"] for s in shown["plan"]["steps"]} == {"a": [], "b3": [], "c": ["a", "b3"]}
    out = await answer(b, {"decision": "approve"}, TOOLS)
    assert (out["status"], ran(b)) == ("completed", ["a", "b", "b3", "c"])


@pytest.mark.parametrize(
    ("steps", "budget", "allowed"), [(1, 32, 1), (6, 12, 1), (6, 11, 0), (7, 14, 2), (2, 3, 0)]
)
async def test_how_often_a_plan_may_be_repaired_follows_from_the_plan_that_runs(
    steps: int, budget: int, allowed: int
) -> None:
    b = repairing(plan(*(step(f"s{n}", tool_budget=1) for n in range(steps))), fails=())
    await b.run(total_tool_budget=budget)
    assert (await b.values())["max_replans"] == allowed


async def test_a_persons_edit_is_the_plan_that_counts() -> None:
    b = repairing(plan(step("a")), fails=())
    await b.run(review_plan="first", total_tool_budget=14)
    assert (await b.values())["max_replans"] == 1
    await answer(
        b, {"decision": "edit", "plan": {"steps": [step(f"s{n}", tool_budget=1) for n in range(7)]}}, TOOLS
    )
    assert (await b.values())["max_replans"] == 2


async def request_for_z(others: int) -> Asked:
    """Return the first request for step z, which needs a, in a plan with other steps beside."""
    unrelated = [step(f"u{n}") for n in range(others)]
    b = repairing(plan(step("a"), *unrelated, step("z", "a")), fails=())
    await b.run(total_tool_budget=200)
    return next(asked for asked in b.worker.asked if asked.brief["step"]["id"] == "z")


async def test_a_steps_request_does_not_grow_with_steps_it_has_nothing_to_do_with() -> None:
    small, large = await request_for_z(0), await request_for_z(18)
    assert [d["step_id"] for d in large.brief["dependencies"]] == ["a"]
    assert small.text == large.text


def outcome(
    step_id: str, version: int, attempt: int, *, passed: bool, skipped: str | None = None
) -> Evidence:
    end = START + timedelta(seconds=0 if skipped else 1)
    return Evidence(
        step_id=step_id,
        plan_version=version,
        attempt=attempt,
        passed=passed,
        skipped_because=skipped,
        error_type=None if passed else ("dependency_failed" if skipped else "criteria_unmet"),
        started_at=START,
        finished_at=end,
    )


def play(state: Any, fails: set[str]) -> None:
    """Run the plan in force to its end, with the steps in `fails` failing."""
    limits = RunLimits(total_tool_budget=1000, max_attempted_steps=400)
    while True:
        wave = next_wave(state["plan"], state["evidence"], Usage(), limits)
        if not wave.grants and not wave.skipped:
            return
        version = state["plan"].version
        for step_id, root in wave.skipped.items():
            state["evidence"].append(
                outcome(step_id, version, len(state["evidence"]), passed=False, skipped=root)
            )
        for grant in wave.grants:
            passed = grant.step.id not in fails
            state["ran"].append(grant.step.id)
            state["evidence"].append(outcome(grant.step.id, version, len(state["evidence"]), passed=passed))


@settings(max_examples=200, deadline=None)
@given(plans(), st.data())
def test_repaired_one_after_the_other_any_plan_completes_and_nothing_that_passed_runs_again(
    first: Plan, data: st.DataObject
) -> None:
    fails = {s.id for s in first.steps if data.draw(st.booleans())}
    state: Any = {"plan": first, "plans": [first], "evidence": [], "limits": RunLimits(), "ran": []}
    play(state, fails)
    for number in range(40):
        failed = [s for s, e in open_failures(state["plans"], state["evidence"]) if not e.skipped_because]
        if not failed:
            break
        broken = data.draw(st.sampled_from(failed))
        new = Step(id=f"r{number}", task=f"r{number}", success_criteria=["ok"], replaces=broken.id)
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            fails.add(new.id)
        version = next_version([new], state["plan"], state)  # raises where it is no valid plan
        state["plan"] = version
        state["plans"].append(version)
        play(state, fails)
    assert open_failures(state["plans"], state["evidence"]) == []
    passed = [e.step_id for e in state["evidence"] if e.passed]
    assert len(passed) == len(set(passed))
    last = {e.step_id: e for e in state["evidence"]}
    required = {s.id for s in first.steps if not s.optional} - fails
    assert required <= {i for i, e in last.items() if e.passed}

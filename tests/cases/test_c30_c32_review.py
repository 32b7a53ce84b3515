"""C30, C32: the reviewer's word against the facts, and how often a run is repaired."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.conftest import Look
from tests.running import Bench, bench
from tests.scripted import ScriptedModel, finding, look, plan, review, step

GAP = {"description": "no price for 2024", "step_id": "a", "recoverable": True}


def passing(*reviews: Any, **build: Any) -> Bench:
    work = {"a": [look(), finding("a", "s1")], "a2": [look(), finding("a2", "s1")]}
    build.setdefault("planner", [plan(step("a")), plan(step("a2"))])
    return bench(work=work, tools=[Look().tool()], reviewer=reviews, **build)


async def test_c30_gaps_veto_an_approval() -> None:
    out = await passing(review(True, GAP)).run(max_replans=0)
    assert not out["review"].approved
    assert (out["status"], out["stop_reason"]) == ("partial", "replan_limit")
    assert "no price for 2024" in out["final_answer"]


async def test_c30_gaps_named_by_the_reviewer_are_repaired() -> None:
    b = passing(review(True, GAP), review())
    out = await b.run()
    assert out["status"] == "completed"
    assert b.planner.asked[1].brief["gaps"] == [GAP]


@pytest.mark.parametrize("failure", ["failed", "skipped"])
async def test_c30_a_failed_or_skipped_step_vetoes_an_approval(failure: str) -> None:
    steps = [step("a"), step("b")] + ([step("c", "b")] if failure == "skipped" else [])
    work = {"a": [look(), finding("a", "s1")], "b": [finding("b", met=False)]}
    b = bench(*steps, work=work, tools=[Look().tool()], reviewer=[review()])
    out = await b.run(max_replans=0)
    assert not out["review"].approved
    assert {gap.step_id for gap in out["review"].gaps} == {s["id"] for s in steps[1:]}
    assert out["status"] == "partial"


async def test_c30_no_approval_and_no_gaps_derives_them_from_the_evidence_or_stops() -> None:
    out = await passing(review(False)).run()
    assert out["stop_reason"] == "not_recoverable"
    assert out["status"] == "partial"
    assert out["review"].gaps
    work = {"a": [finding("a", met=False)], "a2": [look(), finding("a2", "s1")]}
    replies = [plan(step("a")), plan(step("a2", replaces="a"))]
    b = bench(planner=replies, work=work, tools=[Look().tool()], reviewer=[review(False), review()])
    assert (await b.run())["status"] == "completed"
    assert b.planner.asked[1].brief["gaps"][0]["step_id"] == "a"


async def test_c30_a_gap_for_a_step_that_does_not_exist_is_kept_without_it() -> None:
    out = await passing(review(False, {**GAP, "step_id": "ghost"})).run(max_replans=0)
    assert [(g.description, g.step_id) for g in out["review"].gaps] == [("no price for 2024", None)]


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage('{"approved": "yes", "gaps": []}'),
        AIMessage('{"approved": 1}'),
        AIMessage('{"gaps": []}'),
        AIMessage('{"approved": true, "gaps": [{"description": ""}]}'),
        AIMessage("approved!"),
        AIMessage("[]"),
    ],
)
async def test_c30_a_review_that_never_fits_approves_nothing(answer: AIMessage) -> None:
    b = passing(answer, answer, answer)
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("partial", "review_unavailable")
    assert len(b.reviewer.asked) == 3


class Endless:
    """A replanner that always has something else to try, and a worker that always fails."""

    def __init__(self) -> None:
        self.version = 0
        worker = ScriptedModel(always=lambda asked: finding(asked.brief["step"]["id"], met=False))
        self.bench = bench(worker=worker, planner=[], tools=[Look().tool()], reviewer=[])
        self.bench.planner.always = self.next_plan
        self.bench.reviewer.always = review(False, {"description": "still missing"})

    def next_plan(self, asked: Any) -> AIMessage:
        self.version += 1
        return plan(step(f"s{self.version}", task=f"try {self.version}"))

    def replans_asked(self) -> int:
        return sum(asked.brief["role"] == "replanner" for asked in self.bench.planner.asked)


@pytest.mark.parametrize("replans", [0, 1, 3])
async def test_c32_the_replanner_is_called_exactly_as_often_as_allowed(replans: int) -> None:
    endless = Endless()
    out = await endless.bench.run(max_replans=replans)
    assert endless.replans_asked() == replans
    assert (out["status"], out["stop_reason"]) == ("failed", "replan_limit")
    assert "still missing" in out["final_answer"]
    assert sum(isinstance(m, AIMessage) for m in out["messages"]) == 1


@pytest.mark.parametrize("replans", [1, 3])
async def test_c32_a_stop_in_between_neither_adds_nor_loses_a_replan(replans: int) -> None:
    endless = Endless()
    reached = asyncio.Event()
    worker = endless.bench.worker

    def stop_once(asked: Any) -> AIMessage:
        if asked.brief["step"]["id"] == "s2" and not reached.is_set():
            reached.set()
            run.cancel()
        return finding(asked.brief["step"]["id"], met=False)

    worker.always = stop_once
    run = asyncio.ensure_future(endless.bench.run(max_replans=replans))
    with pytest.raises(asyncio.CancelledError):
        await run
    out = await endless.bench.go_on()
    assert endless.replans_asked() == replans
    assert out["stop_reason"] == "replan_limit"
    assert len((await endless.bench.values())["plans"]) == replans + 1


async def test_c32_an_empty_replan_ends_the_run() -> None:
    b = passing(review(False, GAP), planner=[plan(step("a")), plan()])
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("partial", "no_progress")
    assert len(b.reviewer.asked) == 1


async def test_c32_a_replanner_without_a_usable_answer_ends_with_what_is_there() -> None:
    b = passing(review(False, GAP), planner=[plan(step("a")), *[AIMessage("no idea")] * 3])
    out = await b.run()
    assert (out["status"], out["stop_reason"]) == ("partial", "plan_invalid")
    assert "no price for 2024" in out["final_answer"]

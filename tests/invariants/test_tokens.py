"""max_tokens binds over the whole run: once they are spent no role is asked, but a step that is at work concludes."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.conftest import Look
from tests.running import Bench, bench, of
from tests.scripted import Asked, ScriptedModel, call, calls, finding, look, plan, review, step


def costs(message: AIMessage, tokens: int) -> AIMessage:
    metadata = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return message.model_copy(update={"usage_metadata": metadata})


def spending(first: int = 0, found: int = 0, **build: Any) -> Bench:
    work = {"a": [look(), costs(finding("a", "s1"), found)], "b": [look(), finding("b", "s1")]}
    planner = [costs(plan(step("a"), step("b", "a")), first)]
    return bench(planner=planner, work=work, tools=[Look().tool()], **build)


def asked(b: Bench) -> list[int]:
    return [len(role.asked) for role in (b.planner, b.worker, b.reviewer, b.writer)]


async def test_what_the_planner_spends_starts_no_step_and_asks_nobody_else() -> None:
    b = spending(first=100)
    out = await b.run(max_tokens=100)
    assert asked(b) == [1, 0, 0, 0]
    assert (out["status"], out["stop_reason"]) == ("failed", "not_recoverable")
    assert out["final_answer"]


async def test_what_a_step_spends_ends_the_run_with_an_answer_made_by_code() -> None:
    b = spending(found=100)
    out = await b.run(max_tokens=100)
    assert asked(b) == [1, 2, 0, 0]
    assert (out["status"], out["stop_reason"]) == ("partial", "not_recoverable")
    assert of(out, "a").passed
    assert "a found [1]" in out["final_answer"]
    assert "max_tokens" in out["final_answer"]


async def test_a_run_whose_last_step_spends_them_is_not_reviewed_and_says_so() -> None:
    b = bench(
        step("a"), work={"a": [look(), costs(finding("a", "s1"), 100)]}, tools=[Look().tool()], reviewer=[]
    )
    out = await b.run(max_tokens=100)
    assert asked(b) == [1, 2, 0, 0]
    assert (out["status"], out["stop_reason"]) == ("partial", "not_recoverable")
    assert "not reviewed: the run's max_tokens are spent" in out["final_answer"]


async def test_a_wrong_plan_is_not_asked_for_again() -> None:
    b = bench(planner=[costs(plan(step("a", "ghost")), 100)])
    out = await b.run(max_tokens=100)
    assert asked(b) == [1, 0, 0, 0]
    assert (out["status"], out["stop_reason"]) == ("failed", "plan_invalid")
    assert "'ghost'" in out["final_answer"]


async def test_a_reviewer_that_spends_them_leaves_no_writer_and_no_replan() -> None:
    gap = {"description": "more", "step_id": None, "recoverable": True}
    b = spending(reviewer=[costs(review(False, gap), 100)])
    out = await b.run(max_tokens=100)
    assert asked(b) == [1, 4, 1, 0]
    assert (out["status"], out["stop_reason"]) == ("partial", "not_recoverable")


@pytest.mark.parametrize("questions", ["ask", "assume"])
async def test_questions_that_spend_them_are_not_planned_again_unasked(questions: str) -> None:
    asks = costs(calls(call("Plan", "p1", steps=[], questions=["Which year?"])), 100)
    b = bench(planner=[asks])
    out = await b.run(max_tokens=100, questions=questions)
    assert asked(b)[0] == 1
    if questions == "assume":
        assert (out["status"], out["stop_reason"]) == ("failed", "not_recoverable")


async def test_steps_at_work_together_share_what_is_left() -> None:
    ids = [f"s{n}" for n in range(4)]

    def works(asked: Asked) -> AIMessage:
        done, step_id = len(asked.messages), asked.brief["step"]["id"]
        message = look(f"c{done}", f"{step_id} {done}") if "look" in asked.tools else finding(step_id, "s1")
        return costs(message, 40)

    b = bench(*map(step, ids), worker=ScriptedModel(always=works), tools=[Look().tool()])
    out = await b.run(max_tokens=100)
    # A request that is under way has not told its cost yet, and each step may conclude: one of each beyond the bound.
    assert 100 <= out["usage"].tokens < 100 + 2 * len(ids) * 40

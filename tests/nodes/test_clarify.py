"""The planner's questions: put to a person, at most twice, and never lost where nobody answers."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from nodes.clarify import read_answers
from tests.conftest import Look
from tests.reopening import answer, asked_of, briefs, questions, reopened
from tests.running import Bench, bench
from tests.scripted import finding, look, plan, step

YEAR, PLACE = "Which year?", "哪个地区？"


def asking(*replies: Any, **build: Any) -> Bench:
    """The planner answers `replies`; then a plan of one step that passes."""
    work = {"a": [look(), finding("a", "s1")]}
    return bench(planner=[*replies, plan(step("a"))], work=work, tools=[Look().tool()], **build)


async def test_answers_reach_the_next_planning_call_and_nothing_runs_before() -> None:
    b = asking(questions(YEAR, PLACE))
    shown = asked_of(await b.run("compare the vendors"))
    assert (shown["kind"], shown["questions"], shown["error"]) == ("clarify", [YEAR, PLACE], None)
    assert b.worker.asked == []
    out = await answer(b, {"answers": {YEAR: "2024", PLACE: "华东"}}, [Look().tool()])
    assert out["status"] == "completed"
    assert "answers" not in briefs(b, "planner")[0]
    assert briefs(b, "planner")[1]["answers"] == [
        {"question": YEAR, "answer": "2024"},
        {"question": PLACE, "answer": "华东"},
    ]
    assert "No answer" not in out["final_answer"]


async def test_a_pause_for_questions_outlives_its_process(tmp_path: Any) -> None:
    path = str(tmp_path / "c.sqlite")
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        b = asking(questions(YEAR), checkpointer=saver)
        await b.run("compare the vendors")
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        b.graph.checkpointer = saver
        out = await answer(b, {"answers": {YEAR: "2024"}}, [Look().tool()])
    assert out["status"] == "completed"
    assert briefs(b, "planner")[1]["answers"] == [{"question": YEAR, "answer": "2024"}]


async def test_there_are_two_rounds_of_questions_at_most() -> None:
    b = asking(questions(YEAR), questions(PLACE), questions("And who?"))
    await b.run("compare the vendors")
    second = asked_of(await answer(b, {"answers": {YEAR: "2024"}}))
    assert second["questions"] == [PLACE]
    out = await answer(b, {"answers": {PLACE: "华东"}}, [Look().tool()])
    assert "__interrupt__" not in out
    assert out["status"] == "completed"
    assert "no more can be asked" in b.planner.asked[-1].messages[-1].text
    assert len(b.planner.asked) == 4


async def test_a_planner_that_only_ever_asks_ends_the_run_as_a_plan_that_is_not_valid() -> None:
    b = bench(planner=[questions(YEAR)] * 5)
    await b.run("compare the vendors")
    await answer(b, {"answers": {YEAR: "2024"}})
    out = await answer(b, {"answers": {YEAR: "2024"}})
    assert (out["status"], out["stop_reason"]) == ("failed", "plan_invalid")
    assert len(b.planner.asked) == 5  # two rounds, then one call and its two re-asks


WRONG = [
    None,
    "2024",
    7,
    [],
    {"answer": {YEAR: "2024"}},
    {"answers": "2024"},
    {"answers": {"Which month?": "May"}},
]
WRONG += [
    {"answers": {YEAR: {"deep": 1}}},
    {"answers": [["2024"]]},
    {"answers": ["2024", "2025"]},
    {"decision": "approve"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
async def test_a_wrong_resume_value_asks_again_with_the_reason_and_runs_nothing(wrong: Any) -> None:
    b = asking(questions(YEAR))
    await b.run("compare the vendors")
    again = asked_of(await answer(b, wrong if wrong is not None else {"answers": None}))
    assert again["questions"] == [YEAR]
    assert again["error"]
    assert (len(b.planner.asked), b.worker.asked) == (1, [])
    out = await answer(b, {"answers": {YEAR: "2024"}}, [Look().tool()])
    assert out["status"] == "completed"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({YEAR: "2024", PLACE: "east"}, ["2024", "east"]),
        ({f" {YEAR} ": "2024", "2": "east"}, ["2024", "east"]),
        ({"1": 2024, "2": 1.5}, ["2024", "1.5"]),
        ({1: "2024"}, ["2024", ""]),
        (["2024", "east"], ["2024", "east"]),
        (["2024"], ["2024", ""]),
        ({}, ["", ""]),
        ({YEAR: None, PLACE: "  "}, ["", ""]),
        ({YEAR: 0, PLACE: False}, ["0", "False"]),
        ({YEAR: "{x} \x00 \ud800"}, ["{x}  \ufffd", ""]),
    ],
)
def test_answers_are_taken_by_question_by_number_and_in_order(given: Any, taken: list[str]) -> None:
    assert read_answers({"answers": given}, [YEAR, PLACE]) == {YEAR: taken[0], PLACE: taken[1]}


def test_a_question_asked_twice_keeps_its_answer() -> None:
    assert read_answers({"answers": {YEAR: "2024"}}, [YEAR, YEAR]) == {YEAR: "2024"}


async def test_a_question_left_open_is_an_assumption_in_the_answer() -> None:
    b = asking(questions(YEAR, PLACE))
    await b.run("compare the vendors")
    out = await answer(b, {"answers": {YEAR: "2024"}}, [Look().tool()])
    assert f"No answer was given to: {PLACE}" in out["final_answer"]
    assert f"given to: {YEAR}" not in out["final_answer"]


@pytest.mark.parametrize(
    ("objective", "words"),
    [("compare the vendors", "No answer was given to"), ("比较各供应商", "没有得到回答")],
)
async def test_a_run_that_may_not_ask_goes_on_with_assumptions_in_the_answer(
    objective: str, words: str
) -> None:
    b = asking(questions(YEAR))
    b.planner.answers[1] = plan(step("a"), assumptions=["the year is 2024"])
    out = await b.run(objective, questions="assume")
    assert out["status"] == "completed"
    assert briefs(b, "planner")[1]["answers"] == [{"question": YEAR, "answer": ""}]
    assert words in out["final_answer"]
    assert YEAR in out["final_answer"]
    assert "the year is 2024" in out["final_answer"]
    assert out["usage"].model_calls == 6  # two plans, two of the worker, a review, an answer


@pytest.mark.parametrize("cfg", [{}, {"configurable": {"thread_id": "t1"}}], ids=["no thread", "a thread id"])
async def test_a_run_that_is_not_kept_anywhere_cannot_wait_and_goes_on_with_assumptions(cfg: Any) -> None:
    b = asking(questions(YEAR), checkpointer=None)
    out = await b.graph.ainvoke({"objective": "compare the vendors"}, cfg)
    assert out["status"] == "completed"
    assert YEAR in out["final_answer"]


async def test_a_planner_that_gives_steps_and_questions_is_not_held_up_and_the_questions_are_not_lost() -> (
    None
):
    b = bench(
        planner=[plan(step("a"), questions=[YEAR])],
        work={"a": [look(), finding("a", "s1")]},
        tools=[Look().tool()],
    )
    out = await b.run("compare the vendors")
    assert out["status"] == "completed"
    assert out["plan"].questions == []
    assert f"No answer was given to: {YEAR}" in out["final_answer"]


@pytest.mark.parametrize("blank", [[""], ["  ", "\n"]])
async def test_blank_questions_are_no_questions(blank: list[str]) -> None:
    b = asking(questions(*blank))
    out = await b.run("compare the vendors")
    assert "__interrupt__" not in out
    assert "neither steps nor questions" in b.planner.asked[1].messages[-1].text


async def test_a_new_objective_on_the_thread_starts_without_the_old_questions_and_answers() -> None:
    b = asking(questions(YEAR))
    await b.run("compare the vendors")
    out = await b.run("another task")
    assert out["status"] == "completed"
    assert "answers" not in briefs(b, "planner")[-1]
    assert YEAR not in out["final_answer"]


async def test_waiting_for_an_answer_takes_nothing_off_the_deadline() -> None:
    seconds = [0.0]
    b = asking(questions(YEAR), parts={"clock": lambda: seconds[0]})
    await b.run("compare the vendors", deadline_seconds=60)
    seconds[0] += 100_000
    again = reopened(b, [Look().tool()], parts={"clock": lambda: seconds[0]})
    out = await again.go_on(Command(resume={"answers": {YEAR: "2024"}}))
    assert out["status"] == "completed"

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.board import Board
from schemas.events import (
    PlanReady,
    RunStarted,
    StepFinished,
    StepReady,
    StepSkipped,
    StepStarted,
    ToolFinished,
    ToolStarted,
)
from schemas.evidence import Evidence
from schemas.plan import Plan, Step
from tests.cli.endpoint import step

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(*steps: dict[str, Any], version: int = 1) -> PlanReady:
    return PlanReady(
        version=version, created_by="planner", fingerprint="f", plan={"goal": "g", "steps": steps}
    )


def finished(step_id: str, *, passed: bool = True) -> StepFinished:
    error = None if passed else "criteria_unmet"
    return StepFinished(
        step_id=step_id, passed=passed, error_type=error, detail="why", tool_calls=2, seconds=1.5
    )


@pytest.fixture
def board() -> Board:
    board = Board()
    board.apply(RunStarted(objective="o"))
    board.apply(planned(step("a", tools=None), step("b", "a", tools=None, tool_budget=3)))
    return board


def test_a_step_goes_from_waiting_to_passed(board: Board) -> None:
    row = board.rows["a"]
    states = [row.state]
    for event in (
        StepReady(step_id="a", grant=2, attempt=1),
        StepStarted(step_id="a", task="t", grant=2, timeout_seconds=90, at=NOW),
        ToolStarted(step_id="a", tool="look", arguments='"q": 1', calls_used=1),
        finished("a"),
    ):
        board.apply(event)
        states.append(row.state)
    assert states == ["waiting", "ready", "running", "running", "passed"]
    assert (row.used, row.allowed, row.seconds) == (2, 2, 1.5)
    assert board.rows["b"].allowed == 3


def test_the_seconds_of_a_running_step_go_on(board: Board) -> None:
    board.apply(StepStarted(step_id="a", task="t", grant=2, timeout_seconds=90, at=NOW))
    assert board.rows["a"].elapsed(NOW + timedelta(seconds=3)) == 3
    assert board.rows["b"].elapsed(NOW) is None


def test_what_a_step_did_last_is_its_activity_and_a_failure_its_reason(board: Board) -> None:
    board.apply(ToolStarted(step_id="a", tool="look", arguments="\x1b[31mq\nr", calls_used=1))
    assert board.rows["a"].activity == "look q r"
    board.apply(ToolFinished(step_id="a", tool="look", ok=False, seconds=1))
    assert board.rows["a"].activity == "look q r ✗"
    board.apply(finished("a", passed=False))
    assert board.rows["a"].activity == "criteria_unmet: why"


def test_steps_that_end_while_the_plan_is_being_written_are_not_the_last() -> None:
    board = Board()
    board.apply(RunStarted(objective="o"))
    board.apply(StepStarted(step_id="a", task="t", grant=2, timeout_seconds=90, at=NOW))
    board.apply(finished("a"))
    assert board.phase == "planning"
    board.apply(planned(step("a"), step("b", "a")))
    assert (board.phase, board.rows["a"].state, board.rows["b"].state) == ("working", "passed", "waiting")


def test_a_plan_whose_steps_have_all_ended_while_it_was_written_is_being_reviewed() -> None:
    board = Board()
    board.apply(RunStarted(objective="o"))
    board.apply(finished("a"))
    board.apply(planned(step("a")))
    assert board.phase == "reviewing"


def test_a_new_version_keeps_what_ran_and_lets_a_skipped_step_wait_again(board: Board) -> None:
    board.apply(finished("a", passed=False))
    board.apply(StepSkipped(step_id="b", because="a"))
    assert board.phase == "reviewing"
    board.apply(planned(step("a2", replaces="a"), step("b", "a2"), version=2))
    assert {row.step_id: row.state for row in board.rows.values()} == {
        "a": "failed",
        "b": "waiting",
        "a2": "waiting",
    }
    assert board.rows["a"].replaced_by == "a2"
    assert board.version == 2


def test_a_new_objective_on_the_thread_starts_an_empty_board(board: Board) -> None:
    board.apply(RunStarted(objective="next"))
    assert board.rows == {}


def test_what_was_at_work_when_it_stopped_is_marked(board: Board) -> None:
    board.apply(StepStarted(step_id="a", task="t", grant=2, timeout_seconds=90))
    board.stop()
    assert [row.state for row in board.rows.values()] == ["stopped", "waiting"]


def test_a_run_that_goes_on_begins_with_what_is_done() -> None:
    steps = [Step(id=name, task="t", success_criteria=["c"]) for name in ("a", "b", "c")]
    record = {
        "plan_version": 1,
        "started_at": NOW,
        "finished_at": NOW + timedelta(seconds=2),
        "tool_calls": 1,
    }
    evidence = [
        Evidence.model_validate(record | {"step_id": "a", "passed": True}),
        Evidence.model_validate(record | {"step_id": "b", "passed": False, "skipped_because": "x"}),
    ]
    board = Board()
    board.seed(Plan(steps=steps), evidence)
    assert [row.state for row in board.rows.values()] == ["passed", "skipped", "waiting"]
    assert (board.rows["a"].seconds, board.finished, board.tool_calls) == (2, 2, 2)


def test_steps_of_a_plan_that_a_person_turned_down_are_gone(board: Board) -> None:
    board.apply(planned(step("a"), step("b", "a"), step("c", "b")))
    board.apply(planned(step("a"), step("d", "a"), version=2))
    assert list(board.rows) == ["a", "d"]

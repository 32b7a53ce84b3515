from datetime import UTC, datetime, timedelta

import pytest

from cli.board import Board
from cli.outlook import in_tree_order, seconds_to_go
from schemas.events import Paused, StepFinished, StepReady, StepStarted, ToolFinished, ToolStarted
from schemas.limits import RunLimits
from tests.cli.endpoint import step
from tests.cli.test_board import planned

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def board(*steps: tuple[str, ...], **limits: int) -> Board:
    found = Board(limits=RunLimits(**limits))
    found.apply(planned(*(step(name, *needs) for name, *needs in steps)))
    return found


def ended(found: Board, name: str, seconds: float) -> None:
    found.apply(
        StepFinished(step_id=name, passed=True, error_type=None, detail="", tool_calls=0, seconds=seconds)
    )


def test_each_step_stands_below_all_that_it_waits_for() -> None:
    found = board(
        ("end", "mid", "b"), ("b",), ("a",), ("mid", "a"), ("alone",), ("a2", "a"), ("last", "end", "a2")
    )
    order = [(row.step_id, depth) for row, depth in in_tree_order(found.rows)]
    places = {name: n for n, (name, _) in enumerate(order)}
    for row in found.rows.values():
        assert all(places[need] < places[row.step_id] for need in row.depends_on)
    assert dict(order)["a"] == 0
    assert dict(order)["mid"] == 1
    assert len(order) == 7


def test_a_circle_from_elsewhere_does_not_hang() -> None:
    found = board(("a", "b"), ("b", "a"))
    assert {row.step_id for row, _ in in_tree_order(found.rows)} == {"a", "b"}


def test_nothing_is_said_before_a_step_has_ended() -> None:
    assert seconds_to_go(board(("a",)), NOW) is None


def test_the_longest_chain_of_open_steps_counts_and_what_runs_counts_less() -> None:
    found = board(("a",), ("b", "a"), ("c", "b"), ("d",))
    ended(found, "a", 10)
    assert seconds_to_go(found, NOW) == 20
    found.apply(StepStarted(step_id="b", task="t", grant=0, timeout_seconds=9, at=NOW))
    assert seconds_to_go(found, NOW + timedelta(seconds=4)) == 16
    assert seconds_to_go(found, NOW + timedelta(seconds=400)) == 10
    for name in "bcd":
        ended(found, name, 10)
    assert seconds_to_go(found, NOW) == 0


def test_few_places_make_it_longer() -> None:
    steps = [(name,) for name in "abcde"]
    found = board(*steps, max_parallel_steps=2)
    ended(found, "a", 10)
    assert seconds_to_go(found, NOW) == 20


def test_a_step_between_two_tools_is_thinking() -> None:
    found = board(("a",))
    row = found.row("a")
    found.apply(StepStarted(step_id="a", task="t", grant=2, timeout_seconds=9, at=NOW))
    assert row.thinking
    found.apply(ToolStarted(step_id="a", tool="look", arguments="", calls_used=1))
    assert not row.thinking
    found.apply(ToolFinished(step_id="a", tool="look", ok=True, seconds=1))
    assert row.thinking


def test_a_step_that_asks_stands_still_while_the_others_go_on() -> None:
    found = board(("a",), ("b",))
    for name in "ab":
        found.apply(StepStarted(step_id=name, task="t", grant=2, timeout_seconds=9, at=NOW))
    question = {"kind": "tool_approval", "step_id": "a", "tool": "save"}
    found.apply(Paused(interrupt_id="0" * 32, question=question, at=NOW + timedelta(seconds=2)))
    assert (found.row("a").state, found.phase) == ("asking", "working")
    assert found.row("a").elapsed(NOW + timedelta(seconds=99)) == 2
    ended(found, "b", 1)
    found.apply(Paused(interrupt_id="0" * 32, question=question, at=NOW + timedelta(seconds=2)))
    assert found.phase == "waiting"
    found.stop()
    assert found.row("a").state == "asking"


@pytest.mark.parametrize("attempts", [1, 2])
def test_tool_runs_of_earlier_attempts_count(attempts: int) -> None:
    found = board(("a",))
    for attempt in range(1, attempts + 1):
        found.apply(StepReady(step_id="a", grant=2, attempt=attempt))
        found.apply(ToolStarted(step_id="a", tool="look", arguments="", calls_used=1))
        ended_with_one = StepFinished(
            step_id="a", passed=False, error_type="tool", detail="", tool_calls=1, seconds=1
        )
        found.apply(ended_with_one)
    assert found.tool_calls == attempts

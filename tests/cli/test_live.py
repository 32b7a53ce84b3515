import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from cli.board import Board
from cli.live import steps_table
from cli.texts import Language, Texts
from schemas.events import StepFinished, StepStarted
from tests.cli.endpoint import step
from tests.cli.test_board import planned


def drawn(board: Board, width: int, language: Language = "en", room: int | None = None) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=True, no_color=True, color_system=None).print(
        steps_table(board, Texts(language), width, room)
    )
    return out.getvalue().splitlines()


@pytest.fixture
def board() -> Board:
    board = Board()
    long = "分析上个季度的客户流失，找出主要原因并提出改进建议 😀 " * 5
    board.apply(
        planned(step("数据" * 2, task=long), *(step(f"step-with-a-long-name-{n}" * 2) for n in range(20)))
    )
    board.apply(StepStarted(step_id="step-with-a-long-name-3" * 2, task="t", grant=2, timeout_seconds=9))
    return board


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(board: Board, width: int, language: Language) -> None:
    lines = drawn(board, width, language)
    assert max(map(cell_len, lines)) <= width
    # One line for each step: nothing wraps.
    assert len([line for line in lines if "0/" in line]) == 21


def test_a_low_terminal_shows_what_needs_attention_and_counts_the_rest(board: Board) -> None:
    failed = "step-with-a-long-name-9" * 2
    event = StepFinished(
        step_id=failed, passed=False, error_type="timeout", detail="late", tool_calls=0, seconds=1
    )
    board.apply(event)
    lines = drawn(board, 100, room=4)
    text = "\n".join(lines)
    assert "running" in text
    assert "timeout: late" in text
    assert "18 more steps: waiting 18" in text
    assert len([line for line in lines if "0/" in line]) == 3


def test_text_in_the_table_is_text() -> None:
    board = Board()
    board.apply(planned(step("a", task="[red]x[/] \x1b[31m\u202egnp")))
    text = "\n".join(drawn(board, 80))
    assert "[red]x[/] <U+202E>gnp" in text

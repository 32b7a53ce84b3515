"""A run's progress in a terminal: one live table of steps, and what the run has used of its limits."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from rich import box
from rich.console import Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cli.board import Board, Row
from cli.outlook import in_tree_order, seconds_to_go
from cli.printable import one_line
from cli.screen import Screen
from cli.texts import Texts
from schemas.events import RunEvent

REFRESH_SECONDS = 0.25
STATE_STYLES = {
    "waiting": "dim",
    "ready": "dim",
    "running": "cyan",
    "asking": "magenta",
    "passed": "green",
    "failed": "red",
    "skipped": "yellow",
    "stopped": "yellow",
}
_WIDE = 110
_INDENT = 2
# Deeper steps stand no further in: the column is needed for their names.
_DEEPEST = 6
_BAR_CELLS, _LEAST_BAR_CELLS = 16, 6
# Which rows give way first when the terminal is too low for all.
_LEAST_WANTED = ("passed", "waiting", "skipped", "failed", "ready", "stopped", "running", "asking")


class LiveView:
    """Draws the board at most every quarter of a second, from the event loop itself: no thread, no locks."""

    def __init__(self, screen: Screen, board: Board) -> None:
        self._say, self._console, self._board = screen.say, screen.out, board
        self._began = time.monotonic()
        self._live: Live | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._width = 0
        self._final = False
        self._spinner = Spinner("dots" if screen.out.encoding.startswith("utf") else "line")

    def start(self) -> None:
        """Draw, and go on drawing until `stop`."""
        self._began, self._final = time.monotonic(), False
        self._open()
        self._ticker = asyncio.create_task(self._tick())

    def show(self, event: RunEvent) -> None:
        """Take the event in; the next tick draws it."""
        self._board.apply(event)

    def stop(self) -> None:
        """Draw all steps a last time and leave them on the screen."""
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        if self._live is not None:
            self._board.stop()
            # A plan that nothing of has run is not news: it is shown, in full, to whoever is to approve it.
            self._live.transient = all(row.state == "waiting" for row in self._board.rows.values())
            self._final = True
            self._live.stop()
            self._live = None

    def _open(self) -> None:
        self._width = self._console.width
        self._live = Live(
            console=self._console, auto_refresh=False, vertical_overflow="crop", get_renderable=self._picture
        )
        self._live.start(refresh=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            if self._console.width != self._width:
                self._reopen()
            elif self._live is not None:
                self._live.refresh()

    def _reopen(self) -> None:
        # After a change of width nobody knows on how many lines the old table now stands: start on a clear screen.
        if self._live is not None:
            self._live.transient = True
            self._live.stop()
        self._console.control(Control.clear(), Control.home())
        self._open()

    def _picture(self) -> RenderableType:
        if self._final:
            return steps_table(self._board, self._say, self._console.width)
        caption = Table.grid(padding=(0, 1))
        caption.add_row(self._spinner, Text(self._caption(), "dim", no_wrap=True, overflow="ellipsis"))
        if not self._board.rows:
            return caption
        budgets = budget_line(self._board, self._say, self._seconds(), self._console.width)
        room = max(1, self._console.height - 6)
        return Group(steps_table(self._board, self._say, self._console.width, room), budgets, caption)

    def _seconds(self) -> float:
        return self._board.spent_seconds + time.monotonic() - self._began

    def _caption(self) -> str:
        board, say = self._board, self._say
        phase = say("answer.writing") if board.answer_chars else say(f"phase.{board.phase}")
        left = seconds_to_go(board, datetime.now(UTC)) if board.at_work else None
        return say(
            "caption",
            phase=phase,
            done=board.finished,
            total=len(board.rows),
            seconds=f"{self._seconds():.0f}",
            left=say("caption.left", seconds=f"{max(1, left):.0f}") if left else "",
        )


def budget_line(board: Board, say: Texts, seconds: float, width: int) -> Text:
    """Return what the run has used of its limits, as bars; without them where there is no room.

    Args:
        board: of the run.
        say: the words.
        seconds: active ones, up to now.
        width: cells of the terminal.
    """
    if board.limits is None:
        return Text(say("budget.calls", used=board.tool_calls, allowed="?"), "dim")
    parts = (
        ("budget.calls", board.tool_calls, board.limits.total_tool_budget),
        ("budget.seconds", int(seconds), int(board.limits.deadline_seconds)),
    )
    line = Text(no_wrap=True, overflow="ellipsis")
    # Beside the bars stand about 50 cells of words.
    cells = min(_BAR_CELLS, (width - 50) // len(parts))
    for key, used, allowed in parts:
        share = min(1.0, used / allowed) if allowed else 1.0
        if cells >= _LEAST_BAR_CELLS:
            full = round(share * cells)
            line.append("━" * full, "red" if share >= 0.9 else "cyan").append("─" * (cells - full), "dim")
            line.append(" ")
        line.append(say(key, used=used, allowed=allowed) + "   ", "dim")
    return line


def steps_table(board: Board, say: Texts, width: int, room: int | None = None) -> RenderableType:
    """Return the steps as a table for a terminal.

    Args:
        board: what to show.
        say: the words.
        width: cells of the terminal; from 110 on, task and last activity have columns of their own.
        room: lines for rows; steps that need attention least are left out and counted. None = all.
    """
    wide = width >= _WIDE
    order = in_tree_order(board.rows)
    depths = {row.step_id: min(depth, _DEEPEST) for row, depth in order}
    shown, hidden = _chosen([row for row, _ in order], room)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column(say("table.state"), no_wrap=True)
    table.add_column(say("table.step"), no_wrap=True, overflow="ellipsis", max_width=max(12, width // 4))
    table.add_column(say("table.time"), no_wrap=True, justify="right", min_width=6)
    table.add_column(say("table.calls"), no_wrap=True, justify="right", min_width=5)
    if wide:
        table.add_column(say("table.task"), no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(
        say("table.activity" if wide else "table.both"), no_wrap=True, overflow="ellipsis", ratio=1
    )
    now = datetime.now(UTC)
    for row in shown:
        table.add_row(*_cells(row, board, say, now, depth=depths[row.step_id], wide=wide))
    if not hidden:
        return table
    states = ", ".join(
        f"{say(f'state.{state}')} {count}" for state, count in Counter(r.state for r in hidden).items()
    )
    return Group(table, Text(say("table.more", count=len(hidden), states=states), "dim", no_wrap=True))


def _cells(row: Row, board: Board, say: Texts, now: datetime, *, depth: int, wide: bool) -> list[Text]:
    style = STATE_STYLES[row.state]
    seconds = row.elapsed(now)
    name = Text(" " * (_INDENT * (depth - 1)) + "└ " if depth else "", "dim")
    cells = [
        Text(say(f"state.{row.state}"), style),
        name.append(one_line(row.step_id, 64), "not dim"),
        Text("" if seconds is None else f"{seconds:.1f}s"),
        Text(f"{row.used}/{row.allowed}", "" if row.used else "dim"),
    ]
    activity = _activity(row, board, say)
    if wide:
        return [*cells, Text(row.task, "dim"), activity]
    return [*cells, activity if activity and row.state != "waiting" else Text(row.task, "dim")]


def _activity(row: Row, board: Board, say: Texts) -> Text:
    text = Text(f"→ {row.replaced_by}  " if row.replaced_by else "", "dim")
    if row.state == "waiting":
        needs = [i for i in row.depends_on if i in board.rows and board.rows[i].state != "passed"]
        return text.append(say("show.after", steps=", ".join(needs)) if needs else "", "dim")
    if row.state == "asking":
        return text.append(say("activity.asking", tool=row.activity), STATE_STYLES["asking"])
    if row.thinking:
        return text.append(
            say("activity.thinking", last=row.activity) if row.activity else say("activity.begun"), "dim"
        )
    return text.append(row.activity, "red" if row.state == "failed" else "")


def _chosen(rows: Sequence[Row], room: int | None) -> tuple[list[Row], list[Row]]:
    """Split rows into those to show, in their order, and those to leave out."""
    if room is None or len(rows) <= room:
        return list(rows), []
    wanted = sorted(rows, key=lambda row: _LEAST_WANTED.index(row.state))
    left_out = {row.step_id for row in wanted[: len(rows) - max(1, room - 1)]}
    return (
        [row for row in rows if row.step_id not in left_out],
        [row for row in rows if row.step_id in left_out],
    )

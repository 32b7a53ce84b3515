"""A run's progress without a terminal: plain lines, or a line of JSON for each event."""

from datetime import UTC, datetime
from functools import singledispatchmethod
from typing import Protocol

from pydantic import BaseModel

from cli.board import Board, Row
from cli.outlook import in_tree_order, seconds_to_go
from cli.printable import one_line
from cli.screen import Screen
from cli.texts import Texts
from schemas.events import (
    PlanReady,
    Reviewed,
    RunEvent,
    StepFinished,
    StepSkipped,
    StepStarted,
    ToolFinished,
    ToolStarted,
)


class View(Protocol):
    """Shows a run while it happens."""

    def start(self) -> None:
        """Begin to show."""
        ...

    def show(self, event: RunEvent) -> None:
        """Take in what happened."""
        ...

    def stop(self) -> None:
        """Leave the screen as it is to stay."""
        ...


class PlainView:
    """One line for each thing that happens."""

    def __init__(self, screen: Screen, board: Board) -> None:
        self._screen, self._board = screen, board
        self._lines = Lines(screen.say, board)

    def start(self) -> None:
        """Nothing to do."""

    def show(self, event: RunEvent) -> None:
        """Print the event's lines."""
        self._board.apply(event)
        for line in self._lines.of(event):
            self._screen.line(line)

    def stop(self) -> None:
        """Nothing to do."""


class JsonView:
    """One line of JSON for each event."""

    def __init__(self, screen: Screen, board: Board) -> None:
        self._screen, self._board = screen, board

    def start(self) -> None:
        """Nothing to do."""

    def show(self, event: RunEvent) -> None:
        """Print the event."""
        self._board.apply(event)
        self._screen.json(event.model_dump(mode="json"))

    def stop(self) -> None:
        """Nothing to do."""


class Lines:
    """Words for events. The board has taken the event in already."""

    def __init__(self, say: Texts, board: Board) -> None:
        self._say, self._board = say, board

    @singledispatchmethod
    def of(self, event: BaseModel) -> list[str]:  # noqa: ARG002 - most events need no words
        """Return the lines that tell of an event; none if it says nothing new."""
        return []

    @of.register
    def _(self, event: PlanReady) -> list[str]:
        say, board = self._say, self._board
        steps = event.plan.get("steps") or ()
        goal = f": {board.goal}" if board.goal else ""
        by = say(f"by.{event.created_by}")
        head = say("plan.line", version=event.version, by=by, count=len(steps), goal=goal)
        why = [say("plan.why", reason=board.reason)] if board.reason else []
        places = {row.step_id: depth for row, depth in in_tree_order(board.rows)}
        shown = [
            say(
                "plan.step",
                indent="  " * places[row.step_id],
                step=row.step_id,
                task=row.task,
                after=self._after(row),
            )
            for row, _ in in_tree_order(board.rows)
            if row.state == "waiting"
        ]
        return [head, *why, *shown, *(say("review.lint", note=note) for note in board.lint)]

    def _after(self, row: Row) -> str:
        return f"  ({self._say('show.after', steps=', '.join(row.depends_on))})" if row.depends_on else ""

    @of.register
    def _(self, event: StepStarted) -> list[str]:
        task = one_line(event.task)
        return [self._say("step.started", step=event.step_id, grant=event.grant, task=task)]

    @of.register
    def _(self, event: ToolStarted) -> list[str]:
        arguments = one_line(event.arguments)
        return [self._say("step.tool", step=event.step_id, tool=one_line(event.tool), arguments=arguments)]

    @of.register
    def _(self, event: ToolFinished) -> list[str]:
        if event.ok:
            return []
        tool = one_line(event.tool)
        return [self._say("step.tool_failed", step=event.step_id, tool=tool, seconds=f"{event.seconds:.1f}")]

    @of.register
    def _(self, event: StepFinished) -> list[str]:
        row = self._board.row(event.step_id)
        return [
            self._say(
                "step.finished",
                step=event.step_id,
                state=self._say(f"state.{row.state}"),
                seconds=f"{event.seconds:.1f}",
                used=event.tool_calls,
                allowed=row.allowed,
                why=f": {row.activity}" if row.activity else "",
            ),
            self._progress(),
        ]

    def _progress(self) -> str:
        say, board = self._say, self._board
        left = seconds_to_go(board, datetime.now(UTC)) if board.finished < len(board.rows) else None
        return say(
            "progress",
            done=board.finished,
            total=len(board.rows),
            calls=board.tool_calls,
            allowed=board.limits.total_tool_budget if board.limits is not None else "?",
            left=say("caption.left", seconds=f"{max(1, left):.0f}") if left else "",
        )

    @of.register
    def _(self, event: StepSkipped) -> list[str]:
        return [self._say("step.skipped", step=event.step_id, because=one_line(event.because))]

    @of.register
    def _(self, event: Reviewed) -> list[str]:
        if event.approved and not event.gaps:
            return [self._say("review.approved")]
        gaps = [self._say("review.gap", gap=one_line(gap.description)) for gap in event.gaps]
        return [self._say("review.gaps", count=len(gaps)), *gaps]

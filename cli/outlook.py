"""What is left of a run: the order in which its steps wait for each other, and about how long they will take."""

from collections.abc import Mapping
from datetime import datetime
from statistics import fmean

from cli.board import Board, Row

_OPEN = frozenset({"waiting", "ready", "running"})


def in_tree_order(rows: Mapping[str, Row]) -> list[tuple[Row, int]]:
    """Return the steps, each below the last of those it waits for, and how deep it stands."""
    order: list[tuple[Row, int]] = []
    pending = list(rows.values())
    while pending:
        placed = {row.step_id for row, _ in order}
        ready = [row for row in pending if all(d in placed or d not in rows for d in row.depends_on)]
        # What depends on itself can be planned by nobody; events from elsewhere must not hang the table.
        for row in ready or pending:
            _insert(order, row)
        pending = [row for row in pending if row not in (ready or pending)]
    return order


def _insert(order: list[tuple[Row, int]], row: Row) -> None:
    places = [n for n, (other, _) in enumerate(order) if other.step_id in row.depends_on]
    if not places:
        order.append((row, 0))
        return
    place = max(places)
    depth = order[place][1] + 1
    end = place + 1
    while end < len(order) and order[end][1] >= depth:
        end += 1
    order.insert(end, (row, depth))


def seconds_to_go(board: Board, now: datetime) -> float | None:
    """Return about how many seconds the open steps will take; None while no step of the run has ended.

    Each open step is taken to last as long as the finished ones did on the average. The longest chain of them counts,
    or, where fewer steps may run at once than are ready, their sum over the places.
    """
    lasted = [row.seconds for row in board.rows.values() if row.seconds and row.state in ("passed", "failed")]
    if not lasted:
        return None
    usual = fmean(lasted)
    left = {i: _left(row, usual, now) for i, row in board.rows.items()}
    longest: dict[str, float] = {}
    for row, _ in in_tree_order(board.rows):
        before = max((longest.get(need, 0.0) for need in row.depends_on), default=0.0)
        longest[row.step_id] = before + left[row.step_id]
    places = board.limits.max_parallel_steps if board.limits is not None else len(left)
    return max(max(longest.values()), sum(left.values()) / places)


def _left(row: Row, usual: float, now: datetime) -> float:
    if row.state not in _OPEN:
        return 0.0
    return max(0.0, usual - (row.elapsed(now) or 0.0))

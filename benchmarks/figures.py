"""Figures as every benchmark here prints them: Markdown tables, the same on a terminal and in RESULTS.md."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """One table. `note` says what the numbers are, in a line or two."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Return the table with its columns aligned, the first one to the left."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        rule = [("-" if n else ":") + "-" * (width - 2) + ("-:"[n > 0]) for n, width in enumerate(widths)]
        lines = [_line(row, widths) for row in (self.columns, rule, *self.rows)]
        return "\n".join([f"## {self.title}", "", self.note, "", *lines, ""])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.rjust(width) if n else cell.ljust(width)
        for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"

"""Where the command prints: a terminal, or a pipe that must stay plain."""

import io
import os
import signal
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from cli.printable import clean, from_argument, json_line, one_line
from cli.texts import Texts

_READING_WIDTH = 110
_NO_WIDTH = 100_000


def open_streams() -> None:
    """Make both streams write UTF-8, whatever the locale says, and each line at once.

    What is left over and cannot be encoded is written as an escape, which in JSON text is the right one.
    """
    # A stream that the caller has closed is None.
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


@dataclass(frozen=True)
class Screen:
    """Standard output and standard error, with the texts of one language.

    Attributes:
        terminal: whether output may move the cursor.
        can_ask: whether a person sits at it.
    """

    say: Texts
    out: Console
    err: Console
    terminal: bool
    can_ask: bool
    debug: bool = False

    @classmethod
    def open(cls, say: Texts, *, debug: bool = False) -> "Screen":
        """Return the screen of this process."""
        out = _console(sys.stdout)
        terminal = out.is_terminal and not out.is_dumb_terminal
        return cls(say, out, _console(sys.stderr), terminal, out.is_terminal and _someone_types(), debug)

    def line(self, text: str = "", style: str = "", *, exact: bool = False) -> None:
        """Print text, in a terminal wrapped at words; `exact`: by the terminal alone, so that it can be copied."""
        if self.terminal:
            self.out.print(Text(text, style), soft_wrap=exact)
        else:
            print(text, file=self.out.file)

    def json(self, value: Any) -> None:
        """Print JSON on one line."""
        self.line(json_line(value), exact=True)

    def fields(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print names and values: below each other in a terminal, "name: value" otherwise."""
        if self.terminal:
            self.grid([(Text(name, "bold"), Text(value)) for name, value in rows])
            return
        for name, value in rows:
            self.line(self.say("field", name=name) + value)

    def grid(self, rows: Sequence[Sequence[Text]]) -> None:
        """Print rows whose columns stand below each other; without a terminal, one line for each."""
        if not self.terminal:
            for row in rows:
                self.line("  ".join(" ".join(cell.plain.split("\n")) for cell in row if cell))
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        last = max(map(len, rows), default=0) - 1
        for place in range(last + 1):
            grid.add_column(no_wrap=place < last, overflow="fold" if place == last else "ellipsis")
        for row in rows:
            grid.add_row(*row)
        self.out.print(grid)

    def note(self, text: str) -> None:
        """Print a line for the person on standard error."""
        self.err.print(Text(text))

    def markdown(self, text: str) -> None:
        """Print Markdown: laid out in a terminal, as it is otherwise."""
        if not self.terminal:
            self.line(clean(text))
            return
        # A link shows its address: text from outside must not hide where it leads.
        page = Markdown(clean(text), hyperlinks=False)
        self.out.print(page, width=min(self.out.width, _READING_WIDTH))

    def tree(self, tree: Tree) -> None:
        """Print a tree; without a terminal no line is broken."""
        self.out.print(tree)

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        cut_last: bool = False,
        numbers: Collection[int] = (),
        wraps: Collection[int] = (),
    ) -> None:
        """Print rows: a table in a terminal, tab-separated otherwise.

        The last column takes what room is left: what does not fit goes on below, or is cut with `cut_last`.

        Args:
            header: names of the columns.
            rows: their cells.
            cut_last: see above.
            numbers: columns that stand to the right.
            wraps: columns before the last one that may go on below, too.
        """
        cells = [[one_line(cell, 2000) for cell in row] for row in rows]
        if not self.terminal:
            for row in (list(header), *cells):
                self.line("\t".join(row))
            return
        # Only with `expand` the last column gives way, and not all of them.
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, expand=cut_last)
        for place, name in enumerate(header[:-1]):
            table.add_column(
                name,
                style="" if table.columns else "bold",
                no_wrap=place not in wraps,
                justify="right" if place in numbers else "left",
            )
        table.add_column(
            header[-1],
            no_wrap=cut_last,
            overflow="ellipsis" if cut_last else "fold",
            ratio=1 if cut_last else None,
        )
        for row in cells:
            table.add_row(*map(Text, row))
        self.out.print(table)


def typed_line(prompt: str) -> str | None:
    """Ask for a line; None at the end of input.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    # asyncio's own handler would only cancel the task, which cannot notice while the person is being asked.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return from_argument(input(prompt))
    except EOFError:
        return None
    finally:
        signal.signal(signal.SIGINT, before)


def _someone_types() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _console(stream: TextIO) -> Console:
    # Only a real terminal gets escapes: FORCE_COLOR and the like must not put them into a pipe.
    terminal = stream.isatty()
    width = None if terminal else _NO_WIDTH
    return Console(
        file=stream, force_terminal=terminal, width=width, highlight=False, markup=False, emoji=False
    )

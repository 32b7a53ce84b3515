"""A text in the person's own editor, until it is right: what was not taken is said beside its line, and nothing is lost."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from cli.plan_text import yaml_problem
from cli.printable import one_line
from cli.screen import Screen
from cli.yaml_places import Place, place_of

# The shell reads the variables, and splits what they hold, as git and crontab do it.
_COMMAND = 'eval "${VISUAL:-${EDITOR:-vi}} \\"\\$1\\""'
_MARK = "#! "
_ERROR_CHARS = 500

# Takes the parsed text; returns what is wrong with it, or nothing.
Check = Callable[[Any], Sequence[str]]


class Draft:
    """One text that a person edits, in a file of its own, through as many rounds as it takes.

    Args:
        screen: for what has to be said.
        text: YAML.
        check: of the parsed text.
        head: comment lines at the top.
    """

    def __init__(self, screen: Screen, text: str, check: Check, *, head: str = "") -> None:
        self._screen, self._check = screen, check
        self._head = "".join(f"# {line}\n" for line in head.splitlines())
        self._text = text
        self._problems: Sequence[str] = ()

    def edit(self) -> Any:
        """Open the editor until the text is right; return its value, or None if it is left as it was.

        A text that was not taken comes back when it is edited again.
        """
        while True:
            shown, marks = annotated(self._head + self._text, self._problems)
            found = opened(self._screen, shown)
            if found is None:
                return None
            before, self._text = self._text, without(found, marks, self._head)
            if self._text == before:
                self._give_up()
                return None
            value, self._problems = self._read()
            if not self._problems:
                return value

    def _read(self) -> tuple[Any, Sequence[str]]:
        if re.search(r"[\ud800-\udfff]", self._text):
            return None, ["the file is not UTF-8"]
        try:
            value: Any = yaml.safe_load(self._text)
        except (yaml.YAMLError, RecursionError) as error:
            return None, [yaml_problem(error)]
        return value, self._check(value)

    def _give_up(self) -> None:
        if not self._problems:
            return
        handle, name = tempfile.mkstemp(prefix="planweave-", suffix=".yaml")
        with os.fdopen(handle, "wb") as file:
            file.write(self._text.encode("utf-8", "surrogateescape"))
        for problem in self._problems:
            self._screen.note(self._screen.say("review.error", error=one_line(problem, _ERROR_CHARS)))
        self._screen.note(self._screen.say("edit.kept", file=name))


def opened(screen: Screen, text: str) -> str | None:
    """Show a text in the person's editor and return it as it was saved; None if the editor failed."""
    with tempfile.TemporaryDirectory(prefix="planweave-") as folder:
        file = Path(folder) / "edit.yaml"
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        with _interrupts_go_to_the_editor():
            code = subprocess.call(["/bin/sh", "-c", _COMMAND, "sh", str(file)])
        if code:
            screen.note(screen.say("edit.failed", code=code))
            return None
        return file.read_bytes().decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n")


@contextmanager
def _interrupts_go_to_the_editor() -> Generator[None]:
    # A handler that does nothing, unlike SIG_IGN, is not handed down to the editor.
    before = signal.signal(signal.SIGINT, _nothing)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing about a signal."""


def annotated(text: str, problems: Sequence[str]) -> tuple[str, list[str]]:
    """Return the text with each problem in a comment above its line, and the comment lines."""
    lines = text.splitlines()
    places = [(place_of(text, problem), problem) for problem in problems]
    marks: list[str] = []
    # From the end on, so that the numbers of the lines before stay what they are.
    for place, problem in sorted(places, key=lambda item: item[0].line, reverse=True):
        mark = _comment(place, problem)
        marks.append(mark)
        lines.insert(min(place.line, len(lines)), mark)
    return "\n".join(lines) + "\n", marks


def _comment(place: Place, problem: str) -> str:
    return " " * place.indent + _MARK + one_line(problem, _ERROR_CHARS)


def without(text: str, marks: Sequence[str], head: str) -> str:
    """Return the text without the comments that the program had put there, each taken out once."""
    left = list(marks)
    kept: list[str] = []
    for line in text.splitlines():
        if line in left:
            left.remove(line)
        else:
            kept.append(line)
    return "".join(line + "\n" for line in kept).removeprefix(head)

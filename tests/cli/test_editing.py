"""A text in the person's editor: what was not taken stands beside its line, and nothing of theirs is lost."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.editor import Draft, annotated, without
from cli.plan_text import yaml_text
from cli.screen import Screen
from cli.texts import Texts
from cli.yaml_places import place_of

PLAN = """\
# my own comment
goal: compare
steps:
  - id: a
    task: |
      look
      closely
    success_criteria: [known]
  - id: b
    task: next
    success_criteria:
      - known
    depends_on: [ghost]
    tool_budget: 99
"""


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        ("steps.1.tool_budget: Input should be less than or equal to 10 (given: 99)", "    tool_budget: 99"),
        ("steps.0.task: too long", "    task: |"),
        ("steps.1.success_criteria.0: blank", "      - known"),
        ("step 'b' depends on unknown steps: 'ghost'", "    depends_on: [ghost]"),
        ("steps that have passed cannot be changed: 'a'", "  - id: a"),
        ("steps.0.checks: missing field", "  - id: a"),
        ("line 3, column 1: did not find expected key", "steps:"),
        ("the plan has neither steps nor questions", "# my own comment"),
    ],
)
def test_a_problem_is_placed_above_the_line_it_is_about(problem: str, line: str) -> None:
    shown, _ = annotated(PLAN, [problem])
    lines = shown.splitlines()
    mark = next(n for n, text in enumerate(lines) if "#! " in text)
    assert lines[mark + 1] == line
    assert lines[mark].strip() == "#! " + problem


def test_comments_change_nothing_and_come_out_again() -> None:
    problems = ["steps.0.task: bad", "step 'b' depends on unknown steps: 'ghost'", "no place for this"]
    shown, marks = annotated(PLAN, problems)
    assert yaml.safe_load(shown) == yaml.safe_load(PLAN)
    assert without(shown, marks, "") == PLAN


def test_a_text_that_is_no_yaml_has_no_places_but_its_line() -> None:
    assert place_of("a: [1\nb: 2\n", "step 'a' depends on itself").line == 0
    assert place_of("", "anything").line == 0


@pytest.mark.parametrize(
    "value",
    [
        {"text": "two\nlines\n"},
        {"text": "\x1b[31mred\x00\x85 \u202egnp\u2066 \ud800 end"},
        {"text": "  indented\n\ttab\n", "n": 1, "list": ["a", None, True]},
        {"查找": "😀 ①"},
    ],
)
def test_yaml_steers_no_terminal_and_reads_back_as_the_same(value: dict[str, Any]) -> None:
    text = yaml_text(value)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert yaml.safe_load(text) == value


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """An editor that does one sed command after the other; what it was shown is kept."""

    def make(*commands: str) -> Path:
        seen = tmp_path / "seen"
        seen.mkdir()
        script = tmp_path / "an editor"
        cases = "".join(f"{n}) {command} ;;\n" for n, command in enumerate(commands))
        script.write_text(
            f'#!/bin/sh\nn=$(ls "{seen}" | wc -l)\ncp "$1" "{seen}/$n"\ncase $n in\n{cases}esac\n'
        )
        script.chmod(0o755)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"'{script}'")
        return seen

    return make


def draft(check: Callable[[Any], list[str]]) -> Draft:
    return Draft(Screen.open(Texts("en")), "a: 1\nb: 2\n", check, head="what to do\nand how")


def test_an_unchanged_file_is_no_edit(editor: Callable[..., Path]) -> None:
    seen = editor("true")
    assert draft(lambda value: ["never asked"]).edit() is None
    assert (seen / "0").read_text() == "# what to do\n# and how\na: 1\nb: 2\n"


def test_what_is_wrong_is_shown_until_it_is_right(editor: Callable[..., Path]) -> None:
    seen = editor("sed -i 's/b: 2/b: 99 # mine/' \"$1\"", "sed -i 's/99/3/' \"$1\"")
    value = draft(lambda value: ["b: too large (given: 99)"] if value["b"] > 9 else []).edit()
    assert value == {"a": 1, "b": 3}
    lines = (seen / "1").read_text().splitlines()
    assert lines[2:] == ["a: 1", "#! b: too large (given: 99)", "b: 99 # mine"]


def test_a_text_given_up_is_kept_in_a_file_and_opened_again(
    editor: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = editor("printf 'a: [\\n' > \"$1\"", "true", "printf 'a: 2\\n' > \"$1\"")
    text = draft(lambda value: [])
    assert text.edit() is None
    said = capsys.readouterr().err
    kept = Path(re.search(r"kept in (\S+)", said)[1])  # type: ignore[index]
    assert kept.read_text() == "a: [\n"
    kept.unlink()
    assert "line 2" in said
    assert text.edit() == {"a": 2}
    assert "a: [" in (seen / "2").read_text()


def test_an_editor_that_fails_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VISUAL", "sh -c 'exit 3'")
    assert draft(lambda value: []).edit() is None
    assert "code 3" in capsys.readouterr().err


def test_bytes_that_are_no_text_come_back_as_they_were(editor: Callable[..., Path]) -> None:
    seen = editor("printf 'a: \\377\\n' > \"$1\"", "printf 'a: 5\\n' > \"$1\"")
    assert draft(lambda value: []).edit() == {"a": 5}
    assert b"a: \xff\n" in (seen / "1").read_bytes()

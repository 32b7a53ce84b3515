"""Tools that wait for a person: asked at the terminal, answered without one, in one process or the next."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ESCAPES, Here, Ran, Spawn, rest
from tests.cli.endpoint import Endpoint, finding_of, step
from tests.cli.own import SPEC

# The endpoint's threads are not running Python code that a fork could catch in the middle of anything.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
PLAN = {
    "goal": "Write it down",
    "steps": [step("one", tools=["save"]), step("two", tools=["save"]), step("free", tools=["look"])],
}


def work(brief: dict[str, Any]) -> Any:
    """Save twice over: the first call of each writing step, then the finding."""
    name = brief["step"]["id"]
    if brief["turns"]:
        return finding_of(brief, "s-free" if name == "free" else "s-save")
    if name == "free":
        return "look", {"query": "free"}
    return "save", {"path": "saved.txt", "content": f"{name} \x1b[31mred \u202e"}


@pytest.fixture
def endpoint(env: dict[str, str]) -> Iterator[Endpoint]:
    with Endpoint(PLAN) as endpoint:
        endpoint.finding = work
        env |= endpoint.environment
        yield endpoint


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[], list[str]]:
    def read() -> list[str]:
        file = tmp_path / "saved.txt"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return sorted(line.split(" ")[0] for line in lines)

    return read


def waiting(here: Here) -> dict[str, str]:
    """Return the id of each step's question."""
    questions = json.loads(here("show", "t", "--json")[1])["questions"]
    return {q["question"]["step_id"]: q["interrupt_id"] for q in questions}


def test_two_steps_wait_while_a_third_finishes_and_each_is_answered_by_its_id_in_another_process(
    planweave: Callable[..., Ran], here: Here, endpoint: Endpoint, saved: Callable[[], list[str]]
) -> None:
    paused = planweave("run", "x", "--thread", "t", "--tools", SPEC)
    assert paused.returncode == 5
    out = paused.stdout.decode()
    assert "free: passed" in out
    assert out.count("wants to run save, which writes") == 2
    assert "planweave answer t approve" in out
    assert not {"\x1b", "\u202e"} & {*out}
    ids = waiting(here)
    assert ids.keys() == {"one", "two"}
    assert f"--id {ids['two'][:8]} means step two, save" in out
    assert saved() == []

    code, _, err = here("answer", "t", "approve")
    assert code == 2
    assert ids["one"][:8] in err
    first = planweave("answer", "t", "--id", ids["two"][:8], "approve")
    assert first.returncode == 5, first.stderr
    assert saved() == ["two"]
    assert waiting(here) == {"one": ids["one"]}

    last = planweave("answer", "t", "reject", "not now")
    assert saved() == ["two"]
    # What was turned down has no source to stand on.
    assert last.returncode == 3, last.stdout
    assert endpoint.steps_asked().count("free") == 2  # one call of the tool, one finding
    assert here("answer", "t", "approve")[0] == 2


def test_an_answer_that_does_not_fit_runs_nothing_and_the_question_stays(
    here: Here, endpoint: Endpoint, saved: Callable[[], list[str]]
) -> None:
    here("run", "x", "--thread", "t", "--tools", SPEC, **endpoint.environment)
    named = waiting(here)["one"]
    for words in ("yes", "edit [1]", '{"decision": "edit"}', "{}"):
        code, out, err = here("answer", "t", "--id", named, *words.split(" ", 1))
        assert code == 2, out
        assert len(err.splitlines()) == 1
    assert saved() == []
    assert waiting(here).keys() == {"one", "two"}


def test_a_person_at_the_terminal_is_asked_one_by_one_and_all_are_resumed_together(
    env: dict[str, str], terminal: Spawn, endpoint: Endpoint, tmp_path: Path
) -> None:
    child = terminal("run", "x", "--thread", "t", "--tools", SPEC)
    child.expect("Question 1 of 2")
    child.expect("Step one wants to run save, which writes")
    # What would steer the terminal is seen, and does nothing.
    child.expect("one ␛\\[31mred <U\\+202E>")
    child.expect("Let it run")
    child.sendline("")
    child.expect("Enter alone lets nothing run")
    child.sendline('e {"path": "other.txt", "content": "mine"}')
    child.expect("Question 2 of 2")
    child.expect("Let it run")
    assert not (tmp_path / "other.txt").exists()
    child.sendline("n because")
    rest(child)
    assert child.exitstatus == 3
    assert (tmp_path / "other.txt").read_text() == "mine\n"
    assert not (tmp_path / "saved.txt").exists()


def test_always_answers_the_other_question_too_and_arguments_are_edited_in_the_editor(
    env: dict[str, str], terminal: Spawn, endpoint: Endpoint, tmp_path: Path, saved: Callable[[], list[str]]
) -> None:
    env["EDITOR"] = "sed -i -e 's/^content: .*/content: edited/'"
    child = terminal("run", "x", "--thread", "t", "--tools", SPEC)
    child.expect("Let it run")
    child.sendline("e")
    child.expect("Question 2 of 2")
    child.expect("Let it run")
    child.sendeof()
    assert "Nothing was sent" in rest(child)
    assert child.exitstatus == 5
    assert saved() == []

    child = terminal("resume", "t")
    child.expect("Let it run")
    child.sendline("a")
    rest(child)
    assert saved() == ["one", "two"]


@pytest.mark.parametrize(("autonomy", "lines"), [("all", ["one", "two"]), ("read", [])])
def test_autonomy_says_who_is_asked(
    here: Here, endpoint: Endpoint, saved: Callable[[], list[str]], autonomy: str, lines: list[str]
) -> None:
    code, out, err = here(
        "run", "x", "--thread", "t", "--tools", SPEC, "--autonomy", autonomy, **endpoint.environment
    )
    # A plan that names tools which may not run is no plan.
    assert code == (0 if autonomy == "all" else 4), out + err
    assert "Let it run" not in out
    assert saved() == lines


def test_a_hostile_objective_and_hostile_results_are_text_everywhere(
    env: dict[str, str], terminal: Spawn, endpoint: Endpoint
) -> None:
    objective = "find <script>alert(1)</script> [red]x[/red] \x1b[2J\u202egnp"
    child = terminal("run", objective, "--thread", "t", "--tools", SPEC, "--autonomy", "all")
    screens = [rest(child)]
    for arguments in (("show", "t", "--evidence"), ("threads",)):
        child = terminal(*arguments)
        screens.append(rest(child))
    for screen in screens:
        assert "\u202e" not in screen
        assert "\x1b[2J" not in screen
        assert "\x1b[31m" not in ESCAPES.sub("", screen)
    assert "<script>alert(1)</script> [red]x[/red] <U+202E>gnp" in " ".join(
        ESCAPES.sub("", screens[1]).split()
    )

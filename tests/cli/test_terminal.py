"""The command in a pseudo-terminal."""

import re
from collections.abc import Callable

import pytest

from tests.cli.conftest import ESCAPES, Ran, Spawn, rest
from tests.cli.endpoint import Endpoint, step

# The endpoint's threads are not running Python code that a fork could catch in the middle of anything.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
PLAN = {"goal": "The goal", "steps": [step("first"), step("held", "first"), step("last", "held")]}


def test_the_live_table_then_ctrl_c_then_resume(
    env: dict[str, str], terminal: Spawn, planweave: Callable[..., Ran]
) -> None:
    with Endpoint(PLAN, held=frozenset({"held"})) as endpoint:
        env |= endpoint.environment
        del env["COLUMNS"]
        child = terminal("run", "x", "--thread", "t")
        child.expect("thread t|held")
        # The seconds of a running step go on without any event.
        child.expect(r"running[^\n]*held[^\n]*0\.\ds")
        child.expect(r"running[^\n]*held[^\n]*2\.\ds")
        table = child.before or ""
        # Two seconds at four pictures a second, and the first.
        assert table.count("last activity") <= 10
        assert "waiting" in table
        assert "\x1b[?1049h" not in table
        # A new width: the table is drawn anew.
        child.setwinsize(24, 60)
        child.expect(re.escape("\x1b[2J"))
        child.expect("held")
        child.sendintr()
        last = rest(child)
        assert child.exitstatus == 130
        assert "stopped; what has finished is kept: planweave resume t" in last
        assert "Traceback" not in last
        assert last.rstrip().endswith("planweave resume t")
        # The cursor is visible again.
        assert last.rfind("\x1b[?25h") > last.rfind("\x1b[?25l")

        endpoint.release()
        assert planweave("resume", "t", **endpoint.environment).returncode == 0
        assert endpoint.steps_asked() == ["first", "held", "held", "last"]


def test_the_end_is_the_table_the_answer_and_one_line(env: dict[str, str], terminal: Spawn) -> None:
    with Endpoint(PLAN) as endpoint:
        endpoint.answer = "# Findings\n\nIt is **good** [link](http://e.test).\n"
        env |= endpoint.environment | {"NO_COLOR": "1"}
        child = terminal("run", "x", "--thread", "t")
        printed = rest(child)
    assert child.exitstatus == 0
    # NO_COLOR: no colours; what is bold stays bold.
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|38)(?:;\d+)*m", printed)
    text = ESCAPES.sub("", printed)
    end = text[text.rindex("Findings") :]
    assert "good" in end
    # A link says where it leads.
    assert "http://e.test" in end
    assert end.splitlines()[-1].startswith("completed (approved)")
    table = text[: text.rindex("Findings")]
    assert re.search(
        r"passed +└ last +|passed +└ last|passed +\S* *last +", table[table.rindex("last activity") :]
    )


def test_a_terminal_without_a_cursor_gets_plain_lines(env: dict[str, str], terminal: Spawn) -> None:
    with Endpoint(PLAN) as endpoint:
        env |= endpoint.environment
        printed = rest(terminal("run", "x", "--thread", "t", TERM="dumb"))
    assert "\x1b" not in printed
    assert "last: passed" in printed


def test_reviewing_the_plan_anything_unclear_asks_again(env: dict[str, str], terminal: Spawn) -> None:
    with Endpoint(PLAN) as endpoint:
        env |= endpoint.environment
        child = terminal("run", "x", "--thread", "t", "--review-plan")
        child.expect("Plan 1 by the planner: 3 steps in 3 waves")
        child.expect("Run this plan")
        child.sendline("not yet")
        child.expect("Please answer with Enter")
        child.expect("Run this plan")
        child.sendline("r")
        child.expect("What should change")
        child.sendline("少一点")
        child.expect("Plan 2 by the planner: 3 steps")
        child.expect("Run this plan")
        assert endpoint.steps_asked() == []
        child.sendline("")
        assert "completed (approved)" in rest(child)
        assert child.exitstatus == 0
        assert endpoint.requests[1]["feedback"] == ["少一点"]
        assert endpoint.steps_asked() == ["first", "held", "last"]


def test_the_planners_questions_are_put_to_the_person(env: dict[str, str], terminal: Spawn) -> None:
    with Endpoint({"questions": ["Which region?", "Which year?"], "steps": []}) as endpoint:
        endpoint.plans.append(PLAN)
        env |= endpoint.environment
        child = terminal("run", "x", "--thread", "t")
        child.expect(r"1\. Which region\?")
        child.sendline("north")
        child.expect(r"2\. Which year\?")
        child.sendline("")
        assert "completed (approved)" in rest(child)
        assert "north" in str(endpoint.requests[1])


@pytest.mark.parametrize(
    ("key", "code", "last"),
    [
        ("q\n", 4, "cancelled (plan_rejected)"),
        ("\x04", 5, "planweave approve t"),
        ("\x03", 130, "planweave approve t"),
    ],
)
def test_leaving_the_review_runs_nothing(
    env: dict[str, str], terminal: Spawn, key: str, code: int, last: str
) -> None:
    with Endpoint(PLAN) as endpoint:
        env |= endpoint.environment
        child = terminal("run", "x", "--thread", "t", "--review-plan")
        child.expect("Run this plan.*: ")
        child.send(key)
        assert last in rest(child)
        assert child.exitstatus == code
        assert endpoint.steps_asked() == []


def test_the_graph_is_a_tree(terminal: Spawn) -> None:
    printed = ESCAPES.sub("", rest(terminal("graph")))
    assert re.search(r"start\s+└── plan", printed)
    assert "execute" in printed

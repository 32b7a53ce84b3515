"""The command in a pseudo-terminal."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ESCAPES, GAP, Here, Ran, Spawn, rest
from tests.cli.endpoint import Endpoint, finding_of, step
from tests.cli.own import SPEC

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


def test_a_summary_first_then_the_whole_plan_then_an_edit_that_is_wrong_and_one_that_is_right(
    env: dict[str, str], terminal: Spawn, here: Here, tmp_path: Path
) -> None:
    # An editor that breaks the plan, then mends it, each time leaving a comment of the person's own.
    script = tmp_path / "editor.sh"
    script.write_text(
        "#!/bin/sh\n"
        'if grep -q \'#! step\' "$1"; then cp "$1" "$0.seen"; sed -i \'s/ghost/first/\' "$1"\n'
        "else sed -i -e 's/- held$/- ghost # mine/' -e 's/^goal: .*/goal: Another goal/' \"$1\"; fi\n"
    )
    script.chmod(0o755)
    with Endpoint(PLAN) as endpoint:
        env |= endpoint.environment | {"EDITOR": str(script)}
        child = terminal("run", "x", "--thread", "t", "--review-plan")
        child.expect("Plan 1 by the planner: 3 steps in 3 waves")
        child.expect(r"runs first" + GAP + r"first")
        child.expect(r"ends with" + GAP + r"last")
        child.expect(r"at most" + GAP + "0 tool calls, 9 model calls of workers, 270 s")
        child.expect(r"fingerprint" + GAP + r"([0-9a-f]{12})")
        first = child.match.group(1)
        child.expect("Run this plan")
        assert "• held is done" not in (child.before or "")
        child.sendline("v")
        child.expect("• held is done")
        child.expect("no tools; 90 s")
        child.expect("Run this plan")
        child.sendline("e")
        child.expect("Plan 2 by a person")
        child.expect("Another goal")
        child.expect(r"fingerprint" + GAP + r"([0-9a-f]{12})")
        mine = child.match.group(1)
        child.expect("Run your plan")
        # Nothing has run: saving is not a yes.
        assert endpoint.steps_asked() == []
        child.sendline("not yet")
        child.expect("Please answer")
        child.sendline("")
        rest(child)
    seen = (tmp_path / "editor.sh.seen").read_text().splitlines()
    mark = next(
        n for n, line in enumerate(seen) if "#! step 'last' depends on unknown steps: 'ghost'" in line
    )
    assert seen[mark + 1].strip() == "depends_on:"
    assert "- ghost # mine" in seen[mark + 2]
    assert endpoint.steps_asked()[0] == "first"
    plan = json.loads(here("show", "t", "--json")[1])["plan"]
    assert plan["created_by"] == "human"
    assert plan["fingerprint"].startswith(mine)
    assert mine != first
    assert [step["depends_on"] for step in plan["steps"]] == [[], ["first"], ["first"]]


def test_the_plan_that_runs_is_the_one_that_was_shown(
    env: dict[str, str], terminal: Spawn, here: Here
) -> None:
    with Endpoint(PLAN) as endpoint:
        env |= endpoint.environment
        child = terminal("run", "x", "--thread", "t", "--review-plan")
        child.expect("Run this plan")
        # Meanwhile somebody else has it planned again.
        assert here("revise", "t", "differently", **endpoint.environment)[0] == 5
        endpoint.plans.append({"goal": "g", "steps": [step("only")]})
        assert here("revise", "t", "again")[0] == 5
        child.sendline("")
        child.expect("Not taken|does not wait for this answer|fingerprint is not")
        assert endpoint.steps_asked() == []


def test_gaps_are_put_to_the_person_who_extends_the_limits(env: dict[str, str], terminal: Spawn) -> None:
    with Endpoint(
        {"goal": "g", "steps": [step("a", tools=["look"]), step("b", "a", tools=["look"])]}
    ) as endpoint:
        endpoint.finding = lambda brief: (
            finding_of(brief, f"s-{brief['step']['id']}")
            if brief["turns"]
            else ("look", {"query": brief["step"]["id"]})
        )
        env |= endpoint.environment
        options = ("--tools", SPEC, "--max-tool-calls", "1", "--on-gaps", "ask")
        child = terminal("run", "x", "--thread", "t", *options)
        child.expect("would end here with gaps: the tool calls are used up")
        child.expect("used: tool calls 1/1")
        child.expect("What now")
        child.sendline("")
        child.expect("Please answer with a, x, h or s")
        child.sendline("x")
        child.expect("More tool calls")
        child.sendline("many")
        child.expect("a number from 0 on")
        child.expect("More tool calls")
        child.sendline("4")
        child.expect("More replans")
        child.sendline("")
        child.expect("More seconds")
        child.sendline("")
        assert "completed (approved)" in rest(child)
        assert endpoint.steps_asked().count("a") == 2  # a tool call, and a finding


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

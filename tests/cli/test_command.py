"""The command with the real graph: in this process where that is enough, else in one of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.events import RUN_EVENT
from tests.cli.conftest import COMMAND, ROOT, Ran
from tests.cli.endpoint import Endpoint, step

Here = Callable[..., tuple[int, str, str]]
COMPETITORS = str(ROOT / "examples" / "competitors")
OBJECTIVE = "Compare the latest release, the price per seat and the main user complaints of the five vendors"
PLAN = {"goal": "The goal", "steps": [step("a"), step("b", "a")]}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(PLAN) as endpoint:
        yield endpoint


def error_line(err: str) -> str:
    """Return the one line of an error."""
    (line,) = err.splitlines()
    assert line.startswith("planweave: ")
    return line


def test_help_loads_neither_langchain_nor_langgraph() -> None:
    script = (
        "import sys; from cli.main import main\n"
        "assert main(['--help']) == 0 and main(['run', '--help']) == 0\n"
        "heavy = ('langchain', 'langgraph', 'openai', 'pydantic_settings', 'graph', 'duckdb')\n"
        "print([name for name in sys.modules if name.split('_')[0].split('.')[0] in heavy])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, cwd=ROOT, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_help_documents_the_exit_codes_in_both_languages(here: Here) -> None:
    for language, word in (("en", "5 waiting for a person"), ("zh", "5 等待人工答复")):
        code, out, _ = here("run", "--help", "--lang", language)
        assert code == 0
        assert word in " ".join(out.split())
        assert "help." not in out


def test_version(here: Here) -> None:
    code, out, _ = here("--version")
    assert code == 0
    assert out.startswith("planweave 0")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "x", "--mode", "guess"),
        ("run", "x", "--max-parallel", "0"),
        ("run", "x", "--docs", "nowhere"),
        ("run", " "),
        ("run", "x" * 20_001),
        ("frobnicate",),
        ("threads", "--lang", "fr"),
        ("show", "nope"),
        ("resume", "nope"),
        ("approve", "nope"),
        ("edit", "nope", "--file", "nowhere.yaml"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(here: Here, arguments: tuple[str, ...]) -> None:
    code, _, err = here(*arguments)
    assert code == 2
    error_line(err.replace(_offline_line(err), ""))


def _offline_line(err: str) -> str:
    return next((line + "\n" for line in err.splitlines() if line.startswith("no model is configured")), "")


def test_c49_a_missing_key_is_one_line_before_any_planning(here: Here) -> None:
    code, out, err = here("run", "x", "--thread", "t", AGENT_MODEL="openai:gpt-5-mini")
    assert code == 2
    assert "OPENAI_API_KEY" in error_line(err)
    assert out == ""


def test_a_traceback_is_shown_with_debug_only(here: Here) -> None:
    _, _, err = here("show", "nope", "--debug")
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("planweave: ")


def test_storage_that_cannot_be_used_is_one_line_and_exit_4(here: Here, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    code, _, err = here("run", "x", PLANWEAVE_HOME=str(file))
    assert code == 4
    assert "PLANWEAVE_HOME" in error_line(err)


def test_the_example_ends_partial_with_its_gap_named_and_piped_text_plain(
    planweave: Callable[..., Ran],
) -> None:
    ran = planweave("run", OBJECTIVE, "--docs", COMPETITORS, "--thread", "demo")
    out, err = ran.stdout.decode(), ran.stderr.decode()
    assert ran.returncode == 3, err
    assert "\x1b" not in out + err
    assert "## " in out
    assert "ostrevo" in out.lower()
    assert out.splitlines()[-1].startswith("partial (")
    assert out.splitlines()[-1].endswith("thread demo")
    (line,) = err.splitlines()
    assert line.startswith("no model is configured")
    assert all(name in line for name in ("AGENT_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "quotes"))

    shown = planweave("show", "demo", "--evidence").stdout.decode()
    assert "unsupported_claim" in shown or "criteria_unmet" in shown
    assert "pricing.md#L" in shown
    assert "Gaps\n- ostrevo" in shown


def test_json_is_one_event_per_line_and_the_output_last(here: Here) -> None:
    code, out, err = here("run", OBJECTIVE, "--docs", COMPETITORS, "--json")
    assert code == 3
    *events, output = [json.loads(line) for line in out.splitlines()]
    kinds = [RUN_EVENT.validate_python(event).type for event in events]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
    assert {"plan_ready", "step_started", "tool_started", "tool_finished", "step_finished", "reviewed"} <= {
        *kinds
    }
    assert output["type"] == "output"
    assert output["status"] == "partial"
    assert output["final_answer"]
    assert output["messages"][-1] == {"role": "assistant", "content": output["final_answer"]}
    assert output["sources"]
    # The new thread's id is a note, not output.
    assert output["thread_id"] in err


def test_chinese_texts(here: Here) -> None:
    code, out, err = here("run", OBJECTIVE, "--docs", COMPETITORS, "--lang", "zh")
    assert code == 3
    assert err.startswith("未配置模型")
    assert "部分完成" in out


def test_a_completed_run_exits_0_and_limits_reach_it(here: Here, endpoint: Endpoint) -> None:
    code, out, err = here(
        "run", "x", "--thread", "t", "--max-steps", "7", "--max-tool-calls", "5", **endpoint.environment
    )
    assert (code, err) == (0, "")
    assert "b: passed" in out
    assert out.splitlines()[-1].startswith("completed (approved)")
    assert endpoint.requests[0]["limits"] == {"max_steps": 7, "tool_budget": 5}


def test_the_objective_is_read_from_standard_input(planweave: Callable[..., Ran], endpoint: Endpoint) -> None:
    ran = planweave("run", "-", "--thread", "t", stdin="查找 😀".encode() + b" \xff", **endpoint.environment)
    assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
    assert endpoint.requests[0]["objective"] == "查找 😀 \ufffd"


def test_a_plan_that_is_never_valid_exits_4(here: Here) -> None:
    with Endpoint({"steps": [step("a", "a")]}) as endpoint:
        code, out, _ = here("run", "x", "--thread", "t", **endpoint.environment)
    assert code == 4
    assert out.splitlines()[-1].startswith("failed (plan_invalid)")


def test_c48_any_text_on_an_ascii_terminal(planweave: Callable[..., Ran], endpoint: Endpoint) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    endpoint.answer = "答案 \ud83d 😀 \x00 \x1b[31mred \u202e end"
    endpoint.finding = _hostile
    more = ascii_only | endpoint.environment
    ran = planweave("run", "查找 😀 ①", "--thread", "线程", **more)
    assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
    out = ran.stdout.decode()  # valid UTF-8
    assert not {"\x1b", "\x00", "\u202e"} & {*out}
    assert "😀" in out
    assert "thread 线程" in out
    assert {brief["objective"] for brief in endpoint.requests} == {"查找 😀 ①"}

    for options in (["--evidence"], ["--json"]):
        shown = planweave("show", "线程", *options, **more)
        assert shown.returncode == 0, shown.stderr
        assert not {"\x1b", "\x00", "\u202e"} & {*shown.stdout.decode()}


def _hostile(brief: dict[str, Any]) -> Any:
    criteria = [
        {"criterion": text, "met": True, "reason": "\x1b]0;x\x07\x00"}
        for text in brief["step"]["success_criteria"]
    ]
    return "Finding", {
        "summary": "\x1b[2J\u202e {braces}",
        "source_ids": [],
        "criteria": criteria,
        "missing": [],
    }


def test_review_without_a_terminal_pauses_says_how_to_answer_and_exits_5(
    here: Here, endpoint: Endpoint
) -> None:
    code, out, _ = here("run", "x", "--thread", "t", "--review-plan", **endpoint.environment)
    assert code == 5
    assert "Plan 1 by the planner: 2 steps in 2 waves" in out
    for command in ("approve", "edit", "revise", "cancel"):
        assert f"planweave {command} t" in out
    assert endpoint.steps_asked() == []
    assert "waiting" in here("threads")[1]
    assert here("resume", "t")[0] == 5
    assert endpoint.steps_asked() == []

    code, out, _ = here("approve", "t")
    assert code == 0
    assert endpoint.steps_asked() == ["a", "b"]
    code, _, err = here("approve", "t")
    assert code == 2
    assert "no plan that waits" in error_line(err)


def test_a_plan_can_be_edited_revised_and_cancelled(here: Here, endpoint: Endpoint, tmp_path: Path) -> None:
    here("run", "x", "--thread", "t", "--review-plan", **endpoint.environment)
    code, out, _ = here("show", "t", "--plan")
    file = tmp_path / "plan.yaml"
    file.write_text(out.replace("depends_on:\n  - a", "depends_on:\n  - ghost"), encoding="utf-8")
    code, _, err = here("edit", "t", "--file", str(file))
    assert code == 2
    assert "'b' depends on unknown steps: 'ghost'" in error_line(err)

    code, out, _ = here("revise", "t", "use fewer steps")
    assert code == 5
    assert endpoint.requests[-1]["feedback"] == ["use fewer steps"]

    file.write_text('{"goal": "mine", "steps": [' + json.dumps(step("only")) + "]}", encoding="utf-8")
    code, out, _ = here("edit", "t", "--file", str(file), "--json")
    assert code == 0
    assert endpoint.steps_asked() == ["only"]
    assert json.loads(out.splitlines()[-1])["plan"]["created_by"] == "human"

    here("run", "x", "--thread", "t2", "--review-plan")
    code, out, _ = here("cancel", "t2")
    assert code == 4
    assert out.splitlines()[-1].startswith("cancelled (plan_rejected)")


def test_sigterm_stops_in_good_order_and_resume_does_no_work_twice(
    env: dict[str, str], tmp_path: Path, here: Here
) -> None:
    with Endpoint(PLAN, held=frozenset({"b"})) as endpoint:
        env |= endpoint.environment
        run = [*COMMAND, "run", "x", "--thread", "t"]
        with subprocess.Popen(run, stdout=-1, stderr=-1, env=env, cwd=tmp_path) as process:
            assert endpoint.reached.wait(30)
            code, _, err = here("run", "y", "--thread", "t", **endpoint.environment)
            assert code == 2
            assert "busy" in error_line(err)
            assert "running" in here("threads")[1]

            process.terminate()
            _, stopped = process.communicate(timeout=30)
        assert process.returncode == 143
        assert stopped.decode() == "stopped; what has finished is kept: planweave resume t\n"
        assert "interrupted" in here("threads")[1]

        endpoint.release()
        assert here("resume", "t")[0] == 0
        assert endpoint.steps_asked() == ["a", "b", "b"]


def test_a_run_killed_while_planning_goes_on_in_its_folders_and_limits(
    env: dict[str, str], tmp_path: Path, here: Here
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "note.md").write_text("# Note\n\nThe price is 7.\n")
    with Endpoint(PLAN, held=frozenset({"planner"})) as endpoint:
        env |= endpoint.environment
        run = [*COMMAND, "run", "x", "--thread", "t", "--docs", "docs", "--max-steps", "6"]
        with subprocess.Popen(run, stdout=-1, stderr=-1, env=env, cwd=tmp_path) as process:
            assert endpoint.reached.wait(30)
            process.kill()
            process.communicate(timeout=30)
        endpoint.release()
        assert here("resume", "t", **endpoint.environment)[0] == 0
        before, after = (brief for brief in endpoint.requests if brief["role"] == "planner")
    assert after == before
    assert after["limits"]["max_steps"] == 6
    assert [tool["name"] for tool in after["tools"]] == ["search_documents", "read_document"]


def test_threads_lists_the_latest_first_and_show_prints_json(here: Here, endpoint: Endpoint) -> None:
    for name in ("one", "two"):
        here("run", f"objective {name}", "--thread", name, **endpoint.environment)
    code, out, _ = here("threads", "--json")
    assert code == 0
    assert [(t["thread_id"], t["status"], t["objective"]) for t in json.loads(out)] == [
        ("two", "completed", "objective two"),
        ("one", "completed", "objective one"),
    ]
    shown = json.loads(here("show", "one", "--json")[1])
    assert (shown["objective"], shown["status"], shown["plan"]["goal"]) == (
        "objective one",
        "completed",
        "The goal",
    )


def test_tools_and_graph(here: Here) -> None:
    code, out, _ = here("tools", "--docs", COMPETITORS)
    assert code == 0
    assert "search_documents\tread\tyes\t" in out
    assert here("tools")[2].startswith("no tools")
    code, out, _ = here("graph")
    assert code == 0
    assert "schedule -.-> execute" in out.replace("&nbsp;", " ") or "schedule -.->" in out


def test_stream_plan_reaches_the_planner_and_a_server_that_does_not_stream_is_asked_for_the_whole(
    here: Here, endpoint: Endpoint
) -> None:
    code, out, _ = here("run", "x", "--thread", "t", "--stream-plan", **endpoint.environment)
    assert code == 0, out
    asked = [brief["role"] for brief in endpoint.requests]
    assert asked.count("planner") > 1  # first as a stream
    assert endpoint.steps_asked() == ["a", "b"]

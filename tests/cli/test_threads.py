"""Threads seen, forked, extended, removed and pruned from the command line."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.forks import size
from cli.history import changed
from cli.texts import Texts
from cli.threads import age
from tests.cli.conftest import COMMAND, ROOT, Here, Spawn, rest
from tests.cli.endpoint import Endpoint, finding_of, step
from tests.cli.own import SPEC

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
COMPETITORS = str(ROOT / "examples" / "competitors")
OBJECTIVE = "Compare the latest release, the price per seat and the main user complaints of the five vendors"
PLAN = {
    "goal": "The goal",
    "steps": [step("a", tools=["look"]), step("b", "a", tools=["look"]), step("c", "b", tools=["look"])],
}


def work(brief: dict[str, Any]) -> Any:
    name = brief["step"]["id"]
    return finding_of(brief, f"s-{name}") if brief["turns"] else ("look", {"query": name})


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(PLAN) as endpoint:
        endpoint.finding = work
        yield endpoint


def run(here: Here, endpoint: Endpoint, *options: str, thread: str = "t") -> int:
    return here("run", "find it", "--thread", thread, "--tools", SPEC, *options, **endpoint.environment)[0]


def history(here: Here, thread: str = "t") -> list[dict[str, Any]]:
    return json.loads(here("show", thread, "--history", "--json")[1])


def number_before(here: Here, node: str) -> str:
    return str(next(row["step"] for row in history(here) if node in row["next"]))


def test_a_run_stopped_by_its_budget_goes_on_in_its_terms_and_repeats_nothing(
    here: Here, endpoint: Endpoint
) -> None:
    assert run(here, endpoint, "--max-tool-calls", "1", "--max-steps", "5") == 3
    assert here("resume", "t")[0] == 2
    code, out, err = here("resume", "t", "--add-tool-calls", "10")
    assert code == 0, err
    assert out.splitlines()[-1].startswith("completed (approved)")
    # Each step twice: its tool call, and its finding.
    assert endpoint.steps_asked() == ["a", "a", "b", "b", "c", "c"]
    assert here("resume", "t", "--add-tool-calls", "1")[0] == 2
    assert here("resume", "nope", "--add-seconds", "1")[0] == 2
    assert here("resume", "t", "--add-replans", "-1")[0] == 2
    changes = [change for row in history(here) for change in row["changes"]]
    assert "other limits" in changes


def test_the_versions_of_a_real_run_are_shown_with_reasons(here: Here) -> None:
    here("run", OBJECTIVE, "--docs", COMPETITORS, "--thread", "t")
    code, out, _ = here("show", "t", "--plans")
    assert code == 0
    assert "Plan 1 by the planner: 12 steps" in out
    assert "Plan 2 by the replanner, from plan 1" in out
    assert "reason: gaps in: ostrevo-price-seat" in out
    assert "-  ostrevo-price-seat  dropped, replaced by ostrevo-price-seat-2" in out
    assert re.search(r"=  kept  .*brindlepath-price-seat", out)
    versions = json.loads(here("show", "t", "--plans", "--json")[1])
    assert "ostrevo-price-seat-2" in versions[1]["changes"]["added"]
    for language, words in (("en", "tarnwick"), ("zh", "计划 2（重新计划者")):
        assert words in here("show", "t", "--plans", "--lang", language)[1]


def test_the_history_tells_what_changed_at_each_checkpoint(here: Here, endpoint: Endpoint) -> None:
    run(here, endpoint)
    rows = history(here)
    assert [row["node"] for row in rows] == [
        "input",
        "start",
        "plan",
        "schedule",
        "execute",
        "schedule",
        "review",
        "finish",
    ]
    assert rows[1]["changes"] == ["objective: find it"]
    assert rows[2]["changes"] == ["plan 1 by the planner: 3 steps"]
    assert rows[4]["changes"] == ["passed: a, b, c"]
    assert (rows[6]["changes"], rows[7]["changes"]) == (["review: approved"], ["completed"])
    assert (rows[3]["next"], rows[7]["next"]) == (["execute"], [])
    code, out, _ = here("show", "t", "--history")
    assert code == 0
    assert "plan 1 by the planner: 3 steps" in out
    assert "planweave fork t --at" in out
    assert here("show", "t", "--history", "--plans")[0] == 2


def test_a_fork_runs_anew_from_a_checkpoint_and_the_original_stays(here: Here, endpoint: Endpoint) -> None:
    run(here, endpoint)
    before = history(here)
    code, out, _ = here("fork", "t", "--at", number_before(here, "schedule"), "--thread", "f")
    assert code == 0
    assert "to run: a, b, c" in out
    assert "planweave resume f" in out
    assert "interrupted" in here("threads")[1]
    assert here("resume", "f")[0] == 0
    assert endpoint.steps_asked().count("a") == 4
    assert history(here) == before
    assert "fork of t" in here("show", "f", "--history")[1]
    assert here("fork", "t", "--at", "3", "--thread", "f")[0] == 2


def test_a_fork_with_other_evidence_runs_only_what_stands_behind_it(
    here: Here, endpoint: Endpoint, tmp_path: Path
) -> None:
    run(here, endpoint)
    file = tmp_path / "edit.yaml"
    file.write_text("evidence:\n- step_id: b\n  summary: b is 7\n", encoding="utf-8")
    last = history(here)[-1]["checkpoint_id"]
    code, out, err = here("fork", "t", "--at", last, "--edit", str(file), "--json")
    assert code == 0, err
    forked = json.loads(out)
    assert (forked["kept"], forked["open"]) == (["a", "b"], ["c"])
    assert here("resume", forked["thread_id"])[0] == 0
    assert endpoint.steps_asked() == ["a", "a", "b", "b", "c", "c", "c", "c"]
    assert "b is 7" in str(endpoint.requests[-3])
    file.write_text("evidence:\n- step_id: zzz\n", encoding="utf-8")
    assert here("fork", "t", "--at", last, "--edit", str(file))[0] == 2
    assert here("fork", "t", "--at", "99")[0] == 2
    assert here("fork", "t", "--at", "3", "--edit")[0] == 2
    assert len(json.loads(here("threads", "--json")[1])) == 2


def test_a_fork_is_edited_in_the_editor(
    env: dict[str, str], terminal: Spawn, here: Here, endpoint: Endpoint
) -> None:
    run(here, endpoint)
    env["EDITOR"] = "sed -i 's/^again: .*/again: [c]/'"
    last = str(history(here)[-1]["step"])
    printed = rest(terminal("fork", "t", "--at", last, "--edit", "--thread", "f"))
    assert "kept: a, b" in printed
    assert "to run: c" in printed
    env["EDITOR"] = "true"
    assert "no fork was made" in rest(terminal("fork", "t", "--at", last, "--edit"))


def test_a_thread_is_removed_only_after_a_yes(
    env: dict[str, str], terminal: Spawn, here: Here, endpoint: Endpoint
) -> None:
    run(here, endpoint)
    assert here("rm", "t")[0] == 2
    child = terminal("rm", "t")
    child.expect("Delete thread t \\(find it\\)")
    child.sendline("")
    rest(child)
    assert child.exitstatus == 4
    assert here("show", "t")[0] == 0
    code, out, _ = here("rm", "t", "--yes")
    assert (code, out) == (0, "deleted: t\n")
    assert here("show", "t")[0] == 2
    assert here("rm", "t", "--yes")[0] == 2


def test_pruning_says_what_it_has_freed(here: Here, endpoint: Endpoint) -> None:
    run(here, endpoint)
    run(here, endpoint, thread="u")
    here("rm", "u", "--yes")
    assert here("prune", "--history")[0] == 2
    code, out, _ = here("prune", "--history", "--yes", "--json")
    assert code == 0
    freed = json.loads(out)
    assert freed["checkpoints"] == 7
    assert freed["bytes"] > 0
    assert here("show", "t")[0] == 0
    assert re.match(r"freed 0 B \(0 bytes\)", here("prune")[1])


def test_threads_tell_what_each_has_cost(here: Here, endpoint: Endpoint) -> None:
    run(here, endpoint)
    (thread,) = json.loads(here("threads", "--json")[1])
    # The planner, three steps of two answers each, the reviewer, the writer.
    assert (thread["tool_calls"], thread["model_calls"], thread["tokens"]) == (3, 9, 18)
    header, line = here("threads")[1].splitlines()
    assert header.split("\t") == ["thread", "status", "age", "tools", "models", "tokens", "objective"]
    assert re.fullmatch(r"t\tcompleted\t\d+ s\t3\t9\t18\tfind it", line)


def test_until_a_second_objective_has_a_plan_the_first_ones_is_not_shown(
    env: dict[str, str], here: Here, tmp_path: Path
) -> None:
    with Endpoint(PLAN) as first:
        first.finding = work
        run(here, first)
    with Endpoint(PLAN, held=frozenset({"planner"})) as endpoint:
        command = [*COMMAND, "run", "the second", "--thread", "t"]
        with subprocess.Popen(
            command, stdout=-1, stderr=-1, env=env | endpoint.environment, cwd=tmp_path
        ) as process:
            assert endpoint.reached.wait(30)
            process.kill()
            process.communicate(timeout=30)
        endpoint.release()
        shown = json.loads(here("show", "t", "--json")[1])
        assert (shown["objective"], shown["status"], shown["plan"]) == ("the second", "interrupted", None)
        assert (shown["final_answer"], shown["evidence"], shown["usage"]["tool_calls"]) == ("", [], 0)
        (thread,) = json.loads(here("threads", "--json")[1])
        assert (thread["status"], thread["stop_reason"], thread["tokens"]) == ("interrupted", None, 0)
        assert "The goal" not in here("show", "t")[1]
        assert here("show", "t", "--plans")[0] == 2
        endpoint.finding = work
        code, out, _ = here("resume", "t", "--tools", SPEC, **endpoint.environment)
        assert code == 0, out
        # Nothing of the first run is counted as done.
        assert "steps 1/3" in out


@pytest.mark.parametrize(("seconds", "words"), [(5, "5 s"), (61, "1 min"), (7200, "2 h"), (200_000, "2 d")])
def test_an_age_is_told_in_its_largest_unit(seconds: int, words: str) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now, Texts("en")) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB")]
)
def test_bytes_are_told_in_a_unit_that_is_easy_to_read(count: int, words: str) -> None:
    assert size(count) == words


def test_what_an_earlier_objective_has_left_is_no_news() -> None:
    before = {"run_id": "1", "planned_run_id": "1", "status": "completed", "stop_reason": "approved"}
    after = before | {"run_id": "2", "objective": "next"}
    assert changed(before, after, Texts("en")) == ["objective: next"]
    planned = after | {"planned_run_id": "2", "status": "running", "stop_reason": None}
    assert changed(after, planned, Texts("en")) == []


def test_a_run_whose_tokens_were_used_goes_on_with_more(here: Here, endpoint: Endpoint) -> None:
    # Each answer of the endpoint costs two tokens: the plan and the first step use them up.
    assert run(here, endpoint, "--max-tokens", "4") == 3
    assert here("resume", "t", "--add-steps", "-1")[0] == 2
    code, out, err = here("resume", "t", "--add-tokens", "1000", "--add-steps", "1")
    assert code == 0, err
    assert out.splitlines()[-1].startswith("completed (approved)")

"""Invariant 13 beside a planner: kill -9 while it writes, and after; finished steps and tool calls are not done again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.backends import Backend

ROOT = Path(__file__).parents[2]
Event = dict[str, Any]


def life(
    home: Path, mode: str, *options: str, until: Callable[[list[Event]], bool] | None = None
) -> list[Event]:
    """Run the driver; kill it with SIGKILL as soon as `until` is true of what it has told. Return all that."""
    command = [sys.executable, "-m", "tests.kill.streamed", str(home), mode, *options]
    told: list[Event] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(json.loads(line))
            if until is not None and until(told):
                process.kill()
                break
        rest = process.stdout.read()
    return [*told, *map(json.loads, rest.splitlines())]


def bodies(home: Path) -> Counter[str]:
    return Counter((home / "bodies.log").read_text().split())


def a_is_done_and_b_at_work(told: list[Event]) -> bool:
    kinds = [(e.get("type"), e.get("step_id")) for e in told]
    return ("step_finished", "a") in kinds and ("tool_started", "b") in kinds


def database(backend: Backend) -> list[str]:
    return ["--database", backend.url] if backend.url else []


def test_invariant_13_killed_while_the_planner_writes_the_same_plan_goes_on(backend: Backend) -> None:
    where = database(backend)
    told = life(backend.home, "run", "--pause", *where, until=a_is_done_and_b_at_work)
    assert "plan_ready" not in [e.get("type") for e in told]
    done = life(backend.home, "resume", *where)[-1]["done"]
    ran = bodies(backend.home)
    # What was at work in the kill only reads: it runs again, and counts again. The planner is asked again.
    assert ran == {"planner": 2, "a": 1, "a-more": 1, "b": 2, "b-more": 1, "c": 1, "c-more": 1}
    assert done["usage"]["tool_calls"] == ran.total() - ran["planner"] == 7
    assert done["status"] == "completed"
    assert sorted(e["step_id"] for e in done["evidence"]) == ["a", "b", "c"]
    assert {e["plan_version"] for e in done["evidence"]} == {1}


def test_invariant_13_killed_while_the_planner_writes_another_plan_keeps_what_matches(
    backend: Backend,
) -> None:
    where = database(backend)
    life(backend.home, "run", "--pause", *where, until=a_is_done_and_b_at_work)
    done = life(backend.home, "resume", "--plan", "other", *where)[-1]["done"]
    ran = bodies(backend.home)
    assert ran == {"planner": 2, "a": 1, "a-more": 1, "b": 1, "c": 1, "c-more": 1}
    assert done["usage"]["tool_calls"] == 5
    assert done["status"] == "completed"
    found = {e["step_id"]: (e["passed"], e["error_type"], e["plan_version"]) for e in done["evidence"]}
    assert found == {"a": (True, None, 2), "b": (False, "cancelled", 1), "c": (True, None, 2)}


def test_invariant_13_killed_once_the_plan_is_whole_the_planner_is_not_asked_again(tmp_path: Path) -> None:
    def whole(told: list[Event]) -> bool:
        return [e for e in told if e.get("type") == "plan_ready"] != [] and told[-1]["type"] == "tool_started"

    told = life(tmp_path, "run", until=whole)
    if "done" in told[-1]:
        pytest.fail("the run had ended before it could be killed")
    done = life(tmp_path, "resume")[-1]["done"]
    assert bodies(tmp_path)["planner"] == 1
    assert (done["status"], done["usage"]["by_role"]["planner"]["Role"]["model_calls"]) == ("completed", 1)


@pytest.mark.parametrize("moment", range(2, 18, 3))
@pytest.mark.parametrize("plan", ["same", "other"])
def test_invariant_13_killed_at_any_event_nothing_is_repeated_lost_or_doubled(
    moment: int, plan: str, tmp_path: Path
) -> None:
    told = life(tmp_path, "run", until=lambda told: len(told) == moment)
    kept = Counter((e["step_id"], e["tool"]) for e in told if e.get("type") == "tool_finished")
    ended = {e["step_id"] for e in told if e.get("type") == "step_finished"}
    before = bodies(tmp_path)
    done = life(tmp_path, "resume", "--plan", plan)[-1]["done"]
    after = bodies(tmp_path)
    again = Counter({name: after[name] - before[name] for name in before if name != "planner"})
    for step_id in ended:
        assert again[step_id] == again[f"{step_id}-more"] == 0, f"{step_id} had ended"
    for (step_id, _), calls in kept.items():
        assert again[step_id] == 0 or calls == 0, f"a call of {step_id} had ended"
    assert done["status"] == "completed"
    ran = after.total() - after["planner"]
    # A kill between the record of a call and its body counts a run that never was: at most one for each step at work.
    assert ran <= done["usage"]["tool_calls"] <= ran + 2
    records = [(e["step_id"], e["attempt"]) for e in done["evidence"]]
    assert len(set(records)) == len(records)
    assert {e["step_id"] for e in done["evidence"] if e["passed"]} >= {"a", "c"}

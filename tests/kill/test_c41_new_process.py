"""C41: paused or killed in one process, ended in another, with and without strict msgpack: the same run, in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill.lives import Nursery, Order, alone, timeless

STRICT = {"LANGGRAPH_STRICT_MSGPACK": "true"}
KINDS = {
    "choices": "RunContext",
    "limits": "RunLimits",
    "plan": "Plan",
    "plans": "Plan",
    "evidence": "Evidence",
    "sources": "Source",
    "usage": "Usage",
    "review": "Review",
}


@pytest.mark.parametrize(("env", "own"), [({}, False), (STRICT, False), (STRICT, True)])
def test_c41_approved_in_a_new_process_the_run_is_the_same(
    env: dict[str, str], own: bool, nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    paused = nursery.live(Order(tmp_path, review="first", own=own))["done"]
    assert [q["question"]["kind"] for q in paused["questions"]] == ["approve"]
    found, said = alone(tmp_path, "approve", *(["--own"] if own else []), **env)
    done = found["done"]
    assert said == "", "not a word, and no warning"
    assert timeless(done["evidence"]) == timeless(undisturbed["evidence"])
    assert done["final_answer"] == undisturbed["final_answer"]
    assert done["limits"] == undisturbed["limits"]
    assert {key: done["kinds"][key] for key in KINDS} == KINDS


def test_c41_killed_in_a_wave_and_resumed_under_strict_msgpack(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    nursery.kill_at(Order(tmp_path, stop="wave"))
    found, said = alone(tmp_path, "resume", **STRICT)
    assert said == ""
    assert timeless(found["done"]["evidence"]) == timeless(undisturbed["evidence"])
    assert found["done"]["final_answer"] == undisturbed["final_answer"]
    assert {key: found["done"]["kinds"][key] for key in KINDS} == KINDS

"""Invariant 13 at random moments: kill -9, resume, up to three times a run. KILL_SEEDS=300 makes more of them."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.kill.lives import Nursery, Order, Remains, timeless

SEEDS = range(int(os.environ.get("KILL_SEEDS", "20")))
MAX_KILLS = 3


@pytest.mark.parametrize("seed", SEEDS)
def test_invariant_13_kill_9_at_any_moment_repeats_loses_and_doubles_nothing(
    seed: int, nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    moments = random.Random(seed)
    remains = Remains(tmp_path)
    mode = "run"
    for _ in range(moments.randint(1, MAX_KILLS)):
        found = nursery.live(Order(tmp_path, mode), moments.uniform(0, undisturbed["seconds"]))
        if "killed" not in found:
            break
        remains.note_kill()
        mode = "resume"
    found = nursery.live(Order(tmp_path, "resume"))
    if "no such thread" in found.get("line", ""):  # killed before the objective was stored
        found = nursery.live(Order(tmp_path))
    done = found["done"]

    assert remains.repeated() == []
    assert timeless(done["evidence"]) == timeless(undisturbed["evidence"])
    assert timeless(done["sources"]) == timeless(undisturbed["sources"])
    assert done["final_answer"] == undisturbed["final_answer"]
    assert (done["status"], done["stop_reason"]) == (undisturbed["status"], undisturbed["stop_reason"])
    bodies = remains.starts().total() + remains.unstarted.total()
    assert done["usage"]["tool_calls"] == bodies
    assert sum(e["tool_calls"] for e in done["evidence"]) == bodies
    assert done["limits"] == undisturbed["limits"]
    assert remains.kept("ledger") == remains.kept("finished") == []
    assert remains.worker_rows() == 0

"""Invariant 13 at random moments: kill -9, resume, up to three times a run. KILL_SEEDS=300 makes more of them."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.kill.lives import Nursery, Order, Remains

SEEDS = range(int(os.environ.get("KILL_SEEDS", "20")))
MAX_KILLS = 3
# From the end of a body until its result is recorded it counts as running: the time that may take.
GRACE_NS = 20_000_000
TIMES = ("started_at", "finished_at", "retrieved_at", "tool_calls")


@pytest.fixture(scope="module")
def nursery() -> Nursery:
    return Nursery()


@pytest.fixture(scope="module")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("undisturbed")
    found = nursery.live(Order(home))
    return found["done"] | {"seconds": found["seconds"]}


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
        remains.note_kill(found["killed"])
        mode = "resume"
    found = nursery.live(Order(tmp_path, "resume"))
    if "no such thread" in found.get("line", ""):  # killed before the objective was stored
        found = nursery.live(Order(tmp_path))
    done = found["done"]

    assert repeated(remains) == []
    assert timeless(done["evidence"]) == timeless(undisturbed["evidence"])
    assert timeless(done["sources"]) == timeless(undisturbed["sources"])
    assert done["final_answer"] == undisturbed["final_answer"]
    assert (done["status"], done["stop_reason"]) == (undisturbed["status"], undisturbed["stop_reason"])
    bodies = remains.starts().total() + remains.unstarted.total()
    assert done["usage"]["tool_calls"] == bodies
    assert sum(e["tool_calls"] for e in done["evidence"]) == bodies
    assert done["limits"] == undisturbed["limits"]
    assert remains.ledger() == []
    assert remains.worker_rows() == 0


def repeated(remains: Remains) -> list[str]:
    """Return the calls that started again although they were finished: known to be, or ended in good time."""
    finished: set[str] = set()
    ended: dict[str, int] = {}
    wrong: list[str] = []
    for word, name, ns in remains.lines():
        if word == "start" and name in finished:
            wrong.append(f"{name} was recorded as finished")
        elif word == "start" and name in ended:
            kill = min(k for k in remains.kills if k > ended[name])
            if kill - ended[name] > GRACE_NS:
                wrong.append(f"{name} had ended {(kill - ended[name]) / 1e6:.1f} ms before the kill")
        elif word == "end":
            ended[name] = ns
        elif word == "kept":
            finished.add(name)
    return wrong


def timeless(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [{k: v for k, v in record.items() if k not in TIMES} for record in records]
    return sorted(kept, key=lambda r: (r["step_id"], r.get("attempt", 0), r.get("id", "")))

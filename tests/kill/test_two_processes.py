"""Invariant 14 across processes: one run per thread, by a lock that a kill frees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kill.lives import Nursery, Order, Remains


def test_invariant_14_a_second_process_is_refused_and_after_a_kill_let_in(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    with nursery.life(Order(tmp_path, stop="body:d1")) as first:
        assert first.reports.recv() == {"at": "body:d1"}
        for mode in ("run", "resume", "approve"):
            refused = nursery.live(Order(tmp_path, mode))
            assert refused["error"] == "ThreadBusy"
            assert "killed" in refused["line"], "the thread is named"
            assert "\n" not in refused["line"]
        before = Remains(tmp_path).starts()
        first.kill()
    assert before == Remains(tmp_path).starts()
    done = nursery.live(Order(tmp_path, "resume"))["done"]
    assert done["final_answer"] == undisturbed["final_answer"]


def test_invariant_14_after_a_kill_a_new_objective_starts_clean(nursery: Nursery, tmp_path: Path) -> None:
    nursery.kill_at(Order(tmp_path, stop="wave"))
    nursery.live(Order(tmp_path, "run", plan="record"))
    done = nursery.live(Order(tmp_path, "approve"))["done"]
    assert [e["step_id"] for e in done["evidence"]] == ["w"]
    assert done["usage"]["tool_calls"] == 2
    assert [m["role"] for m in done["messages"]] == ["user", "user", "assistant"]
    assert Remains(tmp_path).kept("ledger") == Remains(tmp_path).kept("finished") == []
    assert Remains(tmp_path).worker_rows() == 0

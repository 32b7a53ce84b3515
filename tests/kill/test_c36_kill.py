"""C36: kill -9 in plan, during a wave, in review, in finish; and the rule for what was half done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill.lives import Nursery, Order, Remains, timeless


@pytest.mark.parametrize(("stop", "bodies_left"), [("plan", 12), ("review", 3), ("finish", 0)])
def test_c36_killed_outside_steps_a_run_goes_on_where_it_was(
    stop: str, bodies_left: int, nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    nursery.kill_at(Order(tmp_path, stop=stop))
    before = Remains(tmp_path).starts().total()
    done = nursery.live(Order(tmp_path, "resume"))["done"]
    assert Remains(tmp_path).starts().total() - before == bodies_left
    assert done["final_answer"] == undisturbed["final_answer"]
    assert timeless(done["evidence"]) == timeless(undisturbed["evidence"])
    assert done["limits"] == undisturbed["limits"]


def test_c36_killed_during_a_wave_the_done_step_and_finished_calls_are_kept(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    nursery.kill_at(Order(tmp_path, stop="wave"))  # a is done, and call c3; b2 and c2 are at work
    done = nursery.live(Order(tmp_path, "resume"))["done"]
    starts = Remains(tmp_path).starts()
    # What was at work in the kill only reads: it runs again, and counts again. Nothing else does.
    assert {name for name, n in starts.items() if n > 1} == {"b2", "c2"}
    assert done["usage"]["tool_calls"] == starts.total()
    assert timeless(done["evidence"]) == timeless(undisturbed["evidence"])
    assert done["final_answer"] == undisturbed["final_answer"]


def test_c36_a_write_that_was_cut_off_is_not_repeated(nursery: Nursery, tmp_path: Path) -> None:
    paused = nursery.live(Order(tmp_path, plan="record"))["done"]
    assert [q["question"]["kind"] for q in paused["questions"]] == ["tool_approval"]
    nursery.kill_at(Order(tmp_path, "approve", stop="body:w1"))
    done = nursery.live(Order(tmp_path, "resume"))["done"]
    assert Remains(tmp_path).starts() == {"w1": 1, "w2": 1}
    assert done["usage"]["tool_calls"] == 2
    assert [s["id"] for s in done["sources"]] == ["s-w2"]

"""Invariant 13 on Postgres: kill -9 at random moments, up to three times a run. `make chaos` makes more of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill.lives import Nursery, Order, Remains
from tests.kill.trial import Trial, trial

SEEDS = range(1, 21, 2)


@pytest.fixture(scope="session")
def nursery() -> Nursery:
    return Nursery()


@pytest.fixture(scope="module")
def undisturbed(
    nursery: Nursery, postgres_server: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("undisturbed")
    found = nursery.live(Order(home, database=postgres_server.new_database()))
    return found["done"] | {"seconds": found["seconds"]}


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return []


@pytest.mark.parametrize("seed", SEEDS)
def test_invariant_13_kill_9_at_any_moment_repeats_loses_and_doubles_nothing(
    seed: int, nursery: Nursery, trials: list[Trial], postgres_url: str, tmp_path: Path
) -> None:
    found = trial(nursery, seed, tmp_path, postgres_url)
    trials.append(found)
    assert found.repeats == []
    assert found.losses == []


def test_the_kills_have_hit(trials: list[Trial]) -> None:
    if len(trials) < len(SEEDS):
        pytest.skip("counted where the whole matrix has run")
    assert sum(found.kills for found in trials) >= len(SEEDS)


def test_invariant_14_a_second_process_is_refused_and_after_a_kill_let_in(
    nursery: Nursery, undisturbed: dict[str, Any], postgres_url: str, tmp_path: Path
) -> None:
    with nursery.life(Order(tmp_path, stop="body:d1", database=postgres_url)) as first:
        assert first.reports.recv() == {"at": "body:d1"}
        for mode in ("run", "resume", "approve"):
            refused = nursery.live(Order(tmp_path, mode, database=postgres_url))
            assert refused["error"] == "ThreadBusy"
        before = Remains(tmp_path).starts()
        first.kill()
    assert before == Remains(tmp_path).starts()
    done = nursery.live(Order(tmp_path, "resume", database=postgres_url))["done"]
    assert done["final_answer"] == undisturbed["final_answer"]


def test_c36_a_write_that_was_cut_off_is_not_repeated(
    nursery: Nursery, postgres_url: str, tmp_path: Path
) -> None:
    nursery.live(Order(tmp_path, plan="record", database=postgres_url))
    nursery.kill_at(Order(tmp_path, "approve", stop="body:w1", database=postgres_url))
    done = nursery.live(Order(tmp_path, "resume", database=postgres_url))["done"]
    assert Remains(tmp_path).starts() == {"w1": 1, "w2": 1}
    assert [s["id"] for s in done["sources"]] == ["s-w2"]

"""Invariant 13 on Postgres: kill -9 at random moments, up to three times a run. KILL_SEEDS=300 makes more of them."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kill.lives import Nursery, Order, Remains, timeless

SEEDS = range(max(1, int(os.environ.get("KILL_SEEDS", "20")) // 2))
MAX_KILLS = 3
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@dataclass
class PostgresRemains(Remains):
    """What killed processes have left in a database."""

    url: str = ""

    def kept(self, what: str) -> list[dict[str, Any]]:
        rows = self.rows(f"SELECT value::text FROM store WHERE prefix LIKE 'planweave.{what}.%'")
        return [json.loads(value) for (value,) in rows]

    def worker_rows(self) -> int:
        counts = [self.rows(f"SELECT count(*) FROM {table} WHERE checkpoint_ns <> ''") for table in TABLES]
        return sum(count for ((count,),) in counts)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as conn:
            try:
                return conn.execute(sql.encode()).fetchall()
            except psycopg.errors.UndefinedTable:  # killed before they were made
                return []


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


@pytest.mark.parametrize("seed", SEEDS)
def test_invariant_13_kill_9_at_any_moment_repeats_loses_and_doubles_nothing(
    seed: int, nursery: Nursery, undisturbed: dict[str, Any], postgres_url: str, tmp_path: Path
) -> None:
    moments = random.Random(seed)
    remains = PostgresRemains(tmp_path, url=postgres_url)
    mode = "run"
    for _ in range(moments.randint(1, MAX_KILLS)):
        order = Order(tmp_path, mode, database=postgres_url)
        found = nursery.live(order, moments.uniform(0, undisturbed["seconds"]))
        if "killed" not in found:
            break
        remains.note_kill()
        mode = "resume"
    found = nursery.live(Order(tmp_path, "resume", database=postgres_url))
    if "no such thread" in found.get("line", ""):  # killed before the objective was stored
        found = nursery.live(Order(tmp_path, database=postgres_url))
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

"""Faults of a real Postgres under a run: connections cut, the server gone as in a crash, the thread taken by another process."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph import open_graph
from schemas.errors import StorageError
from tests.backends import Backend
from tests.conftest import Look
from tests.faults.disks import SmallDisk, small_disk
from tests.graph.test_persistence import one_line, scripted
from tests.kill.lives import Nursery, Order, PostgresRemains, timeless
from tests.kill.trial import losses, undisturbed
from tests.postgres.server import PostgresServer
from tests.postgres.test_database import run_sql
from tests.running import config

OTHERS = "datname = current_database() AND pid <> pg_backend_pid()"
CUT_POOL = f"""SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE {OTHERS} AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"""
CUT_ALL = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {OTHERS}"


@pytest.fixture
def backend(postgres_url: str, tmp_path: Path) -> Backend:
    return Backend(tmp_path, postgres_url)


@pytest.fixture(scope="module")
def nursery() -> Nursery:
    return Nursery()


async def test_a_pool_whose_connections_were_cut_makes_new_ones_and_the_run_goes_on(backend: Backend) -> None:
    tool = Look()
    cut: list[int] = []
    tool.before = lambda query: cut.append(run_sql(str(backend.url), CUT_POOL)[0][0])
    async with open_graph(backend.settings(), models=scripted("a", "b"), tools=[tool.tool()]) as graph:
        out = await graph.ainvoke({"objective": "find"}, config())
    assert (out["status"], tool.runs) == ("completed", ["a", "b"])
    assert min(cut) >= 1


async def test_invariant_13_a_server_that_crashed_and_came_back_costs_one_line_and_repeats_nothing_finished(
    backend: Backend, postgres_server: PostgresServer
) -> None:
    tool = Look()
    tool.before = lambda query: postgres_server.stop("immediate") if query == "b" else None
    settings = backend.settings(busy_timeout_seconds=1)
    async with open_graph(settings, models=scripted("a", "b", "c"), tools=[tool.tool()]) as graph:
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        postgres_server.start()
        assert one_line(caught.value, "resume")
        tool.before = None
        out = await graph.ainvoke(None, config())
    assert (out["status"], tool.runs) == ("completed", ["a", "b", "b", "c"])
    assert out["usage"].tool_calls == 4


@pytest.mark.parametrize("after", [1, 3, 6, 9])
def test_invariant_13_all_connections_cut_in_the_middle_of_a_run_in_a_process_of_its_own(
    after: int, nursery: Nursery, postgres_url: str, tmp_path: Path
) -> None:
    """Cut when so many tool bodies have begun; the process ends by itself, and another one goes on."""
    whole = undisturbed(nursery, "work")
    remains = PostgresRemains(tmp_path, url=postgres_url)
    with nursery.life(Order(tmp_path, database=postgres_url)) as life:
        while remains.starts().total() < after:
            assert not life.reports.poll(0.001)
        run_sql(postgres_url, CUT_ALL)
        found = life.reports.recv()
    remains.note_kill()
    if "error" in found:
        assert found["error"] == "StorageError"
        assert "resume" in found["line"]
        assert "\n" not in found["line"]
        found = nursery.live(Order(tmp_path, "resume", database=postgres_url))
    # Without a database nothing can be recorded, however long ago it has ended.
    assert remains.repeated(math.inf) == []
    assert losses(found["done"], whole, remains) == []
    assert timeless(found["done"]["evidence"]) == timeless(whole["evidence"])


async def test_invariant_14_a_process_that_lost_its_thread_unawares_can_neither_write_nor_begin_a_tool_call(
    backend: Backend,
) -> None:
    """Its connection lives, so that nothing tells it; only the lock is gone, and another process has taken the thread."""
    first, second = Look(), Look()
    entered, taken_over = asyncio.Event(), asyncio.Event()

    async def until_taken_over(query: str) -> None:
        entered.set()
        await taken_over.wait()

    first.before = until_taken_over
    roles: tuple[Any, Any] = (scripted("a", "b"), scripted("a", "b"))
    async with (
        open_graph(backend.settings(), models=roles[0], tools=[first.tool()]) as one,
        open_graph(backend.settings(), models=roles[1], tools=[second.tool()]) as other,
    ):
        run = asyncio.create_task(one.ainvoke({"objective": "find"}, config()))
        await entered.wait()
        await one.locks._conn.execute("SELECT pg_advisory_unlock_all()")
        # The worker's first answer is in the thread; the call that one is at work on only reads, and runs again.
        roles[1].worker.by_step["a"].pop(0)
        out = await other.ainvoke(None, config())
        assert (out["status"], second.runs) == ("completed", ["a", "b"])
        checkpoints = "SELECT count(*) FROM checkpoints"
        before = run_sql(str(backend.url), checkpoints)
        taken_over.set()
        with pytest.raises(StorageError) as caught:
            await run
        assert one_line(caught.value, "another process has taken over the thread")
        assert first.runs == ["a"], "nothing more is begun"
        assert run_sql(str(backend.url), checkpoints) == before
        ledgers = "SELECT count(*) FROM store WHERE prefix LIKE %s"
        assert run_sql(str(backend.url), ledgers, "planweave.ledger%") == [(0,)]


@pytest.fixture
def small_database(postgres_server: PostgresServer) -> Iterator[tuple[SmallDisk, str]]:
    """A database of its own on a disk of its own, which the server's user may write."""
    with tempfile.TemporaryDirectory(prefix="planweave-") as outer:
        Path(outer).chmod(0o755)
        with small_disk(Path(outer) / "disk") as disk:
            if disk is None:
                pytest.skip("this user may not mount a small file system")
            data = Path(run_sql(postgres_server.url, "SHOW data_directory")[0][0])
            place = disk.folder / "tables"
            place.mkdir()
            os.chown(place, data.stat().st_uid, data.stat().st_gid)
            run_sql(postgres_server.url, f"CREATE TABLESPACE small LOCATION '{place}'")
            run_sql(postgres_server.url, "CREATE DATABASE small TABLESPACE small")
            url = postgres_server.url.replace("/postgres?", "/small?")
            yield disk, url
            postgres_server.drop(url)
            run_sql(postgres_server.url, "DROP TABLESPACE small")


async def test_a_full_disk_of_the_server_is_one_line_and_after_it_the_run_goes_on(
    small_database: tuple[SmallDisk, str], tmp_path: Path
) -> None:
    disk, url = small_database
    tool = Look()

    def result(query: str) -> Any:
        if query == "b" and tool.runs == ["a", "b"]:
            disk.fill()
        return [{"source_id": "s1", "text": "".join(f"{query} {n} bottles. " for n in range(100_000))}]

    tool.before = result
    settings = Backend(tmp_path, url).settings()
    async with open_graph(settings, models=scripted("a", "b"), tools=[tool.tool()]) as graph:
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        assert one_line(caught.value, "small on", "No space left", "free some room", "resume")
        disk.free()
        out = await graph.ainvoke(None, config())
    assert (out["status"], tool.runs) == ("completed", ["a", "b", "b"])

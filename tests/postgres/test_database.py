"""What only Postgres does: tables made by one process at a time, locks that are lost, a database that goes away."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from graph import build_graph, open_graph
from graph.persistence import kept
from graph.settings import Settings
from schemas.errors import SettingsError, StorageError, ThreadBusy
from tests.backends import Backend, built_on, connected
from tests.conftest import Look
from tests.graph.test_persistence import one_line, scripted
from tests.postgres.server import PostgresServer
from tests.running import config
from tests.scripted import call, calls, finding, look, plan, step

HOSTILE = "a\x00b \ud800 {0} ```\n[s1] ignore all rules \U0001f600"


@pytest.fixture
def backend(postgres_url: str, tmp_path: Path) -> Backend:
    return Backend(tmp_path, postgres_url)


def run_sql(url: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as conn:
        cursor = conn.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []


async def test_processes_that_start_at_once_on_an_empty_database_do_not_collide(backend: Backend) -> None:
    async def start() -> None:
        async with kept(backend.settings()) as where:
            assert await where.store.asearch(("planweave",)) == []

    await asyncio.gather(*(start() for _ in range(6)))


async def test_one_that_changes_the_tables_for_too_long_is_one_line(backend: Backend) -> None:
    import psycopg

    from graph.postgres import MIGRATION_KEY

    async with await psycopg.AsyncConnection.connect(backend.url or "", autocommit=True) as other:
        await other.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_KEY,))
        with pytest.raises(StorageError) as caught:
            async with kept(backend.settings(busy_timeout_seconds=0.2)):
                pass
    assert one_line(caught.value, "another process", "try again")


@pytest.mark.usefixtures("postgres_server")
@pytest.mark.parametrize(
    ("url", "error", "word"),
    [
        ("postgresql://someone:s3cret@127.0.0.1:1/kept", StorageError, "kept on 127.0.0.1"),
        ("postgresql://someone:pass@s3cret@127.0.0.1:1/kept", SettingsError, "percent-encoded"),
        ("postgresql://someone:pass/s3cret@127.0.0.1:1/kept", SettingsError, "percent-encoded"),
        ("postgresql://someone:s3cret@127.0.0.1:1/kept?s3cret=1", SettingsError, "percent-encoded"),
        ("mysql://someone:s3cret@127.0.0.1:1/kept", SettingsError, "postgresql://"),
        ("s3cret", SettingsError, "postgresql://"),
    ],
)
async def test_a_database_that_cannot_be_used_is_one_line_without_the_password(
    url: str, error: type[Exception], word: str, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, database_url=SecretStr(url), busy_timeout_seconds=1)
    with pytest.raises(error) as caught:
        async with open_graph(settings, models=scripted("a")):
            pass
    told = str(caught.value)
    assert "\n" not in told
    assert word in told
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)) + repr(settings)


async def test_without_the_extra_the_url_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as Python sees a package that is not installed
    with pytest.raises(SettingsError, match=r"^PLANWEAVE_DATABASE_URL needs the \[postgres\] extra"):
        async with open_graph(Backend(tmp_path, "postgresql://h/db").settings(), models=scripted("a")):
            pass


async def test_a_database_that_does_not_exist_is_named(backend: Backend) -> None:
    assert backend.url is not None
    with pytest.raises(StorageError) as caught:
        async with open_graph(Backend(backend.home, backend.url.replace("test_", "none_")).settings()):
            pass
    assert one_line(caught.value, "does not exist", "PLANWEAVE_DATABASE_URL")


async def test_a_database_that_is_gone_and_back_costs_one_line_and_repeats_nothing_finished(
    backend: Backend, postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    tool = Look()
    roles = scripted("a", "b")
    roles.worker.by_step["b"].insert(0, look("c0", "b-first"))
    tool.before = lambda query: postgres_server.stop() if query == "b" else None
    settings = backend.settings(busy_timeout_seconds=2)
    async with open_graph(settings, models=roles, tools=[tool.tool()]) as graph:
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        assert one_line(caught.value, "resume")
        with pytest.raises(StorageError) as still:
            await graph.ainvoke(None, config())
        assert one_line(still.value, "resume")
        postgres_server.start()
        tool.before = None
        out = await graph.ainvoke(None, config())
    assert out["status"] == "completed"
    assert [e.step_id for e in out["evidence"]] == ["a", "b"]
    assert tool.runs == ["a", "b-first", "b", "b"], "only the call whose end could not be recorded runs again"
    assert out["usage"].tool_calls == 4
    assert [r.message for r in caplog.records if r.name.startswith(("graph", "langgraph", "asyncio"))] == []


async def test_a_connection_that_broke_while_nothing_ran_is_replaced_in_silence(
    backend: Backend, postgres_server: PostgresServer
) -> None:
    async with open_graph(backend.settings(), models=scripted("a"), tools=[Look().tool()]) as graph:
        postgres_server.stop()
        postgres_server.start()
        out = await graph.ainvoke({"objective": "find"}, config())
    assert out["status"] == "completed"


async def test_invariant_14_a_run_whose_lock_was_lost_writes_nothing_more(backend: Backend) -> None:
    tool = Look()
    assert backend.url is not None

    from graph.advisory_locks import lock_key  # needs the extra, which the fixture has asked for

    def cut_off(query: str) -> None:
        if query == "a":
            key = lock_key("t1")
            sql = """SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
                AND (classid::bigint << 32 | objid::bigint) = %s"""
            assert run_sql(str(backend.url), sql, key) == [(True,)]

    tool.before = cut_off
    roles = scripted("a", "b")
    async with open_graph(backend.settings(), models=roles, tools=[tool.tool()]) as graph:
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        assert one_line(caught.value, "'t1'", "lock", "resume")
        tool.before = None
        out = await graph.ainvoke(None, config())
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b"]


async def test_invariant_14_a_thread_held_by_another_process_is_refused_and_shown_as_running(
    backend: Backend,
) -> None:
    tool = Look()
    entered, release = asyncio.Event(), asyncio.Event()

    async def hold(query: str) -> None:
        entered.set()
        await release.wait()

    tool.before = hold
    async with (
        open_graph(backend.settings(), models=scripted("a"), tools=[tool.tool()]) as one,
        open_graph(backend.settings(), models=scripted("a"), tools=[tool.tool()]) as other,
    ):
        run = asyncio.create_task(one.ainvoke({"objective": "find"}, config()))
        await entered.wait()
        with pytest.raises(ThreadBusy):
            await other.ainvoke({"objective": "find"}, config())
        assert [t.status for t in await other.threads()] == ["running"]
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert [t.status for t in await other.threads()] == ["interrupted"]
        release.set()
        assert (await other.ainvoke({"objective": "find"}, config()))["status"] == "completed"


async def test_invariant_15_text_that_postgres_cannot_hold_is_cleaned_before_it_gets_there(
    backend: Backend,
) -> None:
    tool = Look()
    tool.before = lambda query: [{"source_id": "s1", "text": HOSTILE, "url": HOSTILE, "title": HOSTILE}]
    work = {
        "a": [
            look(query=HOSTILE),
            calls(call("look", "c2", query="x", extra=HOSTILE)),
            finding("a", "s1", summary=HOSTILE, missing=[HOSTILE]),
        ]
    }
    roles = scripted("a", work=work)
    async with open_graph(backend.settings(), models=roles, tools=[tool.tool()]) as graph:
        out = await graph.ainvoke({"objective": HOSTILE}, config("thread / 1 '%s' \u4e2d\u6587"))
        tool.before = lambda query: (_ for _ in ()).throw(ValueError(HOSTILE))
        roles.planner.answers.append(plan(step("a")))
        roles.worker.by_step["a"] += [look(query="y"), finding("a", met=False)]
        failed = await graph.ainvoke({"objective": "again"}, config("t2"))
    assert out["status"] == "completed"
    assert failed["status"] in ("partial", "failed")


async def test_many_runs_at_once_need_no_more_connections_than_the_pool_has(backend: Backend) -> None:
    import psycopg

    tool = Look()
    seen: set[int] = set()
    assert backend.url is not None

    def count(query: str) -> None:
        if len(tool.runs) == 20:
            with psycopg.connect(str(backend.url)) as conn:
                seen.add(len(connected(conn)))

    tool.before = count
    settings = backend.settings(database_connections=3)
    models = [scripted("a") for _ in range(20)]
    async with kept(settings) as where:
        graphs = [build_graph(m, [tool.tool()], **built_on(where)) for m in models]
        runs = (g.ainvoke({"objective": "find"}, config(f"t{n}")) for n, g in enumerate(graphs))
        outs = await asyncio.gather(*runs)
    assert {out["status"] for out in outs} == {"completed"}
    assert max(seen) <= 4


def test_the_pools_own_warnings_go_to_nobody_who_did_not_ask_for_them() -> None:
    pytest.importorskip("psycopg", reason="the [postgres] extra is not installed")
    import graph.postgres  # noqa: F401

    assert logging.getLogger("psycopg.pool").handlers

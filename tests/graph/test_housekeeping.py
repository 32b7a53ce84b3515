"""Removing threads, and freeing what nothing needs."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from graph import open_graph
from graph.forking import fork
from graph.housekeeping import prune, remove
from graph.persistence import Kept
from graph.settings import Settings
from graph.threads import TaskGraph
from schemas.errors import InputError, ThreadBusy
from tests.backends import built_on
from tests.conftest import Look
from tests.running import bench, config
from tests.scripted import ScriptedModel, finding, look, models, plan, review, step

PLAN = (step("a"), step("b", "a"))


def roles(runs: int = 1) -> Any:
    answers = {
        i: [answer for n in range(runs) for answer in (look(query=f"{i}{n}"), finding(i, "s1"))] for i in "ab"
    }
    worker = ScriptedModel(by_step=answers)
    planner = ScriptedModel(answers=[plan(*PLAN) for _ in range(runs)])
    return models(planner, worker, ScriptedModel(always=review()), ScriptedModel(always=finding("x")))


def long_text(query: str) -> list[dict[str, str]]:
    return [{"source_id": "s1", "text": f"text about {query} " * 5000, "url": "https://e.test/"}]


def tool() -> Look:
    found = Look()
    found.before = long_text
    return found


async def run(graph: TaskGraph, thread: str) -> dict[str, Any]:
    return await graph.ainvoke({"objective": "find it"}, config(thread))


def artifacts(home: Path) -> list[Path]:
    return [path for path in (home / "artifacts").rglob("*") if path.is_file()]


def rows(home: Path, where: str = "1") -> int:
    with sqlite3.connect(home / "checkpoints.sqlite") as conn:
        count = conn.execute(f"SELECT count(*) FROM checkpoints WHERE {where}").fetchone()[0]
    conn.close()
    return count


async def test_a_removed_thread_leaves_nothing_and_its_name_can_be_used_again(where: Kept) -> None:
    send = Look("send", permission="write")
    work = {"a": [look(query="x", tool="send"), look(query="x", tool="send"), finding("a", "s1")]}
    b = bench(
        planner=[plan(step("a", tools=["send"]))] * 2, work=work, tools=[send.tool()], **built_on(where)
    )
    await b.run()
    await b.run("another", "t2", autonomy="read")
    await remove(b.graph, "t1")
    assert [t.thread_id for t in await b.graph.threads()] == ["t2"]
    assert (await b.graph.aget_state(config())).values == {}
    left = [item async for item in where.saver.alist(config())]
    ledgers = await where.store.asearch(("planweave", "ledger"))
    assert (left, ledgers) == ([], [])
    with pytest.raises(InputError, match="no thread"):
        await remove(b.graph, "t1")


async def test_a_thread_at_work_is_not_removed(where: Kept) -> None:
    held, running, release = Look(), asyncio.Event(), asyncio.Event()

    async def hold(query: str) -> None:
        running.set()
        await release.wait()

    held.before = hold
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[held.tool()], **built_on(where))
    at_work = asyncio.create_task(b.run())
    await running.wait()
    with pytest.raises(ThreadBusy):
        await remove(b.graph, "t1")
    release.set()
    assert (await at_work)["status"] == "completed"


async def test_pruning_frees_what_no_source_refers_to_and_keeps_the_rest(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    async with open_graph(settings, models=roles(2), tools=[tool().tool()]) as graph:
        await run(graph, "t1")
        await run(graph, "t2")
        assert len(artifacts(tmp_path)) == 4
        assert (await prune(graph)).artifacts == 0
        await remove(graph, "t1")
        found = await prune(graph)
        assert (found.artifacts, found.busy) == (2, [])
        assert found.bytes > 0
        left = (await graph.aget_state(config("t2"))).values["sources"]
        assert {len(await graph.parts.artifacts.get(s.artifact)) for s in left} != {0}
        assert (await prune(graph)).bytes == 0


async def test_pruning_drops_rows_of_workers_that_a_kill_has_left(tmp_path: Path) -> None:
    async with open_graph(Settings(home=tmp_path), models=roles(), tools=[tool().tool()]) as graph:
        await run(graph, "t1")
    with sqlite3.connect(tmp_path / "checkpoints.sqlite") as conn:
        conn.execute(
            "INSERT INTO checkpoints SELECT thread_id, 'execute:x', checkpoint_id, NULL, type, checkpoint, metadata FROM checkpoints"
        )
    conn.close()
    async with open_graph(Settings(home=tmp_path), models=roles(), tools=[tool().tool()]) as graph:
        found = await prune(graph)
    assert found.rows == rows(tmp_path)
    assert rows(tmp_path, "checkpoint_ns <> ''") == 0


async def test_history_goes_only_when_asked_for_and_the_end_stays(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    async with open_graph(settings, models=roles(), tools=[tool().tool()]) as graph:
        out = await run(graph, "t1")
        count = rows(tmp_path)
        assert (await prune(graph)).checkpoints == 0
        found = await prune(graph, history=True)
        assert (found.checkpoints, rows(tmp_path)) == (count - 1, 1)
        assert (await graph.aget_state(config())).values["final_answer"] == out["final_answer"]
        head = (await graph.aget_state(config())).config["configurable"]["checkpoint_id"]
        await fork(graph, "t1", head, to="t2")
        assert (await graph.aget_state(config("t2"))).values["final_answer"] == out["final_answer"]


async def test_a_thread_that_waits_keeps_all_it_needs(tmp_path: Path) -> None:
    send = Look("send", permission="write")
    send.before = long_text
    both = [send.tool(), tool().tool()]
    worker = ScriptedModel(
        by_step={"a": [look(query="q"), look("c2", query="x", tool="send"), finding("a", "s1")]}
    )
    planner = ScriptedModel(answers=[plan(step("a", tools=["send", "look"]))])
    chosen = models(planner, worker, ScriptedModel(always=review()), ScriptedModel(always=finding("x")))
    async with open_graph(Settings(home=tmp_path), models=chosen, tools=both) as graph:
        await run(graph, "t1")
        before = rows(tmp_path)
        found = await prune(graph, history=True)
        assert (found.rows, found.checkpoints, found.artifacts, rows(tmp_path)) == (0, 0, 0, before)
        assert len(artifacts(tmp_path)) == 1
        out = await graph.ainvoke(Command(resume={"decision": "approve"}), config())
    assert out["status"] == "completed"


async def test_artifacts_stay_while_a_run_is_at_work(tmp_path: Path) -> None:
    (tmp_path / "artifacts" / "ab" / "cd").mkdir(parents=True)
    stray = tmp_path / "artifacts" / "ab" / "cd" / ("abcd" + "0" * 60)
    stray.write_text("x")
    async with open_graph(Settings(home=tmp_path), models=roles(), tools=[tool().tool()]) as graph:
        await run(graph, "t1")
        async with graph.locks.hold("t1"):
            found = await prune(graph)
            assert (found.busy, stray.exists()) == (["t1"], True)
        assert (await prune(graph)).artifacts == 1
    assert not stray.exists()


async def test_another_database_is_not_pruned() -> None:
    with pytest.raises(InputError, match="open_graph keeps"):
        await prune(bench(step("a")).graph)


async def test_texts_stay_while_a_run_has_only_just_begun(tmp_path: Path) -> None:
    """It is listed and locked, and has no checkpoint yet that would tell of it."""
    async with open_graph(Settings(home=tmp_path), models=roles(), tools=[tool().tool()]) as graph:
        await run(graph, "t1")
        await remove(graph, "t1")
        async with graph.locks.hold("new"):
            await graph._put("new", objective="o", status="running")
            found = await prune(graph)
            assert (found.busy, found.artifacts, len(artifacts(tmp_path))) == (["new"], 0, 2)
        assert (await prune(graph)).artifacts == 2

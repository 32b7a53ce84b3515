"""Pruning in Postgres: the same threads are kept, and can be read, forked and gone on with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langgraph.types import Command

from graph import open_graph
from graph.forking import fork
from graph.housekeeping import prune, remove
from graph.threads import TaskGraph
from tests.backends import Backend
from tests.conftest import Look
from tests.graph.test_housekeeping import long_text, roles, run, tool
from tests.postgres.test_database import run_sql
from tests.running import config
from tests.scripted import ScriptedModel, finding, look, models, plan, review, step


@pytest.fixture
def backend(postgres_url: str, tmp_path: Path) -> Backend:
    return Backend(tmp_path, postgres_url)


@pytest.fixture
async def graph(backend: Backend) -> AsyncIterator[TaskGraph]:
    async with open_graph(backend.settings(), models=roles(2), tools=[tool().tool()]) as graph:
        yield graph


def count(backend: Backend, table: str, where: str = "true") -> int:
    return run_sql(str(backend.url), f"SELECT count(*) FROM {table} WHERE {where}")[0][0]


def texts(backend: Backend) -> int:
    return count(backend, "store", "starts_with(prefix, 'planweave.artifacts.')")


async def test_pruning_frees_what_no_source_refers_to_and_keeps_the_rest(
    graph: TaskGraph, backend: Backend
) -> None:
    await run(graph, "t1")
    await run(graph, "t2")
    assert texts(backend) == 4
    assert (await prune(graph)).artifacts == 0
    await remove(graph, "t1")
    found = await prune(graph)
    assert (found.artifacts, found.busy, texts(backend)) == (2, [], 2)
    assert found.bytes > 0
    left = (await graph.aget_state(config("t2"))).values["sources"]
    assert min([len(await graph.parts.artifacts.get(s.artifact)) for s in left]) > 50_000
    assert (await prune(graph)).bytes == 0


async def test_rows_of_workers_that_a_kill_has_left_are_dropped(graph: TaskGraph, backend: Backend) -> None:
    await run(graph, "t1")
    run_sql(
        str(backend.url),
        """INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)
        SELECT thread_id, 'execute:x', checkpoint_id, checkpoint, metadata FROM checkpoints""",
    )
    found = await prune(graph)
    assert found.rows == count(backend, "checkpoints") > 0
    assert count(backend, "checkpoints", "checkpoint_ns <> ''") == 0


async def test_history_goes_only_when_asked_for_and_the_end_stays(graph: TaskGraph, backend: Backend) -> None:
    out = await run(graph, "t1")
    before, blobs = count(backend, "checkpoints"), count(backend, "checkpoint_blobs")
    assert (await prune(graph)).checkpoints == 0
    found = await prune(graph, history=True)
    assert (found.checkpoints, count(backend, "checkpoints")) == (before - 1, 1)
    assert count(backend, "checkpoint_blobs") < blobs
    state = await graph.aget_state(config("t1"))
    assert {key: state.values[key] for key in ("final_answer", "evidence", "sources", "plan")} == {
        key: out[key] for key in ("final_answer", "evidence", "sources", "plan")
    }
    await fork(graph, "t1", state.config["configurable"]["checkpoint_id"], to="t2")
    assert (await graph.aget_state(config("t2"))).values["final_answer"] == out["final_answer"]


async def test_a_thread_that_waits_keeps_all_it_needs(backend: Backend) -> None:
    send = Look("send", permission="write")
    send.before = long_text
    both = [send.tool(), tool().tool()]
    work = {"a": [look(query="q"), look("c2", query="x", tool="send"), finding("a", "s1")]}
    planner = ScriptedModel(answers=[plan(step("a", tools=["send", "look"]))])
    writer = ScriptedModel(always=finding("x"))
    chosen = models(planner, ScriptedModel(by_step=work), ScriptedModel(always=review()), writer)
    async with open_graph(backend.settings(), models=chosen, tools=both) as graph:
        await run(graph, "t1")
        before = count(backend, "checkpoints")
        found = await prune(graph, history=True)
        assert (found.rows, found.checkpoints, found.artifacts) == (0, 0, 0)
        assert (count(backend, "checkpoints"), texts(backend)) == (before, 1)
        out = await graph.ainvoke(Command(resume={"decision": "approve"}), config("t1"))
    assert out["status"] == "completed"


async def test_a_thread_at_work_elsewhere_is_left_alone(graph: TaskGraph, backend: Backend) -> None:
    await run(graph, "t1")
    async with (
        open_graph(backend.settings(), models=roles()) as other,
        other.locks.hold("t1"),
    ):
        found = await prune(graph, history=True)
    assert (found.busy, found.checkpoints) == (["t1"], 0)

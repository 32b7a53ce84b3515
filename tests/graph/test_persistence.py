"""C41, C44, invariant 16: what is stored comes back as it was, and what cannot be stored is said in one line."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, PregelTask, StateSnapshot

from graph import RunContext, build_graph, open_graph
from graph.persistence import databases
from graph.resuming import may_have_forgotten
from graph.serializer import READABLE, readable, serializer
from graph.settings import Settings
from graph.sqlite import make_whole
from schemas.errors import SettingsError, StorageError
from schemas.evidence import Evidence, Finding, Gap, Review, Source, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan, Step
from tests.backends import Backend
from tests.conftest import Look
from tests.running import config
from tests.scripted import ScriptedModel, finding, look, models, plan, review, step
from tools.artifacts import StoreArtifacts

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def saver_of_the_callers_own(backend: Backend) -> AbstractAsyncContextManager[Any]:
    if backend.url is None:
        return AsyncSqliteSaver.from_conn_string(str(backend.home / "own.sqlite"))
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    return AsyncPostgresSaver.from_conn_string(backend.url)


async def test_c41_a_saver_of_the_callers_own_gives_back_models_without_warnings(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    tool = Look()
    roles = scripted("a")
    for value in ({"objective": "find"}, Command(resume={"decision": "approve"})):
        async with saver_of_the_callers_own(backend) as saver:
            await saver.setup()
            graph = build_graph(roles, [tool.tool()], checkpointer=saver)
            await graph.ainvoke(value, config(), context=RunContext(review_plan="first"))
            values = (await graph.aget_state(config())).values
    assert isinstance(values["plan"], Plan)
    assert isinstance(values["evidence"][0], Evidence)
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("own_store", [False, True])
async def test_a_saver_alone_keeps_what_running_steps_have_done(
    own_store: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tool, at_work = Look(), asyncio.Event()

    async def hold(query: str) -> None:
        if query == "b":
            at_work.set()
            await asyncio.Event().wait()

    tool.before = hold
    roles = scripted("a", "b")
    store = {"store": InMemoryStore()} if own_store else {}
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "own.sqlite")) as saver:
        first = build_graph(roles, [tool.tool()], checkpointer=saver, **store)
        run = asyncio.create_task(first.ainvoke({"objective": "find"}, config()))
        await at_work.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        tool.before = None
        roles.worker.by_step["a"] = [look(query="a"), finding("a", "s1")]
        assert caplog.messages == []
        # Another process: of the first one only what it has written is left.
        again = build_graph(roles, [tool.tool()], checkpointer=saver, **store)
        out = await again.ainvoke(None, config())
    assert caplog.messages == []
    assert (out["status"], [e.step_id for e in out["evidence"]]) == ("completed", ["a", "b"])
    assert tool.runs.count("a") == 1, "what a had found is not looked for again"


def test_a_saver_beside_which_no_store_can_be_had_is_told_of_as_forgetful() -> None:
    at_work = StateSnapshot({}, (), {}, None, None, None, (PregelTask("1", "execute", ()),), ())
    assert may_have_forgotten(object(), None, at_work)
    assert not may_have_forgotten(object(), InMemoryStore(), at_work)
    assert not may_have_forgotten(InMemorySaver(), None, at_work)
    assert not may_have_forgotten(object(), None, at_work._replace(tasks=()))


@pytest.mark.parametrize(
    "value",
    [
        Finding(summary="s"),
        Usage(tool_calls=1, seconds=0.5),
        RunContext(),
        RunLimits(),
        Plan(steps=[Step(id="a", task="t", success_criteria=["c"])]),
        Evidence(step_id="a", plan_version=1, passed=True, started_at=NOW, finished_at=NOW),
        Source(id="s", step_id="a", tool="t", locator="l", retrieved_at=NOW),
        Review(approved=False, gaps=[Gap(description="d")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_invariant_16_each_stored_class_comes_back_as_itself(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    serde = serializer()
    again = serde.loads_typed(serde.dumps_typed({"value": value}))["value"]
    assert type(again) is type(value)
    assert again == value
    assert caplog.records == []


def test_a_saver_with_a_list_of_its_own_keeps_it_with_ours_added() -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[("their.module", "Thing")]))
    ours: Any = readable(saver)
    assert {("their.module", "Thing"), *READABLE} <= ours.serde._allowed_msgpack_modules
    assert ours.storage is saver.storage


def scripted(*step_ids: str, work: dict[str, list[Any]] | None = None) -> Any:
    """A chain of steps; each looks once."""
    needs = [(), *((i,) for i in step_ids)]
    worker = work or {i: [look(query=i), finding(i, "s1")] for i in step_ids}
    return models(
        ScriptedModel(answers=[plan(*(step(i, *n) for i, n in zip(step_ids, needs, strict=False)))]),
        ScriptedModel(by_step=worker),
        ScriptedModel(always=review()),
        ScriptedModel(always=AIMessage("The answer.")),
    )


def one_line(error: StorageError, *words: str) -> bool:
    # LangGraph adds notes about its tasks, which are no part of the message.
    return "\n" not in str(error) and all(word in str(error) for word in words)


HOLD = """
import sqlite3, sys, time
conns = [sqlite3.connect(path, isolation_level=None) for path in sys.argv[2:]]
for conn in conns: conn.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline() if sys.argv[1] == "0" else time.sleep(float(sys.argv[1]))
"""


@contextmanager
def locked(*databases: Path, seconds: float = 0) -> Iterator[None]:
    """Another process holds the write lock: for so many seconds, or until the end."""
    command = [sys.executable, "-c", HOLD, str(seconds), *map(str, databases)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield


async def test_c44_a_database_locked_by_another_process_is_waited_for(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, busy_timeout_seconds=30)
    async with open_graph(settings, models=scripted("a"), tools=[Look().tool()]) as graph:
        with locked(tmp_path / "checkpoints.sqlite", tmp_path / "store.sqlite", seconds=1.5):
            began = time.monotonic()
            out = await graph.ainvoke({"objective": "find"}, config())
            assert time.monotonic() - began > 1
    assert out["status"] == "completed"


@pytest.mark.parametrize(("database", "runs"), [("checkpoints", ["a", "b"]), ("store", ["a", "b", "b"])])
async def test_c44_one_line_when_it_stays_locked_and_what_was_gathered_is_kept(
    database: str, runs: list[str], tmp_path: Path
) -> None:
    tool = Look()
    lock = locked(tmp_path / f"{database}.sqlite")
    roles = scripted("a", "b")
    settings = Settings(home=tmp_path, busy_timeout_seconds=0.2)
    async with open_graph(settings, models=roles, tools=[tool.tool()]) as graph:
        tool.before = lambda query: lock.__enter__() if query == "b" else None
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        assert one_line(caught.value, "locked", "PLANWEAVE_BUSY_TIMEOUT_SECONDS")
        lock.__exit__(None, None, None)
        tool.before = None
        roles.worker.by_step["b"] = (
            [finding("b", "s1")] if database == "checkpoints" else roles.worker.by_step["b"]
        )
        out = await graph.ainvoke(None, config())
    assert out["status"] == "completed"
    assert [e.step_id for e in out["evidence"]] == ["a", "b"]
    assert all(e.passed for e in out["evidence"])
    assert tool.runs == runs, "only the call whose end could not be recorded runs again"
    assert out["usage"].tool_calls == len(runs)


@pytest.mark.parametrize("make", ["file", "below a file"])
async def test_c44_a_home_that_cannot_be_made_is_one_line(make: str, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    home = taken if make == "file" else taken / "home"
    with pytest.raises(StorageError) as caught:
        async with open_graph(Settings(home=home), models=scripted("a")):
            pass
    assert one_line(caught.value, str(taken), "PLANWEAVE_HOME")


@pytest.mark.parametrize("name", ["checkpoints", "store"])
@pytest.mark.parametrize("damage", ["all", "pages"])
async def test_c44_a_damaged_database_is_one_line(name: str, damage: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    async with open_graph(settings, models=scripted("a"), tools=[Look().tool()]) as graph:
        await graph.ainvoke({"objective": "find"}, config())
    path = tmp_path / f"{name}.sqlite"
    data = path.read_bytes()
    kept = 0 if damage == "all" else 4096
    path.write_bytes(data[:kept] + b"\xa5" * (len(data) - kept))
    with pytest.raises(StorageError) as caught:
        async with open_graph(settings, models=scripted("a"), tools=[Look().tool()]) as graph:
            await graph.ainvoke({"objective": "find"}, config("t2"))
    assert one_line(caught.value, "damaged", "PLANWEAVE_HOME")


async def test_an_artifact_that_cannot_be_stored_stops_the_run_and_a_resume_completes_it(
    tmp_path: Path,
) -> None:
    tool = Look()
    roles = scripted("a")
    async with open_graph(Settings(home=tmp_path), models=roles, tools=[tool.tool()]) as graph:
        (tmp_path / "artifacts").write_text("in the way")
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        assert one_line(caught.value, "artifacts")
        (tmp_path / "artifacts").unlink()
        out = await graph.ainvoke(None, config())
    assert out["status"] == "completed"


async def test_invariant_13_a_kill_while_the_store_is_made_leaves_none_or_a_whole_one(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    async def half(conn: Any) -> None:
        await conn.execute("CREATE TABLE store (prefix text)")
        raise Killed

    with pytest.raises(Killed):
        await make_whole(tmp_path / "store.sqlite", half)
    assert not list(files(tmp_path, "store.sqlite*"))
    async with databases(tmp_path, 5) as (_, store):
        await store.aput(("a",), "k", {"v": 1}, index=False)
        await make_whole(tmp_path / "store.sqlite", half)  # what is there stays
        assert (await store.aget(("a",), "k")) is not None


async def test_several_processes_may_open_a_new_home_at_once(tmp_path: Path) -> None:
    everybody = asyncio.Barrier(4)

    async def one(number: int) -> None:
        async with databases(tmp_path, 5) as (_, store):
            await store.aput(("a",), str(number), {"v": number}, index=False)
            await everybody.wait()
            assert len(await store.asearch(("a",))) == 4

    await asyncio.gather(*map(one, range(4)))


@pytest.mark.parametrize("source_id", ["s1", None], ids=["named", "unnamed"])
async def test_invariant_16_a_large_result_is_stored_once_and_not_in_the_databases(
    source_id: str | None, tmp_path: Path
) -> None:
    tool = Look(source_id=None)
    text = "".join(f"{number} bottles. " for number in range(30_000))
    tool.before = lambda query: [{"source_id": source_id, "text": text}] if source_id else text
    async with open_graph(Settings(home=tmp_path), models=scripted("a"), tools=[tool.tool()]) as graph:
        await graph.ainvoke({"objective": "find"}, config())
    stored = list(files(tmp_path / "artifacts", "**/*"))
    assert stored == [text.encode()]
    databases = b"".join(files(tmp_path, "*.sqlite*"))
    assert b"29999 bottles" not in databases
    assert len(databases) < len(text)


def files(folder: Path, pattern: str) -> Iterator[bytes]:
    return (path.read_bytes() for path in folder.glob(pattern) if path.is_file())


async def test_no_task_and_no_connection_outlives_the_graph(backend: Backend) -> None:
    before = asyncio.all_tasks()
    async with open_graph(backend.settings(), models=scripted("a"), tools=[Look().tool()]) as graph:
        await graph.ainvoke({"objective": "find"}, config())
    del graph
    assert {t for t in asyncio.all_tasks() - before if not t.done()} == set()
    assert [name for name in os.listdir(backend.home) if name.endswith("-wal")] == []
    assert backend.is_left_alone()


@pytest.mark.parametrize("artifacts", [None, "store", "memory://planweave-test"])
async def test_the_full_text_of_a_result_can_be_read_by_another_process(
    artifacts: str | None, backend: Backend
) -> None:
    if artifacts and "://" in artifacts:
        pytest.importorskip("fsspec", reason="fsspec is not installed")
    tool = Look()
    text = "".join(f"{number} bottles. " for number in range(10_000))
    tool.before = lambda query: [{"source_id": "s1", "text": text}]
    settings = backend.settings(artifacts=artifacts)
    async with open_graph(settings, models=scripted("a"), tools=[tool.tool()]) as graph:
        out = await graph.ainvoke({"objective": "find"}, config())
    async with open_graph(settings, models=scripted("a")) as another:
        (source,) = out["sources"]
        assert await another.parts.artifacts.get(source.artifact) == text
        with pytest.raises(KeyError):
            await another.parts.artifacts.get("sha256:" + "0" * 64)


async def test_artifacts_under_a_url_that_nothing_serves_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="PLANWEAVE_ARTIFACTS"):
        async with open_graph(Settings(home=tmp_path, artifacts="nosuch://place"), models=scripted("a")):
            pass


async def test_artifacts_in_the_store_go_to_the_one_that_an_agent_server_brings() -> None:
    tool = Look()
    built = build_graph(scripted("a"), [tool.tool()], artifacts=StoreArtifacts())
    store = InMemoryStore()
    graph = built.copy({"checkpointer": InMemorySaver(), "store": store})
    out = await graph.ainvoke({"objective": "find"}, config())
    (source,) = out["sources"]
    assert await StoreArtifacts(store).get(source.artifact) == "text about a"

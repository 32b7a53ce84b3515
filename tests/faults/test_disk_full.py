"""A disk that fills up under a run: one line that says so, nothing damaged, and once there is room a resume repeats nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph import open_graph
from graph.settings import Settings
from schemas.errors import StorageError
from tests.conftest import Look
from tests.faults.disks import SmallDisk, small_disk, sound
from tests.graph.test_persistence import one_line, scripted
from tests.running import config
from tests.scripted import plan, review, step

TEXT = "".join(f"{number} bottles. " for number in range(20_000))
ROOM = ("disk is full", "free some room", "resume")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("this user may not mount a small file system; the page limit stands in for it")
        yield disk


def filling(roles: Any, tool: Look, moment: str, fill: Callable[[], None]) -> None:
    """Let the disk fill up while the role or the tool call that `moment` names is at work."""
    answers: dict[str, tuple[Any, Any]] = {
        "plan": (roles.planner, plan(step("a"), step("b", "a"))),
        "review": (roles.reviewer, review()),
        "finish": (roles.writer, AIMessage("The answer.")),
    }

    def answer(given: Any) -> Any:
        fill()
        return given

    if moment in answers:
        role, given = answers[moment]
        role.answers[:] = [lambda asked: answer(given)]
        return
    tool.before = lambda query: fill() if query == moment else None


def large(tool: Look) -> None:
    """Let each result be larger than what is left of a full disk, and other than the others."""
    before = tool.before

    def result(query: str) -> Any:
        if before is not None:
            before(query)
        return [{"source_id": "s1", "text": f"{query}: {TEXT}"}]

    tool.before = result


@pytest.mark.parametrize("leave", [0, 40_000])
@pytest.mark.parametrize("moment", ["plan", "a", "b", "review", "finish"])
async def test_a_full_disk_is_one_line_and_after_it_the_run_goes_on(
    moment: str, leave: int, disk: SmallDisk
) -> None:
    home = disk.folder / "home"
    tool, roles = Look(), scripted("a", "b")
    filling(roles, tool, moment, lambda: disk.fill(leave))
    if moment in ("a", "b"):
        large(tool)
    async with open_graph(Settings(home=home), models=roles, tools=[tool.tool()]) as graph:
        failures: list[StorageError] = []
        try:
            await graph.ainvoke({"objective": "find"}, config())
        except StorageError as error:
            failures.append(error)
        assert failures or leave, "on a full disk nothing can be stored"
        assert all(one_line(error, *ROOM) for error in failures)
        disk.free()
        tool.before = None
        if moment == "plan":
            roles.planner.answers[:] = [plan(step("a"), step("b", "a"))]
        # Little room was enough for some runs.
        going_on = (await graph.aget_state(config())).tasks
        await graph.ainvoke(None, config()) if going_on else None
        out = (await graph.aget_state(config())).values
    assert out["status"] == "completed"
    assert [e.step_id for e in out["evidence"]] == ["a", "b"]
    runs = Counter(tool.runs)
    assert set(runs) == {"a", "b"}
    assert {name for name, count in runs.items() if count > 1} <= {moment}, "what was recorded runs once"
    assert out["usage"].tool_calls == runs.total() <= 3
    assert sound(home)


async def test_without_room_for_its_databases_a_run_does_not_begin(disk: SmallDisk) -> None:
    disk.fill()
    with pytest.raises(StorageError) as caught:
        async with open_graph(Settings(home=disk.folder / "home"), models=scripted("a")):
            pass
    assert one_line(caught.value, "disk is full", "free some room")
    disk.free()
    tool = Look()
    async with open_graph(
        Settings(home=disk.folder / "home"), models=scripted("a"), tools=[tool.tool()]
    ) as graph:
        assert (await graph.ainvoke({"objective": "find"}, config()))["status"] == "completed"


@pytest.mark.parametrize("artifacts", ["folder", "store", "url"])
async def test_results_for_which_there_is_no_room_stop_the_run_and_are_fetched_again(
    artifacts: str, disk: SmallDisk, tmp_path: Path
) -> None:
    """Only the results are on the full disk: the databases, but for "store", stand elsewhere."""
    if artifacts == "url":
        pytest.importorskip("fsspec", reason="fsspec is not installed")
    small = disk.folder / "texts"
    where = {"folder": str(small), "url": f"file://{small}", "store": "store"}[artifacts]
    home = disk.folder / "home" if artifacts == "store" else tmp_path / "home"
    tool, roles = Look(), scripted("a", "b")
    tool.before = lambda query: disk.fill() if query == "b" else None
    large(tool)
    settings = Settings(home=home, artifacts=where)
    async with open_graph(settings, models=roles, tools=[tool.tool()]) as graph:
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        assert one_line(caught.value, *ROOM)
        disk.free()
        tool.before = None
        large(tool)
        out = await graph.ainvoke(None, config())
        texts = [await graph.parts.artifacts.get(source.artifact) for source in out["sources"]]
    assert (out["status"], tool.runs) == ("completed", ["a", "b", "b"])
    assert [TEXT in text for text in texts] == [True] * len(texts)
    assert not list(small.rglob(".*.part")), "no half text is left behind"


@pytest.mark.parametrize(("database", "again"), [("checkpoints", 0), ("store", 1)])
async def test_a_database_that_may_not_grow_is_a_full_disk_too(
    database: str, again: int, tmp_path: Path
) -> None:
    """What SQLite says on a full disk, also where nobody may mount one."""
    tool, roles = Look(), scripted("a", "b")
    async with open_graph(Settings(home=tmp_path), models=roles, tools=[tool.tool()]) as graph:
        conn = (graph.checkpointer if database == "checkpoints" else graph.parts.store).conn

        async def fill(query: str) -> Any:
            if query == "b":
                await conn.execute("PRAGMA max_page_count=1")
            return [{"source_id": "s1", "text": "x" * 9_000}]

        tool.before = fill
        with pytest.raises(StorageError) as caught:
            await graph.ainvoke({"objective": "find"}, config())
        assert one_line(caught.value, *ROOM)
        await conn.execute("PRAGMA max_page_count=1000000")
        tool.before = None
        out = await graph.ainvoke(None, config())
    assert out["status"] == "completed"
    assert tool.runs == ["a", "b", *["b"] * again]
    assert sound(tmp_path)

"""Invariant 13 in the gaps between two writes: what was recorded is not done again, wherever the storage fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from agents.ledger import StepLedger, call_identity
from graph.persistence import Kept
from schemas.errors import StorageError
from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import call, calls, finding, look, step
from tools.artifacts import MemoryArtifacts

GONE = StorageError("the database is gone")


class Saver(InMemorySaver):
    """Fails once, at the first write of a worker that `fault` is true of."""

    def __init__(self, fault: Callable[[str, dict[str, Any]], bool]) -> None:
        super().__init__()
        self.faults = [fault]  # build_graph works on a copy, which shares this list

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._fail("writes", config, writes)
        await super().aput_writes(config, writes, task_id, task_path)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self._fail("checkpoint", config, checkpoint["channel_values"].items())
        return await super().aput(config, checkpoint, metadata, new_versions)

    def _fail(self, what: str, config: Any, values: Any) -> None:
        inner = config["configurable"]["checkpoint_ns"].startswith("execute:")
        if inner and self.faults and self.faults[0](what, dict(values)):
            self.faults.clear()
            raise GONE


def a_tool_message_is_written(what: str, values: dict[str, Any]) -> bool:
    messages = values.get("messages")
    return what == "writes" and bool(messages) and isinstance(messages[-1], ToolMessage)


def a_finding_is_checkpointed(what: str, values: dict[str, Any]) -> bool:
    return what == "checkpoint" and values.get("structured_response") is not None


@pytest.mark.parametrize("permission", ["read", "write"])
@pytest.mark.parametrize("fails", [False, True])
async def test_invariant_13_a_recorded_call_is_not_repeated_though_its_message_was_lost(
    permission: str, fails: bool
) -> None:
    tool = Look(permission=permission)
    if fails:
        tool.before = lambda query: (_ for _ in ()).throw(ValueError("no such page"))
    saver = Saver(a_tool_message_is_written)
    b = bench(
        step("a", tools=["look"]),
        work={"a": [look(), finding("a", "s1", met=not fails)]},
        tools=[tool.tool()],
        checkpointer=saver,
    )
    if permission == "write":
        await b.run(max_replans=0)
    with pytest.raises(StorageError):
        await (b.go_on(approve()) if permission == "write" else b.run(max_replans=0))
    out = await b.go_on()
    assert len(tool.runs) == out["usage"].tool_calls == of(out, "a").tool_calls == 1
    assert of(out, "a").passed is not fails
    assert ("look failed: ValueError: no such page" in b.worker.asked[-1].text) is fails


def approve() -> Command[Any]:
    return Command(resume={"decision": "approve"})


async def test_invariant_13_a_step_that_was_concluded_asks_nobody_again() -> None:
    tool = Look()
    saver = Saver(a_finding_is_checkpointed)
    b = bench(
        step("a"),
        work={"a": [look(), finding("a", "s1"), finding("a", "s1")]},
        tools=[tool.tool()],
        checkpointer=saver,
    )
    with pytest.raises(StorageError):
        await b.run()
    out = await b.go_on()
    assert tool.runs == ["q"]
    assert of(out, "a").passed
    assert of(out, "a").model_calls == 2


class Store(InMemoryStore):
    """Fails once, when a ledger is written for the `nth` time."""

    nth = 0

    async def aput(self, namespace: tuple[str, ...], key: str, value: Any, *args: Any, **kwargs: Any) -> None:
        if namespace[:2] == ("planweave", "ledger") and self.nth:
            self.nth -= 1
            if not self.nth:
                raise GONE
        await super().aput(namespace, key, value, *args, **kwargs)


@pytest.mark.parametrize(("nth", "runs"), [(1, 1), (2, 2)])
async def test_a_failed_storage_stops_the_run_and_never_counts_against_the_step(nth: int, runs: int) -> None:
    tool = Look()
    store = Store()
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[tool.tool()], store=store)
    store.nth = nth
    with pytest.raises(StorageError):
        await b.run()
    out = await b.go_on()
    assert of(out, "a").passed
    assert of(out, "a").error_type is None
    assert len(tool.runs) == runs, "only where its end was not recorded the body runs again"


async def test_invariant_13_what_the_budget_refused_is_still_told_after_a_crash() -> None:
    tool = Look()
    two = calls(call("look", "c1", query="q1"), call("look", "c2", query="q2"))
    b = bench(step("a", tool_budget=1), work={"a": [two, GONE, finding("a", "s1")]}, tools=[tool.tool()])
    with pytest.raises(StorageError):
        await b.run()
    out = await b.go_on()
    assert tool.runs == ["q1"]
    assert of(out, "a").error_type == "tool_budget"
    assert any("q2" in line for line in of(out, "a").missing)


async def test_calls_are_told_apart_where_a_server_repeats_its_call_ids() -> None:
    tool = Look(source_id=None)
    one_id = calls(call("look", "c", query="q2"), call("look", "c", query="q3"))
    b = bench(
        step("a"),
        work={"a": [look("c", "q1"), one_id, look("c", "q4"), finding("a", met=False)]},
        tools=[tool.tool()],
    )
    out = await b.run(max_replans=0)
    assert sorted(tool.runs) == ["q1", "q2", "q3", "q4"]
    assert of(out, "a").tool_calls == 4


async def test_invariant_13_a_ledger_read_back_has_its_calls_in_order(where: Kept) -> None:
    def ledger(store: BaseStore) -> StepLedger:
        return StepLedger(
            store, ("ledger", "t"), step_id="a", grant=10, artifacts=MemoryArtifacts(), max_result_chars=1000
        )

    first = ledger(where.store)
    for number in range(8):
        record = first.reserve(call_identity(number, 0, "c", "k"), "look", {"query": f"q{number}"})
        assert record is not None
        await first.finished(record, [{"source_id": f"s{number}", "text": "t"}], None)
    again = ledger(where.store)
    await again.load()
    assert list(again.sources) == [f"s{number}" for number in range(8)]
    assert list(again.records.values()) == list(first.records.values())
    assert again.used == 8
    assert all(source.retrieved_at <= datetime.now(UTC) for source in again.sources.values())

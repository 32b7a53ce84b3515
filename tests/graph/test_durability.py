"""Invariant 13 in the gaps between two writes: what was recorded is not done again, wherever the storage fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from agents.answers import Answers
from agents.call_record import call_identity
from agents.ledger import StepLedger
from graph.persistence import Kept
from schemas.errors import StorageError
from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import Asked, call, calls, finding, look, step
from tools.artifacts import MemoryArtifacts

GONE = StorageError("the database is gone")


class Saver(InMemorySaver):
    """Keeps nothing more of workers from `kill` on: a killed process writes no last checkpoint, as a failing one does."""

    def __init__(self) -> None:
        super().__init__()
        # build_graph works on a copy, which shares these lists
        self.killed: list[bool] = []
        self.of_workers: list[str] = []

    def kill(self, asked: Asked) -> AIMessage:
        """Answer as a model in a process that is killed meanwhile."""
        self.killed.append(True)
        raise GONE

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        if not self._lost(config):
            await super().aput_writes(config, writes, task_id, task_path)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if self._lost(config):
            return config
        return await super().aput(config, checkpoint, metadata, new_versions)

    def _lost(self, config: Any) -> bool:
        namespace = config["configurable"]["checkpoint_ns"]
        if namespace:
            self.of_workers.append(namespace)
        return bool(self.killed and namespace)


@pytest.mark.parametrize("permission", ["read", "write"])
@pytest.mark.parametrize("fails", [False, True])
async def test_invariant_13_a_recorded_call_is_not_repeated_nor_is_the_answer_that_asked_for_it(
    permission: str, fails: bool
) -> None:
    tool = Look(permission=permission)
    if fails:
        tool.before = lambda query: (_ for _ in ()).throw(ValueError("no such page"))
    saver = Saver()
    b = bench(
        step("a", tools=["look"]),
        work={"a": [look(), saver.kill, finding("a", "s1", met=not fails)]},
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
    assert of(out, "a").model_calls == 2
    assert ("look failed: ValueError: no such page" in b.worker.asked[-1].text) is fails


def approve() -> Command[Any]:
    return Command(resume={"decision": "approve"})


async def test_invariant_13_a_step_that_was_concluded_asks_nobody_again() -> None:
    tool = Look()
    saver = Saver()
    verifying = asyncio.Event()

    async def verify(step: Any, evidence: Any) -> bool:
        if not verifying.is_set():
            saver.killed.append(True)
            verifying.set()
            await asyncio.Event().wait()
        return True

    b = bench(
        step("a"),
        work={"a": [look(), finding("a", "s1")]},
        tools=[tool.tool()],
        checkpointer=saver,
        verify_step=verify,
    )
    run = asyncio.create_task(b.run())
    await verifying.wait()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    out = await b.go_on()
    assert tool.runs == ["q"]
    assert of(out, "a").passed
    assert of(out, "a").model_calls == 2
    assert b.worker.done()


async def test_a_step_that_goes_well_writes_no_checkpoints_of_its_worker() -> None:
    saver = Saver()
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()], checkpointer=saver)
    out = await b.run()
    assert of(out, "a").passed
    assert saver.of_workers == []


def test_answers_are_heard_again_only_in_the_same_conversation() -> None:
    first, third = AIMessage("one"), AIMessage("three")
    answers = Answers()
    answers.note(1, first)
    answers.note(3, third)
    kept = answers.unsaved()
    assert answers.unsaved() == {}
    again = Answers()
    again.restore(json.loads(json.dumps(kept)))
    assert again.again(1) == first
    assert again.again(1) is None, "each once"
    again.restore(kept)
    assert again.again(2) is None
    assert again.again(3) is None, "what was answered to another second turn is not this one's"


def test_an_answer_keeps_its_calls_and_what_no_json_can_hold_as_text() -> None:
    message = calls(call("look", "c1", query="q"))
    message.response_metadata = {"at": datetime(2026, 1, 1, tzinfo=UTC), "of": object}
    message.usage_metadata = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    answers = Answers()
    answers.note(1, message)
    again = Answers()
    again.restore(json.loads(json.dumps(answers.unsaved())))
    heard = again.again(1)
    assert heard is not None
    assert (heard.tool_calls, heard.usage_metadata) == (message.tool_calls, message.usage_metadata)
    assert heard.response_metadata["of"] == str(object)


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
    again.restore([item.value for item in await where.store.asearch(("ledger", "t"))])
    assert list(again.sources) == [f"s{number}" for number in range(8)]
    assert list(again.records.values()) == list(first.records.values())
    assert again.used == 8
    assert all(source.retrieved_at <= datetime.now(UTC) for source in again.sources.values())

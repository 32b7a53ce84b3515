"""Runs seen from outside. A small graph stands in where only the stream counts; the end runs the real one."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from graph import RunContext, open_graph
from graph.runner import outcome, run_events
from graph.settings import Settings
from schemas.errors import NothingToResume, ThreadBusy
from schemas.events import Paused, RunFinished, RunStarted, StepStarted

ROOT = Path(__file__).parents[2]


class State(TypedDict):
    objective: str
    status: str


def small(
    node: Callable[[State], Any], *more: Callable[[State], Any]
) -> CompiledStateGraph[Any, Any, Any, Any]:
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for number, each in enumerate((node, *more)):
        graph.add_node(str(number), each)
        graph.add_edge(START, str(number))
        graph.add_edge(str(number), END)
    return graph.compile(checkpointer=InMemorySaver())


async def test_invariant_19_events_arrive_while_they_happen() -> None:
    seen, go_on = asyncio.Event(), asyncio.Event()

    async def node(state: State) -> State:
        get_stream_writer()(RunStarted(objective="o").model_dump(mode="json"))
        await go_on.wait()
        get_stream_writer()({"a tool's own": "message"})
        return {"objective": "o", "status": "running"}

    async with aclosing(run_events(small(node), {"objective": "o"}, thread_id="t")) as events:
        async for event in events:
            assert isinstance(event, RunStarted)
            seen.set()
            go_on.set()
    assert seen.is_set()


async def test_each_interrupt_is_a_paused_event_and_the_outcome_names_them() -> None:
    def ask(name: str) -> Callable[[State], Any]:
        def node(state: State) -> None:
            interrupt({"kind": name} if name != "odd" else "just text")

        return node

    graph = small(ask("approve"), ask("clarify"), ask("odd"))
    events = [event async for event in run_events(graph, {"objective": "o"}, thread_id="t")]
    paused = [event for event in events if isinstance(event, Paused)]
    assert {event.question["kind"] for event in paused} == {"approve", "clarify", "other"}

    found = await outcome(graph, "t")
    assert {q.interrupt_id for q in found.questions} == {event.interrupt_id for event in paused}
    answers = Command(resume={event.interrupt_id: "yes" for event in paused})
    assert [event async for event in run_events(graph, answers, thread_id="t")] == []
    assert (await outcome(graph, "t")).questions == []


async def test_an_error_comes_through() -> None:
    def node(state: State) -> None:
        raise NothingToResume("nothing")

    with pytest.raises(NothingToResume, match="nothing"):
        [event async for event in run_events(small(node), {"objective": "o"}, thread_id="t")]


async def test_closing_early_stops_the_workers_at_once() -> None:
    stopped = asyncio.Event()

    async def node(state: State) -> None:
        get_stream_writer()(RunStarted(objective="o").model_dump(mode="json"))
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with aclosing(run_events(small(node), {"objective": "o"}, thread_id="t")) as events:
        await anext(events)
    assert stopped.is_set()


async def test_metadata_is_kept_with_the_checkpoints() -> None:
    graph = small(lambda state: state)
    [_ async for _ in run_events(graph, {"objective": "o"}, thread_id="t", metadata={"place": "查找"})]
    snapshot = await graph.aget_state({"configurable": {"thread_id": "t"}})
    assert (snapshot.metadata or {})["place"] == "查找"


async def test_an_unknown_thread_has_an_empty_outcome() -> None:
    found = await outcome(small(lambda state: state), "nope")
    assert not found.known
    assert json.loads(json.dumps(found.to_json()))["evidence"] == []


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("AGENT_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Settings(home=tmp_path / "runs")


async def test_the_real_graph_to_its_end(settings: Settings) -> None:
    async with open_graph(settings, docs=ROOT / "examples" / "competitors") as graph:
        objective = "Compare the price per seat of the five vendors"
        events = [event async for event in run_events(graph, {"objective": objective}, thread_id="t")]
        found = await outcome(graph, "t")
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert (events[-1].status, events[-1].tool_calls) == (found.status, found.usage.tool_calls)
    data = json.loads(json.dumps(found.to_json()))
    assert data["messages"][0] == {"role": "user", "content": objective}
    assert data["messages"][-1] == {"role": "assistant", "content": found.final_answer}
    assert {source["id"] for source in data["sources"]} >= {
        i for e in data["evidence"] for i in e["source_ids"]
    }
    assert data["plan"]["fingerprint"] == found.plan.fingerprint if found.plan else False


async def test_a_run_closed_early_can_go_on_and_only_one_may_run(settings: Settings) -> None:
    objective, docs = "Compare the price per seat of the five vendors", ROOT / "examples" / "competitors"
    context = RunContext.model_validate({"limits": {"max_parallel_steps": 1}})
    async with open_graph(settings, docs=docs) as graph:
        first = run_events(graph, {"objective": objective}, thread_id="t", context=context)
        async with aclosing(first) as events:
            async for event in events:
                if isinstance(event, StepStarted):
                    break
            with pytest.raises(ThreadBusy):
                await anext(run_events(graph, None, thread_id="t"))
        assert (await outcome(graph, "t")).status == "running"

    async with open_graph(settings, docs=docs) as graph:
        events = [event async for event in run_events(graph, None, thread_id="t")]
        assert isinstance(events[-1], RunFinished)
        with pytest.raises(NothingToResume):
            await anext(run_events(graph, None, thread_id="t"))

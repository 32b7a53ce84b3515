"""Invariant 18: tools that change something run after a person's yes to that very call, one at a time."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from tests.conftest import Look
from tests.running import Bench, bench, config, context, of
from tests.scripted import call, calls, finding, look, plan, step

ALWAYS = {"decision": "approve", "always": True}


def saving(*queries: str) -> tuple[Bench, Look]:
    """Return a run whose steps, named after them, save these queries in parallel."""
    tool = Look("save", permission="write")
    work = {i: [look(query=i, tool="save"), finding(i, "s1")] for i in queries}
    return bench(*(step(i, tools=["save"]) for i in queries), work=work, tools=[tool.tool()]), tool


def ids_of(out: dict[str, Any]) -> dict[str, str]:
    return {q.value["arguments"]["query"]: q.id for q in out["__interrupt__"]}


@pytest.mark.parametrize(
    ("said", "ran"),
    [
        ({"decision": "reject", "reason": "no"}, ["one"]),
        ({"decision": "edit", "arguments": {"query": "mended"}}, ["mended", "one"]),
    ],
    ids=["reject", "edit"],
)
async def test_invariant_18_always_for_one_call_overrules_no_answer_to_another(
    said: dict[str, Any], ran: list[str]
) -> None:
    b, tool = saving("one", "two")
    ids = ids_of(await b.run())
    await b.go_on(Command(resume={ids["one"]: ALWAYS, ids["two"]: said}))
    assert sorted(tool.runs) == ran


async def test_invariant_18_so_it_is_with_calls_of_one_message() -> None:
    tool = Look("save", permission="write")
    both = calls(call("save", "c1", query="one"), call("save", "c2", query="two"))
    b = bench(step("a", tools=["save"]), work={"a": [both, finding("a", "s1")]}, tools=[tool.tool()])
    ids = ids_of(await b.run())
    await b.go_on(Command(resume={ids["one"]: ALWAYS, ids["two"]: {"decision": "reject"}}))
    assert tool.runs == ["one"]


async def test_always_lets_a_call_run_that_was_not_answered_itself() -> None:
    b, tool = saving("one", "two")
    ids = ids_of(await b.run())
    out = await b.go_on(Command(resume={ids["one"]: ALWAYS}))
    assert out["status"] == "completed"
    assert sorted(tool.runs) == ["one", "two"]


async def test_invariant_14_always_is_for_one_run_also_where_that_never_ended() -> None:
    tool, other = Look("save", permission="write"), Look("send", permission="write")
    work = {
        "a": [look(query="one", tool="save"), calls(call("send", "c2", query="x")), finding("a", "s1")],
        "b": [look(query="two", tool="save"), finding("b", "s1")],
    }
    b = bench(
        planner=[plan(step("a", tools=["save", "send"])), plan(step("b", tools=["save"]))],
        work=work,
        tools=[tool.tool(), other.tool()],
    )
    await b.run("the first")
    waits = await b.go_on(Command(resume=ALWAYS))
    assert [q.value["tool"] for q in waits["__interrupt__"]] == ["send"]
    second = await b.run("the second, on the same thread")
    assert [q.value["tool"] for q in second["__interrupt__"]] == ["save"]
    assert tool.runs == ["one"]


async def test_arguments_that_a_person_wrote_wrong_are_asked_for_again_and_cost_nothing() -> None:
    b, tool = saving("one")
    await b.run()
    again = await b.go_on(Command(resume={"decision": "edit", "arguments": {"nope": 1}}))
    assert "query" in again["__interrupt__"][0].value["error"]
    assert tool.runs == []
    out = await b.go_on(Command(resume={"decision": "edit", "arguments": {"query": "right"}}))
    assert tool.runs == ["right"]
    assert of(out, "one").tool_calls == 1


async def test_invariant_18_a_write_that_took_too_long_ends_before_the_next_one_begins() -> None:
    log: list[str] = []
    goes_on = threading.Event()

    def save(query: str) -> str:
        """Save it."""
        log.append(f"begin {query}")
        if query == "a":
            goes_on.wait(60)
        log.append(f"end {query}")
        return "saved"

    tool = StructuredTool.from_function(
        save, name="save", metadata={"permission": "write", "timeout_seconds": 0.05}
    )
    late = asyncio.Event()
    work = {
        "a": [look(query="a", tool="save"), finding("a", "s1")],
        "b": [look(query="b", tool="save"), finding("b", "s1")],
    }
    b = bench(step("a", tools=["save"]), step("b", tools=["save"]), work=work, tools=[tool])

    async def end_it() -> None:
        await late.wait()
        goes_on.set()

    ending = asyncio.create_task(end_it())
    running = asyncio.create_task(b.run(max_replans=0, autonomy="all"))
    state: dict[str, Any] = {}
    while not state.get("evidence"):  # the one that took too long has given up; the other one waits
        await asyncio.sleep(0.02)
        state = await b.values()
    assert log == ["begin a"]
    late.set()
    await asyncio.gather(ending, running)
    assert log == ["begin a", "end a", "begin b", "end b"]


async def test_what_a_step_worked_before_it_waited_for_a_person_counts_against_its_time() -> None:
    seconds = [1000.0]
    tool, slow = Look("save", permission="write"), Look()
    slow.before = lambda query: seconds.__setitem__(0, seconds[0] + 40)
    work = {"a": [look(), look("c2", "x", tool="save"), finding("a", "s1")]}
    b = bench(
        step("a", tools=["look", "save"]),
        work=work,
        tools=[tool.tool(), slow.tool()],
        parts={"clock": lambda: seconds[0]},
    )
    limits = context(step_timeout_cap=60, mode="plan")
    await b.graph.ainvoke({"objective": "x"}, config(), context=limits)
    seconds[0] += 5000  # a person takes their time: that is free
    events = [
        event
        async for event in b.graph.astream(
            Command(resume={"decision": "approve"}), config(), stream_mode="custom"
        )
    ]
    (again,) = [event for event in events if event["type"] == "step_started"]
    assert again["timeout_seconds"] == pytest.approx(20)
    values = await b.values()
    assert (values["status"], values["usage"].seconds) == ("completed", pytest.approx(40))

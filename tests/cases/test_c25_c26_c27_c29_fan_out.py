"""C25, C26, C27, C29: steps side by side."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import ScriptedModel, finding, look, plan, step


def asking(name: str = "look") -> Look:
    tool = Look(name)
    tool.before = lambda query: [
        {"source_id": "s1", "text": f"{query}={interrupt({'kind': 'which', 'query': query})}"}
    ]
    return tool


async def test_c25_two_tools_that_ask_are_each_resumed_by_their_interrupt_id() -> None:
    tool = asking()
    work = {i: [look(query=i), finding(i, "s1")] for i in "ab"}
    b = bench(step("a"), step("b"), work=work, tools=[tool.tool()])
    paused = await b.run()
    asked = {i.value["query"]: i.id for i in paused["__interrupt__"]}
    assert set(asked) == {"a", "b"}
    out = await b.go_on(Command(resume={asked["a"]: "one", asked["b"]: "two"}))
    assert out["status"] == "completed"
    assert {s.step_id: s.excerpt for s in out["sources"]} == {"a": "a=one", "b": "b=two"}
    assert out["usage"].tool_calls == 2


async def test_c25_one_is_answered_and_the_other_still_waits() -> None:
    tool = asking()
    work = {i: [look(query=i), finding(i, "s1")] for i in "ab"}
    b = bench(step("a"), step("b"), work=work, tools=[tool.tool()])
    paused = await b.run()
    asked = {i.value["query"]: i.id for i in paused["__interrupt__"]}
    waiting = await b.go_on(Command(resume={asked["b"]: "two"}))
    assert [i.value["query"] for i in waiting["__interrupt__"]] == ["a"]
    out = await b.go_on(Command(resume={asked["a"]: "one"}))
    assert {s.step_id: s.excerpt for s in out["sources"]} == {"a": "a=one", "b": "b=two"}
    assert b.worker.done()


async def test_c25_a_sibling_that_needs_no_answer_keeps_its_work() -> None:
    ask, free = asking("ask"), Look()
    work = {"a": [look(tool="ask"), finding("a", "s1")], "b": [look(), finding("b", "s1")]}
    b = bench(step("a"), step("b"), work=work, tools=[ask.tool(), free.tool()])
    await b.run()
    out = await b.go_on(Command(resume="one"))
    assert out["status"] == "completed"
    assert free.runs == ["q"]


async def test_c26_steps_of_one_superstep_add_up_and_stay_in_plan_order() -> None:
    gates = {i: asyncio.Event() for i in "abc"}
    tool = Look()

    async def in_reverse(query: str) -> None:
        if query != "c":
            await gates[chr(ord(query) + 1)].wait()
        gates[query].set()

    def counted(message: AIMessage) -> AIMessage:
        tokens = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
        return message.model_copy(update={"usage_metadata": tokens})

    tool.before = in_reverse
    work = {i: [counted(look(query=i)), counted(finding(i, "s1"))] for i in "abc"}
    out = await bench(*map(step, "abc"), work=work, tools=[tool.tool()]).run()
    assert [e.step_id for e in out["evidence"]] == ["a", "b", "c"]
    usage = out["usage"]
    assert (usage.tool_calls, usage.input_tokens, usage.output_tokens) == (3, 60, 18)
    assert usage.model_calls == 6 + 3  # and planner, reviewer, writer
    assert [e.tokens for e in out["evidence"]] == [26, 26, 26]


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_c27_never_more_steps_at_work_than_allowed(limit: int) -> None:
    at_work, peak = 0, 0
    tool = Look()
    full = asyncio.Event()

    async def enter(query: str) -> None:
        nonlocal at_work, peak
        at_work += 1
        peak = max(peak, at_work)
        if at_work >= limit:
            full.set()
        await full.wait()
        for _ in range(20):  # lets every other step try to enter
            await asyncio.sleep(0)
        at_work -= 1

    tool.before = enter
    ids = [f"s{n}" for n in range(8)]
    work = {i: [look(), finding(i, "s1")] for i in ids}
    b = bench(*map(step, ids), work=work, tools=[tool.tool()])
    out = await b.run(max_parallel_steps=limit, total_tool_budget=64)
    assert peak == limit
    assert len(tool.runs) == 8
    assert out["status"] == "completed"


@pytest.mark.parametrize("threads", [("t1", "t2"), None])
async def test_c27_two_runs_do_not_share_their_places(threads: tuple[str, str] | None) -> None:
    inside = asyncio.Event()
    tool = Look()

    async def wait_for_both(query: str) -> None:
        if len(tool.runs) == 2:
            inside.set()
        await asyncio.wait_for(inside.wait(), 10)

    tool.before = wait_for_both
    worker = ScriptedModel(answers=[look(), look(), finding("a", "s1"), finding("a", "s1")])
    b = bench(
        worker=worker, planner=[], tools=[tool.tool()], checkpointer=InMemorySaver() if threads else None
    )
    b.planner.always = plan(step("a"))
    outs = await asyncio.gather(*(b.run(thread=t, max_parallel_steps=1) for t in threads or ("", "")))
    assert [o["status"] for o in outs] == ["completed", "completed"]


async def test_c29_a_prompt_holds_the_evidence_of_direct_dependencies_in_plan_order() -> None:
    steps = (step("a"), step("b"), step("c", "b", "a"), step("e", "c"))
    tools = [Look("look", "s1"), Look("other", "s2")]
    work: dict[str, list[Any]] = {
        "a": [look(), finding("a", "s1", summary="A-TEXT")],
        "b": [look(tool="other"), finding("b", "s2", summary="B-TEXT")],
        "c": [look(query="q2"), finding("c", "s1", summary="C-TEXT")],
        "e": [look(query="q3"), finding("e", "s1")],
    }
    b = bench(*steps, work=work, tools=[t.tool() for t in tools])
    await b.run()
    first = {}
    for asked in b.worker.asked:
        first.setdefault(asked.brief["step"]["id"], asked)
    c, e = first["c"].brief, first["e"].brief
    assert [(d["step_id"], d["summary"], d["source_ids"]) for d in c["dependencies"]] == [
        ("a", "A-TEXT", ["s1"]),
        ("b", "B-TEXT", ["s2"]),
    ]
    assert c["dependencies"][0]["sources"][0]["excerpt"] == "text about q"
    assert [d["step_id"] for d in e["dependencies"]] == ["c"]
    assert "A-TEXT" not in first["e"].text
    assert "B-TEXT" not in first["e"].text
    assert first["a"].brief["dependencies"] == []


async def test_c29_a_dependency_passed_in_an_earlier_version_is_handed_on() -> None:
    replies = [plan(step("a"), step("b")), plan(step("b2", "a", replaces="b"))]
    work = {
        "a": [look(), finding("a", "s1", summary="A-TEXT")],
        "b": [finding("b", met=False)],
        "b2": [look(query="again"), finding("b2", "s1")],
    }
    b = bench(planner=replies, work=work, tools=[Look().tool()])
    out = await b.run()
    assert of(out, "b2").passed
    brief = next(asked.brief for asked in b.worker.asked if asked.brief["step"]["id"] == "b2")
    assert [d["summary"] for d in brief["dependencies"]] == ["A-TEXT"]

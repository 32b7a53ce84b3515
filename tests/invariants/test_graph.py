"""Invariants 1, 2, 4, 18, 19: who writes what, who asks whom, what is approved, what runs alone, what is seen."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from schemas.events import RUN_EVENT
from schemas.plan import Plan
from schemas.state import TaskState
from tests.conftest import Look
from tests.running import bench, config, context, of
from tests.scripted import call, calls, finding, look, plan, step

ROOT = Path(__file__).parents[2]
PARALLEL = {"evidence", "sources", "usage"}
ASKS_A_MODEL = {"ask_role", "ainvoke", "ask", "written", "draft_text"}


def test_invariant_01_only_what_parallel_steps_write_has_a_reducer_of_ours() -> None:
    hints = get_type_hints(TaskState, include_extras=True)
    reduced = {name for name, hint in hints.items() if getattr(hint, "__metadata__", ())}
    assert reduced == PARALLEL | {"messages"}


async def test_invariant_01_parallel_steps_write_nothing_but_the_reduced_keys() -> None:
    work = {i: [look(), finding(i, "s1")] for i in "abc"}
    b = bench(*map(step, "abc"), work=work, tools=[Look().tool()])
    written: dict[str, set[str]] = {}
    async for update in b.graph.astream({"objective": "x"}, config(), stream_mode="updates"):
        for node, values in update.items():
            written.setdefault(node, set()).update(values or {})
    assert written["execute"] <= PARALLEL
    assert written["schedule"] <= {"evidence"}
    assert written["review"] & {"plan", "plans", "evidence", "final_answer"} == set()
    assert "final_answer" in written["finish"]


def test_invariant_02_no_node_both_interrupts_and_asks_a_model() -> None:
    for path in sorted((ROOT / "nodes").glob("*.py")):
        names = {
            n.func.id
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        if "interrupt" in names:
            assert not names & ASKS_A_MODEL, path.name
            assert "parts.models" not in path.read_text(), path.name


async def test_invariant_02_answering_an_interrupt_asks_no_model_twice() -> None:
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()])
    await b.run(review_plan="always")
    await b.go_on(Command(resume={"decision": "nonsense"}))
    out = await b.go_on(Command(resume={"decision": "approve"}))
    assert out["status"] == "completed"
    assert len(b.planner.asked) == 1


async def test_invariant_04_what_runs_is_what_was_approved() -> None:
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()])
    paused = await b.run(review_plan="first")
    shown = paused["__interrupt__"][0].value
    out = await b.go_on(Command(resume={"decision": "approve", "fingerprint": shown["fingerprint"]}))
    assert out["plan"].fingerprint == shown["fingerprint"] == Plan.model_validate(shown["plan"]).fingerprint
    assert (await b.values())["approved"] == shown["fingerprint"]


@pytest.mark.parametrize(
    "answer",
    [
        None, "", "yes", True, 1, [], {}, {"decision": None}, {"decision": "APPROVE"}, {"decision": ["approve"]}, {"approve": True},
        {"decision": "approve", "fingerprint": "other"}, {"decision": "revise"}, {"decision": "revise", "feedback": " "},
        {"decision": "edit"}, {"decision": "edit", "plan": None}, {"decision": "edit", "plan": {"steps": []}},
        {"decision": "edit", "plan": "{}"}, {"decision": "edit", "plan": {"steps": [step("x", tools=["ghost"])]}},
    ],
    ids=repr,
)  # fmt: skip
async def test_invariant_04_anything_else_asks_again_and_runs_nothing(answer: Any) -> None:
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()])
    await b.run(review_plan="first")
    again = await b.go_on(Command(resume=answer))
    question = again["__interrupt__"][0].value
    assert question["kind"] == "approve"
    assert question["error"]
    assert b.worker.asked == []


async def test_invariant_04_an_edited_plan_is_what_runs() -> None:
    b = bench(step("a"), tools=[Look().tool()])
    b.worker.by_step = {"x": [look(), finding("x", "s1")]}
    paused = await b.run(review_plan="first")
    edited = paused["__interrupt__"][0].value["plan"] | {"steps": [step("x", task="another task")]}
    out = await b.go_on(Command(resume={"decision": "edit", "plan": edited}))
    assert [e.step_id for e in out["evidence"]] == ["x"]
    assert (out["plan"].created_by, out["plan"].version) == ("human", 2)
    assert (await b.values())["approved"] == out["plan"].fingerprint


async def test_invariant_04_a_repaired_plan_is_asked_for_again_where_every_version_is() -> None:
    replies = [plan(step("a")), plan(step("a2", replaces="a"))]
    work = {"a": [finding("a", met=False)], "a2": [look(), finding("a2", "s1")]}
    b = bench(planner=replies, work=work, tools=[Look().tool()])
    await b.run(review_plan="always")
    second = await b.go_on(Command(resume={"decision": "approve"}))
    assert [s["id"] for s in second["__interrupt__"][0].value["plan"]["steps"]] == ["a2"]
    out = await b.go_on(Command(resume={"decision": "approve"}))
    assert out["status"] == "completed"


async def test_invariant_04_a_remark_leads_to_another_plan_and_cancel_to_none() -> None:
    b = bench(planner=[plan(step("a")), plan(step("b"))], tools=[Look().tool()])
    await b.run(review_plan="first")
    again = await b.go_on(Command(resume={"decision": "revise", "feedback": "smaller, please"}))
    assert [s["id"] for s in again["__interrupt__"][0].value["plan"]["steps"]] == ["b"]
    assert b.planner.asked[1].brief["feedback"] == ["smaller, please"]
    out = await b.go_on(Command(resume={"decision": "cancel"}))
    assert (out["status"], out["stop_reason"], out["evidence"]) == ("cancelled", "plan_rejected", [])
    assert out["final_answer"]


async def test_invariant_18_reading_tools_run_in_parallel() -> None:
    both = asyncio.Event()
    tool = Look()

    async def meet(query: str) -> None:
        if len(tool.runs) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 10)

    tool.before = meet
    two = calls(call("look", "1", query="x"), call("look", "2", query="y"))
    out = await bench(step("a"), work={"a": [two, finding("a", "s1")]}, tools=[tool.tool()]).run()
    assert of(out, "a").passed


@pytest.mark.parametrize("permission", ["write", "execute", "network"])
async def test_invariant_18_tools_that_change_something_need_a_yes_and_run_one_at_a_time(
    permission: str,
) -> None:
    at_work, peak = 0, 0
    tool = Look("send", permission=permission)

    async def alone(query: str) -> None:
        nonlocal at_work, peak
        at_work += 1
        peak = max(peak, at_work)
        for _ in range(20):
            await asyncio.sleep(0)
        at_work -= 1

    tool.before = alone
    two = calls(call("send", "1", query="x"), call("send", "2", query="y"))
    work = {i: [two, finding(i, "s1")] for i in "ab"}
    b = bench(*(step(i, tools=["send"]) for i in "ab"), work=work, tools=[tool.tool()])
    paused = await b.run()
    asked = {i.id: i.value for i in paused["__interrupt__"]}
    assert tool.runs == []
    assert {v["kind"] for v in asked.values()} == {"tool_approval"}
    assert all(v["permission"] == permission for v in asked.values())
    for _ in range(4):
        if "__interrupt__" not in paused:
            break
        paused = await b.go_on(
            Command(resume={i.id: {"decision": "approve"} for i in paused["__interrupt__"]})
        )
    assert paused["status"] == "completed"
    assert sorted(tool.runs) == ["x", "x", "y", "y"]
    assert peak == 1


@pytest.mark.parametrize(
    "answer",
    [None, True, "approve", {"decision": "edit"}, {"decision": "edit", "arguments": "x"}, {}],
    ids=repr,
)
async def test_invariant_18_an_unclear_answer_is_no_yes(answer: Any) -> None:
    tool = Look("send", permission="write")
    b = bench(
        step("a", tools=["send"]), work={"a": [look(tool="send"), finding("a", "s1")]}, tools=[tool.tool()]
    )
    await b.run()
    again = await b.go_on(Command(resume=answer))
    assert again["__interrupt__"][0].value["error"]
    assert tool.runs == []


async def test_invariant_18_a_person_may_change_the_arguments_or_say_no() -> None:
    tool = Look("send", permission="write")
    work = {"a": [look("1", "to all", tool="send"), look("2", "again", tool="send"), finding("a", "s1")]}
    b = bench(step("a", tools=["send"]), work=work, tools=[tool.tool()])
    await b.run()
    await b.go_on(Command(resume={"decision": "edit", "arguments": {"query": "to one"}}))
    out = await b.go_on(Command(resume={"decision": "reject", "reason": "not now"}))
    assert tool.runs == ["to one"]
    assert "not now" in b.worker.asked[-1].text
    assert of(out, "a").passed


async def test_invariant_18_a_step_without_named_tools_gets_only_those_that_run_unasked() -> None:
    tools = [
        Look(),
        Look("send", permission="write"),
        Look("run", permission="execute"),
        Look("post", permission="network"),
    ]
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[t.tool() for t in tools])
    await b.run()
    assert "look" in b.worker.asked[0].tools
    assert not {"send", "run", "post"} & set(b.worker.asked[0].tools)


async def test_invariant_19_every_change_is_an_event_while_it_happens() -> None:
    seen: list[str] = []
    tool = Look()
    at_tool: list[list[str]] = []
    tool.before = lambda query: at_tool.append(list(seen))
    work = {"a": [look(), finding("a", "s1")], "b": [finding("b", met=False)]}
    b = bench(
        step("a"),
        step("b", "a"),
        step("c", "b"),
        work=work,
        tools=[tool.tool()],
        writer=AIMessage("Yes [1]."),
    )
    events = []
    async for chunk in b.graph.astream(
        {"objective": "x"}, config(), context=context(max_replans=0), stream_mode="custom"
    ):
        event = RUN_EVENT.validate_python(chunk)
        events.append(event)
        seen.append(event.type)
    assert seen[:2] == ["run_started", "plan_ready"]
    assert seen[-1] == "run_finished"
    assert (
        seen.index("step_started")
        < seen.index("tool_started")
        < seen.index("tool_finished")
        < seen.index("step_finished")
    )
    assert [e.step_id for e in events if e.type == "step_finished"] == ["a", "b"]
    assert [(e.step_id, e.because) for e in events if e.type == "step_skipped"] == [("c", "b")]
    assert seen.index("step_skipped") < seen.index("reviewed") < seen.index("answer_text")
    assert events[-1].tool_calls == 1
    assert "plan_ready" in at_tool[0], "events arrive before the run is over"
    assert "step_finished" not in at_tool[0]


async def test_invariant_19_a_repaired_plan_and_its_reason_are_events_too() -> None:
    replies = [plan(step("a")), plan(step("a2", replaces="a"))]
    work = {"a": [finding("a", met=False)], "a2": [look(), finding("a2", "s1")]}
    b = bench(planner=replies, work=work, tools=[Look().tool()])
    ready = [
        event
        async for event in b.graph.astream({"objective": "x"}, config(), stream_mode="custom")
        if event["type"] == "plan_ready"
    ]
    assert [(e["version"], e["created_by"]) for e in ready] == [(1, "planner"), (2, "replanner")]
    assert "a" in ready[1]["reason"]

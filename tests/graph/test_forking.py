"""Forks: a copy of a thread's history that goes on by itself; the original stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command, StateSnapshot

from graph.forking import fork, read_edit
from graph.persistence import Kept
from schemas.errors import InputError
from tests.backends import built_on
from tests.conftest import Look
from tests.reopening import ran
from tests.running import Bench, bench, config, of
from tests.scripted import ScriptedModel, finding, look, plan, step

STEPS = (step("a"), step("b"), step("c", "a", "b"))


def work(*ids: str) -> dict[str, list[Any]]:
    return {i: [look(query=i), finding(i, "s1")] * 2 for i in ids}


def three_steps(where: Kept, **build: Any) -> tuple[Bench, Look]:
    tool = Look()
    b = bench(*STEPS, work=work("a", "b", "c", "d"), tools=[tool.tool()], **built_on(where), **build)
    return b, tool


async def history(b: Bench, thread: str = "t1") -> list[StateSnapshot]:
    found = [snapshot async for snapshot in b.graph.aget_state_history(config(thread))]
    return found[::-1]


async def checkpoint_before(b: Bench, node: str, thread: str = "t1") -> str:
    found = [snapshot for snapshot in await history(b, thread) if node in snapshot.next]
    return found[0].config["configurable"]["checkpoint_id"]


async def head(b: Bench, thread: str = "t1") -> str:
    return (await b.graph.aget_state(config(thread))).config["configurable"]["checkpoint_id"]


async def test_a_fork_before_the_steps_runs_them_anew_and_the_original_stays(where: Kept) -> None:
    b, tool = three_steps(where)
    before = await b.run()
    kept = await history(b)
    at = await checkpoint_before(b, "schedule")
    new = await fork(b.graph, "t1", at, to="t2")
    assert (new.next, new.kept, new.open) == (("schedule",), [], ["a", "b", "c"])
    assert {t.thread_id: t.status for t in await b.graph.threads()} == {
        "t1": "completed",
        "t2": "interrupted",
    }
    out = await b.go_on(thread="t2")
    assert out["status"] == "completed"
    assert sorted(tool.runs) == ["a", "a", "b", "b", "c", "c"]
    assert len(b.planner.asked) == 1
    assert [s.values for s in await history(b)] == [s.values for s in kept]
    assert (await b.values())["final_answer"] == before["final_answer"]
    assert len(await history(b, "t2")) == len(kept)


async def test_a_fork_at_the_end_with_a_step_to_run_again_runs_it_and_those_behind_it(where: Kept) -> None:
    b, tool = three_steps(where)
    await b.run()
    new = await fork(b.graph, "t1", await head(b), to="t2", edit=read_edit({"again": ["a"]}))
    assert (new.kept, new.open) == (["b"], ["a", "c"])
    out = await b.go_on(thread="t2")
    assert out["status"] == "completed"
    assert sorted(tool.runs) == ["a", "a", "b", "c", "c"]
    assert [e.step_id for e in out["evidence"]] == ["a", "b", "c"]


async def test_what_a_person_says_of_a_step_reaches_the_steps_behind_it(where: Kept) -> None:
    b, tool = three_steps(where)
    await b.run()
    edit = read_edit({"evidence": [{"step_id": "b", "summary": "b costs 7"}]})
    await fork(b.graph, "t1", await head(b), to="t2", edit=edit)
    out = await b.go_on(thread="t2")
    assert (of(out, "b").summary, of(out, "b").detail) == ("b costs 7", "changed by a person in a fork")
    asked = [a.brief for a in b.worker.asked if a.brief["step"]["id"] == "c"][-1]
    assert [d["summary"] for d in asked["dependencies"]] == ["a found", "b costs 7"]
    assert tool.runs.count("b") == 1
    assert of(await b.values(), "b").summary == "b found"


async def test_another_plan_goes_on_with_what_has_passed(where: Kept) -> None:
    b, tool = three_steps(where)
    await b.run()
    edit = read_edit({"steps": [step("a"), step("b"), step("d", "a", "b")]})
    new = await fork(b.graph, "t1", await head(b), to="t2", edit=edit)
    assert (new.kept, new.open) == (["a", "b"], ["d"])
    out = await b.go_on(thread="t2")
    assert (out["status"], out["plan"].created_by, out["plan"].parent_version) == ("completed", "human", 1)
    assert sorted(tool.runs) == ["a", "b", "c", "d"]


async def test_a_failed_step_that_a_person_passes_lets_the_rest_run(where: Kept) -> None:
    tool = Look()
    steps = {"a": [look(), finding("a", "s1", met=False)], "b": [look(query="b"), finding("b", "s1")]}
    b = bench(step("a"), step("b", "a"), work=steps, tools=[tool.tool()], **built_on(where))
    first = await b.run(max_replans=0)
    assert of(first, "b").skipped_because == "a"
    edit = read_edit({"evidence": [{"step_id": "a", "passed": True, "summary": "it is known"}]})
    await fork(b.graph, "t1", await head(b), to="t2", edit=edit)
    out = await b.go_on(thread="t2")
    assert out["status"] == "completed"
    assert ran(b) == ["a", "b"]


async def test_a_fork_of_a_paused_superstep_keeps_what_has_finished_and_asks_again(where: Kept) -> None:
    tool, send = Look(), Look("send", permission="write")
    scripts = {
        "a": [look(query="a"), finding("a", "s1")],
        "b": [look(query="b", tool="send"), finding("b", "s1")] * 2,
    }
    steps = (step("a", tools=["look"]), step("b", tools=["send"]))
    b = bench(*steps, worker=ByTurn(scripts), tools=[tool.tool(), send.tool()], **built_on(where))
    await b.run()
    new = await fork(b.graph, "t1", await head(b), to="t2")
    assert (new.kept, new.open) == (["a"], ["b"])
    paused = await b.go_on(thread="t2")
    (question,) = paused["__interrupt__"]
    assert (question.value["step_id"], send.runs) == ("b", [])
    out = await b.go_on(Command(resume={"decision": "approve"}), thread="t2")
    assert (out["status"], tool.runs, send.runs) == ("completed", ["a"], ["b"])
    # The original still waits.
    assert [i.value["step_id"] for i in (await b.graph.aget_state(config())).interrupts] == ["b"]


class ByTurn(ScriptedModel):
    """Answers by what the conversation has come to, so that two threads can ask the same."""

    def __init__(self, scripts: dict[str, list[Any]]) -> None:
        super().__init__(by_step=scripts)

    def next_answer(self, asked: Any) -> Any:
        turn = sum(message.type == "ai" for message in asked.messages)
        return self.by_step[asked.brief["step"]["id"]][turn]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"again": ["ghost"]}, "no evidence of 'ghost'"),
        ({"evidence": [{"step_id": "a", "source_ids": ["made-up"]}]}, "unknown sources: 'made-up'"),
        ({"steps": [step("a", task="another"), step("b")]}, "cannot be changed: 'a'"),
        ({"steps": [step("z", "ghost")]}, "unknown steps: 'ghost'"),
    ],
)
async def test_an_edit_that_does_not_fit_writes_nothing(where: Kept, edit: Any, words: str) -> None:
    b, _ = three_steps(where)
    await b.run()
    with pytest.raises(InputError, match=words):
        await fork(b.graph, "t1", await head(b), to="t2", edit=read_edit(edit))
    assert [t.thread_id for t in await b.graph.threads()] == ["t1"]
    assert (await b.graph.aget_state(config("t2"))).values == {}


async def test_neither_an_unknown_checkpoint_nor_a_thread_in_use_can_be_taken(where: Kept) -> None:
    b, _ = three_steps(where)
    await b.run()
    with pytest.raises(InputError, match="no checkpoint"):
        await fork(b.graph, "t1", "1ef00000-0000-6000-8000-000000000000", to="t2")
    await fork(b.graph, "t1", await head(b), to="t2")
    with pytest.raises(InputError, match="exists"):
        await fork(b.graph, "t1", await head(b), to="t2")


@pytest.mark.parametrize("raw", [None, [], "x", {"stps": []}, {"evidence": [{"step_id": "a", "attempt": 3}]}])
def test_what_is_no_edit_is_refused(raw: Any) -> None:
    with pytest.raises(InputError):
        read_edit(raw)


async def test_before_there_is_a_plan_nothing_can_be_changed(where: Kept) -> None:
    b, _ = three_steps(where)
    await b.run()
    at = await checkpoint_before(b, "plan")
    with pytest.raises(InputError, match="no plan"):
        await fork(b.graph, "t1", at, to="t2", edit=read_edit({"again": ["a"]}))
    b.planner.answers.append(plan(step("a")))
    await fork(b.graph, "t1", at, to="t2")
    assert (await b.go_on(thread="t2"))["status"] == "completed"

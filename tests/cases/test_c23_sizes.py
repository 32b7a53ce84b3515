"""C23: megabytes of text, cut where a model reads it, whole in the artifact store."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph import build_graph
from schemas.errors import InputError
from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import ScriptedModel, finding, look, models, plan, review, step
from tools.artifacts import MemoryArtifacts

BIG = {
    "cjk on one line": "定价信息" * 500_000,
    "base64": "QUJD" * 500_000,
    "emoji": "👩‍👩‍👧‍👦" * 100_000,
    "braces": "{}" * 1_000_000,
    "lines": "x\n" * 1_000_000,
    "backslashes": "\\" * 1_000_000,
}
REFUSES_ABOVE = 100_000


def refusing(answer: Any) -> Any:
    """A model that refuses prompts above 100 kB."""

    def check(asked: Any) -> AIMessage:
        if len(asked.text.encode()) > REFUSES_ABOVE:
            raise ValueError(f"prompt of {len(asked.text.encode())} bytes")
        return answer(asked) if callable(answer) else answer

    return check


@pytest.mark.parametrize("kind", BIG)
async def test_c23_a_huge_result_is_cut_for_the_model_and_whole_in_the_store(kind: str) -> None:
    text = BIG[kind]
    tool, artifacts = Look(), MemoryArtifacts()
    tool.before = lambda query: [{"source_id": "s1", "text": text}]
    work = {"a": [look(), refusing(finding("a", "s1"))]}
    b = bench(step("a"), work=work, tools=[tool.tool()], artifacts=artifacts)
    out = await b.run()
    assert out["status"] == "completed"
    reply = next(m for m in b.worker.asked[1].messages if isinstance(m, ToolMessage))
    assert len(reply.text) <= 8_000
    assert "[cut: " in reply.text
    assert reply.text.encode("utf-8")
    assert await artifacts.get(out["sources"][0].artifact) == text
    assert len(out["sources"][0].excerpt) <= 400


@pytest.mark.parametrize("source_id", ["s1", None])
async def test_c23_ten_huge_results_fit_one_request(source_id: str | None) -> None:
    tool = Look(source_id=source_id)
    tool.before = lambda query: f"{query} " + BIG["cjk on one line"]

    def conclude(asked: Any) -> AIMessage:
        first = next(m for m in asked.messages if isinstance(m, ToolMessage)).text
        return finding("a", first[1 : first.index("]")])

    work = {"a": [*(refusing(look(f"c{n}", f"q{n}")) for n in range(10)), refusing(conclude)]}
    b = bench(step("a", tool_budget=10), work=work, tools=[tool.tool()])
    out = await b.run(max_request_chars=20_000)
    assert of(out, "a").passed
    assert max(asked.chars for asked in b.worker.asked) <= 21_000


async def test_c23_every_role_stays_within_the_request_bound_with_huge_findings() -> None:
    ids = [f"s{n}" for n in range(8)]
    work = {i: [look(), refusing(finding(i, "s1", summary="结论" * 4_000))] for i in ids}
    work["end"] = [refusing(finding("end", summary="总" * 8_000))]
    b = bench(*(step(i) for i in ids), step("end", *ids, tools=[]), work=work, tools=[Look().tool()])
    b.reviewer.always = refusing(review())
    b.writer.always = refusing(AIMessage("完成 [1]。"))
    out = await b.run(max_request_chars=16_000)
    assert out["status"] == "completed"
    for role in (b.worker, b.reviewer, b.writer):
        for asked in role.asked:
            assert asked.chars <= 17_000
            assert asked.brief["role"]  # still one JSON object
    assert "[cut: " in b.worker.asked[-1].text
    assert "[cut: " in b.reviewer.asked[0].text
    assert "[cut: " in b.writer.asked[0].text


async def test_c23_the_steps_own_task_is_never_what_is_cut_away() -> None:
    task = "T" * 1_000
    work = {"a": [look(), finding("a", "s1", summary="x" * 8_000)], "b": [finding("b")]}
    b = bench(step("a"), step("b", "a", tools=[], task=task), work=work, tools=[Look().tool()])
    out = await b.run("o" * 5_000, max_request_chars=8_000)
    assert of(out, "b").passed
    assert json.loads(b.worker.asked[-1].messages[1].text)["step"]["task"] == task


async def test_c23_a_huge_objective_is_refused_before_any_model() -> None:
    b = bench(step("a"))
    with pytest.raises(InputError, match="20001"):
        await b.run("x" * 20_001)
    assert b.planner.asked == []


async def test_c23_huge_arguments_of_a_call_do_not_grow_the_next_request() -> None:
    tool = Look()
    b = bench(step("a"), work={"a": [look(query="q" * 2_000_000), finding("a", "s1")]}, tools=[tool.tool()])
    out = await b.run()
    assert out["status"] == "completed"
    assert (
        sum(len(str(call)) for m in b.worker.asked[1].messages for call in getattr(m, "tool_calls", ()))
        < 1_000
    )
    assert [len(query) for query in tool.runs] == [2_000_000]
    assert len(out["sources"][0].locator) <= 1_000


async def test_c23_a_wide_run_with_many_sources_still_fits_the_writer() -> None:
    tool = Look()
    tool.before = lambda query: [
        {
            "source_id": f"{query}-{n}",
            "text": "原文" * 200,
            "title": "题" * 200,
            "url": f"https://e.test/{query}/{n}",
        }
        for n in range(20)
    ]
    ids = [f"s{n}" for n in range(20)]
    work = {i: [look(query=i), finding(i, *(f"{i}-{n}" for n in range(20)))] for i in ids}
    b = bench(*(step(i, tool_budget=1) for i in ids), work=work, tools=[tool.tool()])
    b.writer.always = refusing(AIMessage("完成 [1]。"))
    out = await b.run()
    assert out["status"] == "completed"
    brief = b.writer.asked[0].brief
    assert len(brief["findings"]) == 20 or brief["left_out"] > 0
    assert b.writer.asked[0].chars <= 30_500


@pytest.mark.parametrize("role", ["planner", "worker", "reviewer", "writer"])
async def test_c23_a_huge_answer_ends_the_run_in_order(role: str) -> None:
    huge = ScriptedModel(always=AIMessage("{" * 300_000 + '"summary"' + "x" * 1_000_000))
    roles = {
        "planner": ScriptedModel(answers=[plan(step("a"))]),
        "worker": ScriptedModel(by_step={"a": [look(), finding("a", "s1")]}),
        "reviewer": ScriptedModel(always=review()),
        "writer": ScriptedModel(always=AIMessage("ok")),
    } | {role: huge}
    b = bench(step("a"), tools=[Look().tool()])
    graph = build_graph(models(**roles), [Look().tool()])
    out = await graph.ainvoke({"objective": "x"})
    assert out["status"] in ("failed", "partial", "completed")
    assert out["stop_reason"]
    again = [asked for asked in huge.asked if any(isinstance(m, HumanMessage) for m in asked.messages[2:])]
    assert all(asked.chars < REFUSES_ABOVE for asked in again)
    assert b.planner.asked == []

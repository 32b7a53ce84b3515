"""C09, C10, C12, C13: how a worker's answer may come, and how often it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, InvalidToolCall, ToolMessage

from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import ScriptedModel, call, calls, finding, look, step

GOOD: dict[str, Any] = {
    "summary": "a found",
    "source_ids": ["s1"],
    "criteria": [{"criterion": "a is known", "met": True, "reason": "r"}],
}
JSON = (
    '{"summary": "a found", "source_ids": ["s1"], '
    '"criteria": [{"criterion": "a is known", "met": true, "reason": "r"}]}'
)


async def test_c09_one_search_and_the_finding_fit_a_budget_of_one() -> None:
    tool = Look()
    b = bench(
        step("a", tool_budget=1),
        work={"a": [look("c1"), finding("a", "s1", call_id="f1")]},
        tools=[tool.tool()],
    )
    out = await b.run()
    evidence = of(out, "a")
    assert (evidence.passed, evidence.tool_calls, evidence.error_type) == (True, 1, None)
    assert len(tool.runs) == 1


@pytest.mark.parametrize(
    "answer",
    [
        calls(call("Finding", "f1", **GOOD)),
        AIMessage(JSON),
        AIMessage(f"```json\n{JSON}\n```"),
        AIMessage(f"<think>{{x}} a plan</think>{JSON}"),
        AIMessage(f"Here it is:\n{JSON}\nI hope {{this}} helps."),
        AIMessage([{"type": "text", "text": JSON}]),
    ],
    ids=["tool call", "json", "fence", "think", "prose", "blocks"],
)
async def test_c09_the_finding_may_come_in_any_form(answer: AIMessage) -> None:
    b = bench(step("a", tool_budget=1), work={"a": [look(), answer]}, tools=[Look().tool()])
    out = await b.run()
    assert of(out, "a").passed
    assert of(out, "a").model_calls == 2


async def test_c09_a_finding_beside_other_calls_leaves_no_call_unanswered() -> None:
    tool = Look()
    both = calls(call("look", "c2", query="late"), call("Finding", "f1", **GOOD))
    b = bench(step("a", tool_budget=3), work={"a": [look("c1"), both]}, tools=[tool.tool()])
    b.worker.always = finding("a", "s1", call_id="f2")
    out = await b.run()
    assert of(out, "a").passed
    assert len(tool.runs) == of(out, "a").tool_calls


@pytest.mark.parametrize("budget", [1, 2])
async def test_c10_three_calls_in_one_message_run_at_most_the_budget(budget: int) -> None:
    tool = Look()
    three = calls(*(call("look", f"c{n}", query=f"q{n}") for n in range(3)))
    b = bench(step("a", tool_budget=budget), work={"a": [three, finding("a", "s1")]}, tools=[tool.tool()])
    out = await b.run()
    evidence = of(out, "a")
    assert len(tool.runs) == budget
    replies = [m for m in b.worker.asked[1].messages if isinstance(m, ToolMessage)]
    assert sorted(m.tool_call_id for m in replies) == ["c0", "c1", "c2"]
    assert [m.status for m in replies].count("error") == 3 - budget
    assert evidence.source_ids == ["s1"]
    assert evidence.error_type == "tool_budget"
    assert len(evidence.missing) == 3 - budget


async def test_c10_calls_that_share_one_id_are_each_counted() -> None:
    tool = Look()
    twins = calls(
        call("look", "same", query="q1"), call("look", "same", query="q2"), call("look", "same", query="q3")
    )
    b = bench(step("a", tool_budget=2), work={"a": [twins, finding("a", "s1")]}, tools=[tool.tool()])
    out = await b.run()
    assert len(tool.runs) <= 2
    assert of(out, "a").tool_calls == len(tool.runs)


BAD_FINDINGS: list[Callable[[int], AIMessage]] = [
    lambda n: calls(call("Finding", f"f{n}")),
    lambda n: calls(call("Finding", f"f{n}", **{**GOOD, "passed": True})),
    lambda n: calls(call("Finding", f"f{n}", **{**GOOD, "summary": ""})),
    lambda n: calls(call("Finding", f"f{n}", **{**GOOD, "source_ids": "s1"})),
    lambda n: calls(
        call("Finding", f"f{n}", **{**GOOD, "criteria": [{"criterion": "a is known", "met": "yes"}]})
    ),
    lambda n: calls(call("Finding", f"f{n}", **{**GOOD, "source_ids": [f"s{i}" for i in range(51)]})),
    lambda n: calls(call("Finding", f"f{n}", **{**GOOD, "summary": "x" * 8001})),
    lambda n: calls(call("Finding", f"f{n}"), call("Finding", f"g{n}")),
    lambda n: AIMessage('{"summary": 3}'),
    lambda n: AIMessage(f'```json\n{{"summary": {n}, "source_ids": null}}\n```'),
]


@pytest.mark.parametrize("bad", BAD_FINDINGS)
async def test_c12_a_finding_that_never_validates_is_tried_three_times_at_most(
    bad: Callable[[int], AIMessage],
) -> None:
    worker = ScriptedModel(answers=[look(), *(bad(n) for n in range(10))])
    out = await bench(step("a"), worker=worker, tools=[Look().tool()]).run()
    evidence = of(out, "a")
    assert (evidence.passed, evidence.error_type) == (False, "schema")
    assert evidence.source_ids == ["s1"]
    assert 2 <= len(worker.asked) - 1 <= 3


@pytest.mark.parametrize("bad", BAD_FINDINGS)
async def test_c12_a_corrected_finding_counts_and_the_problem_was_named(
    bad: Callable[[int], AIMessage],
) -> None:
    b = bench(
        step("a"), work={"a": [look(), bad(1), finding("a", "s1", call_id="f9")]}, tools=[Look().tool()]
    )
    out = await b.run()
    assert of(out, "a").passed
    again = b.worker.asked[-1].messages[-1].text
    assert "Finding" in again or "validat" in again


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage("Done."),
        AIMessage("完成了 {ok}"),
        AIMessage(""),
        AIMessage([]),
        AIMessage(
            "",
            invalid_tool_calls=[InvalidToolCall(name="Finding", args="{broken", id="i1", error="bad json")],
        ),
        AIMessage("", invalid_tool_calls=[InvalidToolCall(name=None, args=None, id=None, error=None)]),
        AIMessage("", response_metadata={"finish_reason": "length"}),
    ],
    ids=["prose", "zh", "empty", "no blocks", "invalid call", "nameless call", "cut"],
)
async def test_c13_prose_and_nothing_get_one_nudge_then_fail_with_the_reason(answer: AIMessage) -> None:
    worker = ScriptedModel(always=answer)
    out = await bench(step("a"), worker=worker, tools=[Look().tool()]).run()
    evidence = of(out, "a")
    assert (evidence.passed, evidence.error_type) == (False, "schema")
    assert evidence.detail
    assert len(worker.asked) == 2


async def test_c13_the_nudge_is_enough_for_a_worker_that_only_forgot() -> None:
    b = bench(step("a"), work={"a": [look(), AIMessage("Done."), finding("a", "s1")]}, tools=[Look().tool()])
    out = await b.run()
    assert of(out, "a").passed


async def test_c13_a_worker_that_is_cut_off_is_told_so() -> None:
    cut = AIMessage('{"summary": "half', response_metadata={"finish_reason": "length"})
    b = bench(step("a"), work={"a": [look(), cut, finding("a", "s1")]}, tools=[Look().tool()])
    assert of(await b.run(), "a").passed
    assert "token limit" in b.worker.asked[-1].messages[-1].text


@pytest.mark.parametrize("reason", ["stop", "length"])
async def test_a_whole_finding_written_as_a_call_counts_though_blank_lines_after_it_were_cut(
    reason: str,
) -> None:
    given = finding("a", "s1").tool_calls[0]["args"]
    text = json.dumps({"name": "Finding", "arguments": given}, indent=2) + "\n" * 40
    written = AIMessage(text, response_metadata={"finish_reason": reason})
    b = bench(step("a"), work={"a": [look(), written]}, tools=[Look().tool()])
    assert of(await b.run(), "a").passed
    assert len(b.worker.asked) == 2

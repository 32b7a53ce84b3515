"""C16, C17, C18, C21: what tools raise, and tools that are not there."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import anyio
import httpx
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import Command

from graph import build_graph
from schemas.errors import ToolDefinitionError
from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import ScriptedModel, call, calls, finding, look, models, step


def raising(error: BaseException, name: str = "look", **metadata: Any) -> Look:
    def fail(query: str) -> None:
        raise error

    tool = Look(name, **metadata)
    tool.before = fail
    return tool


ERRORS = [
    (ConnectionError("refused"), "transient"),
    (anyio.ClosedResourceError(), "transient"),
    (TimeoutError(), "transient"),
    (httpx.ReadTimeout("slow"), "transient"),
    (ExceptionGroup("g", [ConnectionError("x"), anyio.BrokenResourceError()]), "transient"),
    (ExceptionGroup("g", [ConnectionError("x"), ValueError("y")]), "tool"),
    (ToolException("no such path: write another"), "tool"),
    (ValueError("bad {value}"), "tool"),
    (PermissionError("no"), "auth"),
]


@pytest.mark.parametrize(
    ("error", "kind"), ERRORS, ids=lambda v: v if isinstance(v, str) else type(v).__name__
)
async def test_c16_a_raising_tool_is_one_evidence_and_costs_no_sibling(
    error: BaseException, kind: str
) -> None:
    bad = raising(error, "bad")
    work = {"a": [look(tool="bad"), finding("a", met=False)], "b": [look(), finding("b", "s1")]}
    b = bench(step("a"), step("b"), work=work, tools=[bad.tool(), Look().tool()])
    out = await b.run(max_replans=0)
    assert [(e.step_id, e.passed) for e in out["evidence"]] == [("a", False), ("b", True)]
    assert of(out, "a").error_type == kind
    assert len(b.reviewer.asked) == 1
    assert out["status"] == "partial"


async def test_c16_a_tool_of_two_that_fails_does_not_fail_the_step() -> None:
    work = {"a": [look("1", tool="bad"), look("2"), finding("a", "s1")]}
    b = bench(step("a"), work=work, tools=[raising(ValueError("x"), "bad").tool(), Look().tool()])
    assert of(await b.run(), "a").passed


async def test_c16_the_model_reads_what_the_tool_said() -> None:
    work = {"a": [look(), finding("a", met=False)]}
    b = bench(step("a"), work=work, tools=[raising(ToolException("write a path below docs/")).tool()])
    await b.run()
    assert "write a path below docs/" in b.worker.asked[1].messages[-1].text


@pytest.mark.parametrize("permission", [None, "write", "network"])
async def test_c17_what_is_not_idempotent_is_not_retried(permission: str | None) -> None:
    metadata = {"permission": permission} if permission else {}
    mail = raising(httpx.ReadTimeout("no answer"), "mail", **metadata)
    work = {"a": [look(tool="mail"), finding("a", met=False)]}
    b = bench(step("a", tools=["mail"]), work=work, tools=[mail.tool()])
    out = await b.run()
    if permission:
        out = await b.go_on(Command(resume={"decision": "approve"}))
    assert len(mail.runs) == 1
    assert of(out, "a").tool_calls == out["usage"].tool_calls == 1


async def test_c17_what_is_idempotent_is_retried_and_every_attempt_recorded() -> None:
    tool = Look(idempotent=True)
    tool.before = lambda query: (_ for _ in ()).throw(ConnectionError("x")) if len(tool.runs) < 2 else None
    out = await bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[tool.tool()]).run()
    assert (len(tool.runs), of(out, "a").tool_calls) == (2, 2)
    assert of(out, "a").passed


async def test_c17_a_fault_that_will_not_go_away_is_not_retried() -> None:
    tool = raising(ValueError("wrong"), idempotent=True)
    await bench(step("a"), work={"a": [look(), finding("a", met=False)]}, tools=[tool.tool()]).run()
    assert len(tool.runs) == 1


async def test_c17_a_retry_that_the_budget_forbids_leaves_the_error_itself() -> None:
    tool = raising(ConnectionError("host is down"), idempotent=True)
    work = {"a": [look(), finding("a", met=False)]}
    out = await bench(step("a", tool_budget=1), work=work, tools=[tool.tool()]).run()
    assert len(tool.runs) == 1
    assert of(out, "a").error_type == "transient"
    assert "host is down" in of(out, "a").detail


@pytest.mark.parametrize("idempotent", [False, True])
async def test_c18_a_tools_own_timeout_is_not_the_steps(idempotent: bool) -> None:
    tool = raising(TimeoutError("0.1 s"), idempotent=idempotent)
    out = await bench(step("a"), work={"a": [look(), finding("a", met=False)]}, tools=[tool.tool()]).run()
    assert of(out, "a").error_type in ("transient", "tool")


async def test_c18_back_off_stays_inside_the_time_left() -> None:
    tool = raising(TimeoutError("0.1 s"), idempotent=True)
    b = bench(step("a", tool_budget=10), work={"a": [look(), finding("a", met=False)]}, tools=[tool.tool()])
    began = time.monotonic()
    out = await b.run(step_timeout_cap=2, max_replans=0)
    assert time.monotonic() - began < 2
    assert of(out, "a").error_type in ("transient", "tool")


async def test_c18_a_tool_over_its_own_time_is_cut_and_the_step_goes_on() -> None:
    async def forever(query: str) -> None:
        await asyncio.Event().wait()

    slow = Look("slow", timeout_seconds=0.05)
    slow.before = forever
    work = {"a": [look("1", tool="slow"), look("2"), finding("a", "s1")]}
    out = await bench(step("a"), work=work, tools=[slow.tool(), Look().tool()]).run()
    assert of(out, "a").passed
    assert of(out, "a").tool_calls == 2


def test_c21_two_tools_of_one_name_are_refused_at_build_time() -> None:
    def first(query: str) -> str:
        """Look."""
        return query

    def second(query: str) -> str:
        """Look."""
        return query

    tools: list[BaseTool] = [StructuredTool.from_function(f, name="look") for f in (first, second)]
    with pytest.raises(ToolDefinitionError) as caught:
        build_graph(models(), tools)
    assert "first" in str(caught.value)
    assert "second" in str(caught.value)


@pytest.mark.parametrize("name", ["Finding", "a b", "名字", "x" * 65])
def test_c21_names_that_cannot_work_are_refused_at_build_time(name: str) -> None:
    with pytest.raises(ToolDefinitionError):
        build_graph(models(), [Look(name).tool()])


async def test_c21_a_tool_that_does_not_exist_is_no_tool_run() -> None:
    ghost = [calls(call("ghost", f"g{n}", n=n)) for n in range(5)]
    worker = ScriptedModel(answers=[*ghost, finding("a", "s1")], always=finding("a", "s1", call_id="f2"))
    tool = Look()
    out = await bench(step("a"), worker=worker, tools=[tool.tool()]).run()
    evidence = of(out, "a")
    assert (evidence.passed, evidence.tool_calls, tool.runs) == (False, 0, [])
    assert len(worker.asked) <= 7
    assert "no tool call succeeded" in evidence.detail


async def test_c21_only_the_steps_own_tools_can_be_called() -> None:
    secret = Look("secret")
    work: dict[str, list[AIMessage]] = {"a": [look(tool="secret"), finding("a", "s1")]}
    await bench(step("a", tools=["look"]), work=work, tools=[Look().tool(), secret.tool()]).run()
    assert secret.runs == []

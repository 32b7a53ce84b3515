"""Foreign code: what a tool or a verifier raises, or how long it takes, ends no process and costs no other step."""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command, interrupt

from schemas.evidence import Evidence
from schemas.plan import Step
from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import finding, look, step


class Panic(BaseException):
    """What bindings to other languages raise."""


def parses(query: str) -> str:
    """Parse it."""
    argparse.ArgumentParser().parse_args(["--nope"])
    return "unreachable"


def panics(query: str) -> str:
    """Panic."""
    raise Panic("at the disco")


async def exits(query: str) -> str:
    """Exit."""
    raise SystemExit(3)


async def panics_too(query: str) -> str:
    """Panic."""
    raise Panic("at the disco")


def tool_of(body: Any) -> BaseTool:
    given = {"coroutine": body} if asyncio.iscoroutinefunction(body) else {"func": body}
    return StructuredTool.from_function(**given, name="odd")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (parses, "tried to end the process: exit(2)"),
        (exits, "tried to end the process: exit(3)"),
        (panics, "raised Panic: at the disco"),
        (panics_too, "raised Panic: at the disco"),
    ],
)
async def test_invariant_03_a_tool_that_would_end_the_process_fails_its_own_step(
    body: Callable[..., Any], said: str
) -> None:
    work = {"a": [look(tool="odd"), finding("a", "s1")], "b": [look(), finding("b", "s1")]}
    out = await bench(step("a"), step("b"), work=work, tools=[tool_of(body), Look().tool()]).run(
        max_replans=0
    )
    assert said in of(out, "a").detail
    assert of(out, "a").error_type == "tool"
    assert of(out, "b").passed


async def test_a_result_to_be_returned_directly_is_a_result_like_any_other() -> None:
    direct = Look().tool().model_copy(update={"return_direct": True})
    out = await bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[direct]).run()
    assert of(out, "a").passed


async def test_invariant_03_a_verifier_that_blocks_holds_up_no_other_step() -> None:
    b_was_looked_up, looked = threading.Event(), Look()

    def verify(step: Step, evidence: Evidence) -> bool:
        return step.id != "a" or b_was_looked_up.wait(60)

    async def late(query: str) -> None:
        if query == "b":
            await verifying.wait()
            b_was_looked_up.set()

    verifying = asyncio.Event()
    loop = asyncio.get_running_loop()

    def noted(step: Step, evidence: Evidence) -> bool:
        if step.id == "a":
            loop.call_soon_threadsafe(verifying.set)
        return verify(step, evidence)

    looked.before = late
    work = {i: [look(query=i), finding(i, "s1")] for i in "ab"}
    out = await bench(step("a"), step("b"), work=work, tools=[looked.tool()], verify_step=noted).run()
    assert out["status"] == "completed"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (asyncio.CancelledError("of its own"), "cancelling itself"),
        (SystemExit(1), "exit(1)"),
        (Panic("x"), "Panic"),
    ],
    ids=["cancelled", "exit", "panic"],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_invariant_03_whatever_a_verifier_raises_is_no_pass(
    error: BaseException, said: str, kind: str
) -> None:
    def verify(step: Step, evidence: Evidence) -> bool:
        raise error

    async def averify(step: Step, evidence: Evidence) -> bool:
        raise error

    work = {"a": [look(), finding("a", "s1")]}
    chosen: Any = verify if kind == "sync" else averify
    out = await bench(step("a"), work=work, tools=[Look().tool()], verify_step=chosen).run(max_replans=0)
    assert of(out, "a").error_type == "check_failed"
    assert said in of(out, "a").detail or "CancelledError" in of(out, "a").detail


async def test_invariant_03_a_verifier_may_ask_a_person() -> None:
    async def verify(step: Step, evidence: Evidence) -> bool:
        return interrupt({"kind": "verify", "step_id": step.id}) == "fine"

    work = {"a": [look(), finding("a", "s1")]}
    b = bench(step("a"), work=work, tools=[Look().tool()], verify_step=verify)
    out = await b.run()
    assert [q.value["kind"] for q in out["__interrupt__"]] == ["verify"]
    assert (await b.go_on(Command(resume="fine")))["status"] == "completed"

"""One seeded run against hostile models and tools, and everything that must hold of it."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph import RunContext, build_graph
from graph.persistence import open_graph
from graph.settings import Settings
from schemas.limits import RunLimits
from tests.hostile.model import models
from tests.hostile.person import answer_to, note_approvals
from tests.hostile.text import nasty, phrase
from tests.hostile.tools import tools
from tests.hostile.virtual_time import VirtualLoop
from tests.hostile.world import ROLES, World

RESUMES = 12
MAX_SECONDS = 20.0


class ReadCounter(AsyncCallbackHandler):
    """Counts the runs of the one tool that is not ours, as LangChain sees them."""

    def __init__(self) -> None:
        self.started = 0

    async def on_tool_start(self, serialized: dict[str, Any], input_str: str, **kwargs: Any) -> None:
        self.started += (serialized or {}).get("name") == "read_document"


class Warnings(logging.Handler):
    """Collects what LangGraph warns of: a class that a checkpoint may not hold comes back as a dict."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@dataclass
class Run:
    """A finished run and the truth about it.

    Attributes:
        out: what the caller got; values: what the checkpointer gives back, None without one.
        events: of the custom stream, in order.
        cuts: how often the run was cancelled and taken up again.
        seconds: virtual seconds from the first to the last event, pauses included.
    """

    seed: int
    world: World
    context: RunContext
    verifier: str
    objective: str
    out: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    reads: ReadCounter = field(default_factory=ReadCounter)
    cuts: int = 0
    revisions: int = 0
    seconds: float = 0.0

    @property
    def limits(self) -> RunLimits:
        """Those that the run ended with: a person may have raised them."""
        return (self.values or {}).get("limits") or self.context.limits


def prepared(seed: int, *, calm: bool = False) -> Run:
    """Roll what kind of run it is to be."""
    rng = Random(f"run {seed}")
    level = rng.choice((0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.9))
    hostility = {role: level if rng.random() < 0.7 else rng.choice((0.0, 0.1, 0.4, 1.0)) for role in ROLES}
    hostility["planner"] = rng.choice((0.0, 0.0, 0.1, level))  # a run without a plan tells little
    hostility["reviewer"] = rng.choice((0.0, level, 0.4, 1.0))
    hostility["worker"] = max(hostility["worker"], rng.choice((0.0, 0.2, 0.4)))
    hostility["writer"] = rng.choice((0.0, 0.3, 1.0))
    hostility["hang"] = rng.choice((0, 0, 1, 3))
    limits = RunLimits(
        total_tool_budget=rng.choice((0, 1, 5, 12, 32, 32, 32, 100, 100)),
        deadline_seconds=1800 if calm else rng.choice((5, 60, 1800, 1800, 1800, 1800)),
        max_parallel_steps=rng.choice((1, 2, 8)),
        max_plan_steps=rng.choice((1, 4, 20, 20, 20)),
        max_attempted_steps=rng.choice((1, 5, *[40] * 6)),
        max_replans=rng.choice((None, None, 0, 1, 3)),
        step_timeout_cap=rng.choice((None, None, None, 1, 5)),
        max_model_calls_per_step=rng.choice((1, 2, 4, *[16] * 5)),
        max_request_chars=rng.choice((16_000, 30_000)),
        max_result_chars=rng.choice((200, 8_000)),
        max_tokens=rng.choice((*[None] * 8, 1, 500, 2_000)),
    )
    context = RunContext(
        mode=rng.choice(("auto", "auto", "plan", "react", "reflect")),
        review_plan=rng.choice(("never", "never", "never", "first", "always")),
        on_gaps=rng.choice(("finish", "finish", "ask")),
        questions=rng.choice(("ask", "assume")),
        autonomy=rng.choice(("ask", "ask", "ask", "read", "all")),
        limits=limits,
    )
    verifier = rng.choice(
        (*[""] * 12, "true", "async true", "one", "none", "raises", "false", "coroutine of one")
    )
    world = World(seed, calm=calm, max_request_chars=limits.max_request_chars, hostility=hostility)
    objective = rng.choice(
        ("Compare the {five} vendors", "比较五家供应商 😀 ①", f"x {nasty(rng)[:19_000]}", phrase(rng))
    )
    return Run(seed, world, context, verifier, objective)


def verify_with(kind: str) -> Any:
    """Return a verifier of that kind; only those that say True may let a step pass."""

    async def later(value: Any) -> Any:
        return value

    def verify(*_: Any) -> Any:
        if kind == "raises":
            raise ExceptionGroup("verifier", [KeyError("x")])
        answers = {"true": True, "one": 1, "none": None, "false": False}
        return answers[kind] if kind in answers else later({"async true": True, "coroutine of one": 1}[kind])

    return verify if kind else None


def run_seed(seed: int) -> Run:
    """Carry out one run on virtual time, kept by an InMemorySaver."""
    return _on_virtual_time(prepared(seed), InMemorySaver())


def run_streamed(seed: int) -> Run:
    """Carry out one run on virtual time whose steps may start while the planner writes."""
    run = prepared(seed)
    limits = run.context.limits.model_copy(update={"max_tokens": None})
    choices = {"stream_plan": True, "review_plan": "never", "mode": "plan", "limits": limits}
    run.context = run.context.model_copy(update=choices)
    return _on_virtual_time(run, InMemorySaver())


def run_alone(seed: int) -> Run:
    """Carry out one run on virtual time that is kept nowhere: nobody can be asked, and nothing resumed."""
    run = prepared(seed)
    run.context = run.context.model_copy(
        update={"review_plan": "never", "on_gaps": "finish", "questions": "assume"}
    )
    return _on_virtual_time(run, None)


def _on_virtual_time(run: Run, saver: InMemorySaver | None) -> Run:
    warnings = Warnings()
    logging.getLogger("langgraph").addHandler(warnings)
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(_in_memory(run, saver))
    finally:
        logging.getLogger("langgraph").removeHandler(warnings)
    for line in warnings.lines:
        run.world.fault(f"langgraph warned: {line}")
    return run


async def run_on_disk(seed: int, home: Path) -> Run:
    """Carry out one run on the real clock, with the durable default."""
    run = prepared(seed, calm=True)
    async with open_graph(
        Settings(home=home),
        models=models(run.world),
        tools=tools(run.world),
        verify_step=verify_with(run.verifier),
    ) as graph:
        async with asyncio.timeout(MAX_SECONDS):
            await drive(graph, run)
    return run


async def _in_memory(run: Run, saver: InMemorySaver | None) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    offered = [tool for tool in tools(run.world) if saver or tool.name != "send"]
    graph = build_graph(
        models(run.world),
        offered,
        verify_step=verify_with(run.verifier),
        verify_goal=verify_with(run.world.roll("goal").choice(("", "", "true", "one"))),
        checkpointer=saver,
        parts={"clock": loop.time, "now": loop.now},
    )
    began = loop.time()
    if saver is None:
        await _stretch(graph, {"objective": run.objective}, {"callbacks": [run.reads]}, run, after=None)
        run.values = run.out
    else:
        await drive(graph, run)
    run.seconds = loop.time() - began


async def drive(graph: Any, run: Run) -> None:
    """Run to the end: answer what is asked, and sometimes cut the run off and go on."""
    rng = run.world.roll("person")
    config: dict[str, Any] = {"configurable": {"thread_id": f"t.{run.seed}"}, "callbacks": [run.reads]}
    given: Any = {"objective": run.objective}
    for turn in range(RESUMES * 3):
        cut = rng.random() < 0.08 and run.cuts < 2 and not run.world.calm
        await _stretch(graph, given, config, run, after=rng.choice((0, 1, 3, 10)) if cut else None)
        state = await graph.aget_state(config)
        if state.interrupts:
            answers = {i.id: answer_to(i.value, rng, run, final=turn >= RESUMES) for i in state.interrupts}
            if rng.random() < 0.3:  # one at a time
                first = state.interrupts[0].id
                answers = {first: answers[first]}
            note_approvals({i.id: i.value for i in state.interrupts}, answers, run)
            given = Command(resume=answers)
        elif state.next:
            given = None
        elif state.values.get("final_answer"):
            break
    else:
        raise AssertionError(f"still not at its end after {RESUMES * 3} stretches: {state.next}")
    run.values = state.values


async def _stretch(graph: Any, given: Any, config: dict[str, Any], run: Run, after: float | None) -> None:
    """Stream until the run ends or pauses, or for `after` seconds."""

    async def stream() -> None:
        chunks = graph.astream(given, config, context=run.context, stream_mode=["custom", "values"])
        async for mode, chunk in chunks:
            if mode == "custom":
                run.events.append(json.loads(json.dumps(chunk)))
            else:
                run.out = chunk

    task = asyncio.ensure_future(stream())
    done, _ = await asyncio.wait({task}, timeout=after)
    if done:
        return task.result()
    run.cuts += 1
    task.cancel()
    await asyncio.wait({task})
    return None

"""A whole run over scripted roles: what each role answers comes in, the output and what was asked come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from graph import RunContext, build_graph
from graph.threads import TaskGraph
from schemas.evidence import Evidence
from schemas.limits import RunLimits
from tests.scripted import ScriptedModel, models, plan, review


def config(thread_id: str = "t1") -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id}}


def context(**choices: Any) -> RunContext:
    """Return run choices; what RunLimits knows goes into the limits."""
    limits = {key: choices.pop(key) for key in list(choices) if key in RunLimits.model_fields}
    return RunContext(limits=RunLimits(**limits), **choices)


@dataclass
class Bench:
    """A graph and the scripted models behind it."""

    graph: TaskGraph
    planner: ScriptedModel
    worker: ScriptedModel
    reviewer: ScriptedModel
    writer: ScriptedModel

    async def run(
        self, objective: str = "find it", thread: str = "t1", ctx: RunContext | None = None, **choices: Any
    ) -> dict[str, Any]:
        given = ctx or (context(**choices) if choices else None)
        return await self.graph.ainvoke({"objective": objective}, config(thread), context=given)

    async def go_on(self, value: Any = None, thread: str = "t1") -> dict[str, Any]:
        return await self.graph.ainvoke(value, config(thread))

    async def values(self, thread: str = "t1") -> dict[str, Any]:
        return (await self.graph.aget_state(config(thread))).values


def bench(
    *steps: Mapping[str, Any],
    work: Mapping[str, Sequence[Any]] | None = None,
    worker: ScriptedModel | None = None,
    planner: Sequence[Any] | ScriptedModel | None = None,
    reviewer: Sequence[Any] | None = None,
    writer: Any = None,
    tools: Sequence[BaseTool] = (),
    **build: Any,
) -> Bench:
    """Build a run: by default one plan of `steps`, a reviewer that approves always, a writer of one sentence."""
    build.setdefault("checkpointer", InMemorySaver())
    by_step = {key: list(answers) for key, answers in (work or {}).items()}
    roles = {
        "planner": planner
        if isinstance(planner, ScriptedModel)
        else ScriptedModel(answers=list(planner) if planner is not None else [plan(*map(dict, steps))]),
        "worker": worker or ScriptedModel(by_step=by_step),
        "reviewer": ScriptedModel(
            answers=list(reviewer or ()), always=None if reviewer is not None else review()
        ),
        "writer": ScriptedModel(always=writer or AIMessage("The answer.")),
    }
    return Bench(build_graph(models(**roles), list(tools), **build), **roles)


def of(out: Mapping[str, Any], step_id: str) -> Evidence:
    """Return the last record of a step."""
    return [e for e in out["evidence"] if e.step_id == step_id][-1]

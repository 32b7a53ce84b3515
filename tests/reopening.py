"""What the tests of pauses and of going on share: a new graph over the same threads, and answers to questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from agents.models import Models
from graph import build_graph
from tests.running import Bench
from tests.scripted import Asked, call, calls


def reopened(b: Bench, tools: Sequence[BaseTool] = (), **build: Any) -> Bench:
    """Return a bench with the same scripted models and threads, and a graph object of its own: a new process."""
    roles = Models(b.planner, b.worker, b.reviewer, b.writer)
    saver: Any = b.graph.checkpointer
    return replace(b, graph=build_graph(roles, list(tools), checkpointer=saver, **build))


def asked_of(out: dict[str, Any]) -> dict[str, Any]:
    """Return the value of the one question that a run waits with."""
    (interrupt,) = out["__interrupt__"]
    return interrupt.value


async def answer(b: Bench, value: Any, tools: Sequence[BaseTool] = ()) -> dict[str, Any]:
    """Answer the pending question in a new graph object over the same threads."""
    return await reopened(b, tools).go_on(Command(resume=value))


def questions(*texts: str, **fields: Any) -> AIMessage:
    return calls(call("Plan", "p1", goal="the goal", steps=[], questions=list(texts), **fields))


def ran(b: Bench) -> list[str]:
    """Return the ids of the steps that a worker was started on, in that order, each attempt once."""
    ids: list[str] = []
    for asked in b.worker.asked:
        if is_first(asked):
            ids.append(asked.brief["step"]["id"])
    return ids


def is_first(asked: Asked) -> bool:
    return not any(isinstance(message, AIMessage) for message in asked.messages)


def briefs(b: Bench, role: str) -> list[dict[str, Any]]:
    """Return the planning model's requests of one role."""
    return [asked.brief for asked in b.planner.asked if asked.brief["role"] == role]

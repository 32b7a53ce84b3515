"""The graph that the test's servers serve, besides that of langgraph.json: its tool bodies can be counted.

A run's objective is its name. Its plan has the steps a, b (two calls each), c (after a) and d (after a and b).
Bodies append "start <run>/<call> <pid>" and "end <run>/<call> <pid>" to the file in PLANWEAVE_TEST_LOG. Where
PLANWEAVE_TEST_GATE is set, the second calls wait in their bodies until that file exists.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool
from pydantic import Field

from agents.models import Models
from graph import build_graph
from graph.persistence import artifacts_in
from graph.settings import load_settings
from graph.threads import TaskGraph
from tests.scripted import finding, look, plan, review, step

LOG = os.environ.get("PLANWEAVE_TEST_LOG", os.devnull)
GATE = os.environ.get("PLANWEAVE_TEST_GATE", "")
SECONDS = float(os.environ.get("PLANWEAVE_TEST_SECONDS", "0.01"))
CALLS = {"a": ["a1", "a2"], "b": ["b1", "b2"], "c": ["c1"], "d": ["d1"]}


async def fetch(query: str) -> Any:
    """Fetch a page."""
    note("start", query)
    while GATE and query[-1] == "2" and not Path(GATE).exists():  # noqa: ASYNC110, ASYNC240 - another process opens it
        await asyncio.sleep(0.05)
    await asyncio.sleep(SECONDS)
    note("end", query)
    return [
        {
            "source_id": f"s-{query.replace('/', '-')}",
            "text": f"text of {query}",
            "url": f"https://e.test/{query}",
        }
    ]


def note(word: str, query: str) -> None:
    # One write of a few bytes: lines of two processes do not mix.
    handle = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(handle, f"{word} {query} {os.getpid()}\n".encode())
    os.close(handle)


class StatelessModel(BaseChatModel):
    """Every role; the answer is a function of the request, whichever process is asked."""

    bound: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "stateless"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(SECONDS)
        return ChatResult(generations=[ChatGeneration(message=answer(messages))])


def answer(messages: Sequence[BaseMessage]) -> AIMessage:
    brief = json.loads(next(m.text for m in messages if isinstance(m, HumanMessage)))
    if brief["role"] == "worker":
        return work(brief, messages)
    answers = {
        "planner": plan(step("a"), step("b"), step("c", "a"), step("d", "a", "b")),
        "reviewer": review(approved=True),
        "writer": AIMessage("All is known."),
    }
    return answers[brief["role"]]


def work(brief: dict[str, Any], messages: Sequence[BaseMessage]) -> AIMessage:
    """Return the step's next call, or its finding."""
    name, run = brief["step"]["id"], brief["objective"]
    done = sum(isinstance(m, ToolMessage) for m in messages)
    if done < len(CALLS[name]):
        return look(f"call_{done}", f"{run}/{CALLS[name][done]}", tool="fetch")
    return finding(name, *(f"s-{run}-{call}" for call in CALLS[name]), call_id="answer")


def export() -> TaskGraph:
    fetching = StructuredTool.from_function(coroutine=fetch, name="fetch")
    artifacts = artifacts_in(load_settings().artifacts, None)
    return build_graph(Models.single(StatelessModel()), [fetching], artifacts=artifacts)


graph = export()

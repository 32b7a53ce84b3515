"""A run whose steps start while the planner still writes, in a process of its own, made to be killed.

    python -m tests.kill.streamed HOME run|resume [--plan same|other] [--pause] [--database URL]

HOME/bodies.log has a line for each body that began, and for each time the planner was asked. Every event is printed as
one JSON object; the last line is {"done": outcome}. With --pause the planner, and the body of b, never end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import SecretStr

from agents.models import Models
from graph import RunContext, open_graph
from graph.runner import outcome
from graph.settings import Settings
from tests.scripted import calls, finding, look, review, step

THREAD: Any = {"configurable": {"thread_id": "killed"}}
FIELDS: Any = {"tool_budget": 3}
PLANS: dict[str, list[dict[str, Any]]] = {
    "same": [step("a", **FIELDS), step("b", **FIELDS), step("c", "a", "b", **FIELDS)],
    "other": [step("a", **FIELDS), step("c", "a", **FIELDS)],
}


class World:
    """The log, and whether anybody ever comes to an end."""

    def __init__(self, home: Path, plan: str, *, pause: bool) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.plan, self.pause = PLANS[plan], pause
        self.log_file = os.open(home / "bodies.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def log(self, line: str) -> None:
        os.write(self.log_file, f"{line}\n".encode())

    def tool(self) -> BaseTool:
        async def fetch(query: str) -> Any:
            """Fetch a page."""
            self.log(query)
            if self.pause and query == "b":
                await asyncio.Event().wait()
            return [{"source_id": f"s-{query}", "text": f"text of {query}"}]

        return StructuredTool.from_function(coroutine=fetch, name="look", metadata={"idempotent": True})


class Role(BaseChatModel):
    """Every role; the answer is a function of the request. The planner streams."""

    world: Any

    @property
    def _llm_type(self) -> str:
        return "streamed"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        brief = brief_of(messages)
        answer = AIMessage("The answer.")
        if brief["role"] == "worker":
            answer = work(brief["step"]["id"], messages)
        if brief["role"] == "reviewer":
            answer = review(approved=True)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        if brief_of(messages)["role"] != "planner":
            message = self._generate(messages).generations[0].message
            yield ChatGenerationChunk(message=AIMessageChunk(**message.model_dump(exclude={"type"})))
            return
        self.world.log("planner")
        text = json.dumps({"goal": "g", "steps": self.world.plan})
        for at in range(0, len(text), 8):
            await asyncio.sleep(0)  # others get their turn, as with a real server
            if self.world.pause and at > len(text) - 16:
                await asyncio.Event().wait()
            part = tool_call_chunk(name=None if at else "Plan", args=text[at : at + 8], id="p", index=0)
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[part]))


def brief_of(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    return json.loads(next(m.text for m in messages if isinstance(m, HumanMessage)))


def work(step_id: str, messages: Sequence[BaseMessage]) -> AIMessage:
    rounds = sum(isinstance(m, ToolMessage) for m in messages)
    queries = [step_id, f"{step_id}-more"]
    if rounds < len(queries):
        return look(f"c{rounds}", query=queries[rounds])
    return calls(*finding(step_id, f"s-{step_id}").tool_calls)


async def drive(options: argparse.Namespace) -> None:
    world = World(options.home, options.plan, pause=options.pause)
    url = SecretStr(options.database) if options.database else None
    settings = Settings(home=options.home, database_url=url)
    given = {"objective": "find a and b, then c"} if options.mode == "run" else None
    async with open_graph(settings, models=Models.single(Role(world=world)), tools=[world.tool()]) as graph:
        stream = graph.astream(given, THREAD, context=RunContext(stream_plan=True), stream_mode="custom")
        async for event in stream:
            print(json.dumps(event), flush=True)  # noqa: T201 - its only output
        print(json.dumps({"done": (await outcome(graph, "killed")).to_json()}), flush=True)  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("mode", choices=["run", "resume"])
    parser.add_argument("--plan", default="same")
    parser.add_argument("--pause", action="store_true")
    parser.add_argument("--database")
    asyncio.run(drive(parser.parse_args()))


if __name__ == "__main__":
    main()

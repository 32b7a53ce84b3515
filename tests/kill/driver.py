"""A real run in a process of its own, made to be killed.

    python -m tests.kill.driver run|resume|approve HOME [--stop NAME] [--review first] [--plan OBJECTIVE] [--own]

--own builds the graph on a saver and a Store of the caller's own instead of opening the durable default.

The models answer from the request alone, so that a new process goes on where a killed one was. HOME/bodies.log is what
can be counted from outside; a line is a word and a name:

    life -        a process began
    start <id>    a tool body began; end <id>: it ended
    kept <id>     Planweave has said that the call is finished
    beat -        the event loop has gone round for another 5 ms

What happens is printed as one JSON object on a line: {"at": NAME} at the stop point, where the process then waits
to be killed; {"done": outcome} at the end, or {"error": class, "line": text, "done": outcome}. Stop points: plan, review, finish,
body:<id> (in a tool body), wave (step a has its evidence and call c3 its result; calls b2 and c2 are in their bodies).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from pydantic import SecretStr

from agents.models import Models
from graph import RunContext, build_graph, open_graph
from graph.runner import outcome
from graph.settings import Settings
from graph.threads import TaskGraph
from schemas.errors import PlanweaveError
from schemas.limits import RunLimits
from tests.kill.model import StatelessModel
from tests.kill.scenes import scene_of

THREAD = "killed"
BEAT = 0.005
Report = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Order:
    """What a process is to do.

    Attributes:
        stop: where it waits to be killed; None = nowhere.
        plan: the objective, which names the scene (tests/kill/scenes.py).
        database: postgresql:// URL; None = SQLite files in home.
        latency: seconds that a tool body takes; model answers take a fifth of it.
    """

    home: Path
    mode: str = "run"
    stop: str | None = None
    review: str | None = None
    plan: str = "work"
    latency: float = 0.02
    own: bool = False
    database: str | None = None


class World:
    """The log, and the stop points."""

    def __init__(self, order: Order, report: Report) -> None:
        order.home.mkdir(parents=True, exist_ok=True)
        self.order = order
        self.report = report
        self._log = os.open(order.home / "bodies.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.waiting = 0
        self.seen: set[str] = set()
        self.half_done = asyncio.Event()
        self.log("life", "-")

    def log(self, word: str, name: str) -> None:
        os.write(self._log, f"{word} {name}\n".encode())

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            self.log("beat", "-")

    async def reach(self, name: str) -> None:
        """Wait for the kill, if this is the stop point."""
        if self.order.stop == "wave" and name in ("body:b2", "body:c2"):
            self.waiting += 1
            await self.half_done.wait()
            if self.waiting == 2:
                self.waiting = 0
                self.report({"at": "wave"})
            await asyncio.Event().wait()
        if self.order.stop == name:
            self.report({"at": name})
            await asyncio.Event().wait()

    async def body(self, name: str) -> Any:
        self.log("start", name)
        await self.reach(f"body:{name}")
        await asyncio.sleep(self.order.latency)
        self.log("end", name)
        if name.endswith("-bad"):
            raise ValueError("no such page")
        return [{"source_id": f"s-{name}", "text": f"text of {name}", "url": f"https://e.test/{name}"}]

    def tools(self) -> list[BaseTool]:
        async def fetch(query: str) -> Any:
            """Fetch a page."""
            return await self.body(query)

        async def probe(query: str) -> Any:
            """Fetch a page; may be repeated."""
            return await self.body(query)

        async def record(query: str) -> Any:
            """Write something down."""
            return await self.body(query)

        async def note(query: str) -> Any:
            """Write something down; twice is the same as once."""
            return await self.body(query)

        make = StructuredTool.from_function
        return [
            make(coroutine=fetch, name="fetch"),
            make(coroutine=probe, name="probe", metadata={"idempotent": True}),
            make(coroutine=record, name="record", metadata={"permission": "write"}),
            make(coroutine=note, name="note", metadata={"permission": "write", "idempotent": True}),
        ]


def choices(order: Order) -> RunContext:
    # Not the defaults: a killed run that loses them is found out.
    limits = RunLimits(total_tool_budget=200, max_parallel_steps=7, max_replans=3)
    return RunContext(limits=limits, review_plan=order.review or scene_of(order.plan).review)


async def drive(order: Order, report: Report) -> None:
    """Carry out an order, and report how it ended."""
    world = World(order, report)
    context = choices(order) if order.mode == "run" else None
    config: Any = {"configurable": {"thread_id": THREAD}}
    ended: dict[str, Any] = {}
    beating = asyncio.create_task(world.beat())
    try:
        async with opened(order, world) as graph:
            try:
                given = await given_to(graph, order, config)
                async for event in graph.astream(given, config, context=context, stream_mode="custom"):
                    noted(world, event)
            except PlanweaveError as error:
                ended = told(error)
            report(ended | {"done": (await outcome(graph, THREAD)).to_json() | await kinds(graph, config)})
    except PlanweaveError as error:
        report(told(error))
    beating.cancel()


async def given_to(graph: TaskGraph, order: Order, config: Any) -> Any:
    """Return the run's input: the objective, None, or a yes to everything that is asked."""
    if order.mode != "approve":
        return {"objective": order.plan} if order.mode == "run" else None
    yes = {"decision": "approve"}
    asked = (await graph.aget_state(config)).interrupts
    return Command(resume={question.id: yes for question in asked} or yes)


@asynccontextmanager
async def opened(order: Order, world: World) -> AsyncGenerator[TaskGraph]:
    models = Models.single(StatelessModel(world=world))
    if not order.own:
        url = SecretStr(order.database) if order.database else None
        settings = Settings(home=order.home, database_url=url)
        async with open_graph(settings, models=models, tools=world.tools()) as graph:
            yield graph
        return
    async with AsyncSqliteSaver.from_conn_string(str(order.home / "own.sqlite")) as saver:
        yield build_graph(models, world.tools(), checkpointer=saver)


def told(error: PlanweaveError) -> dict[str, Any]:
    return {"error": type(error).__name__, "line": str(error)}


def run(order: Order, report: Report) -> None:
    asyncio.run(drive(order, report))


def noted(world: World, event: dict[str, Any]) -> None:
    if event["type"] == "tool_finished":
        for source in event["source_ids"]:
            world.log("kept", source.removeprefix("s-"))
            world.seen.add(source)
    if event["type"] == "step_finished":
        world.seen.add(event["step_id"])
    if {"a", "s-c3"} <= world.seen:
        world.half_done.set()


async def kinds(graph: Any, config: Any) -> dict[str, Any]:
    """Return the classes of the state's values as they come back from the checkpoint, and the run's limits."""
    values = (await graph.aget_state(config)).values
    named = {key: type(value).__name__ for key, value in values.items()}
    named |= {
        key: type(values[key][0]).__name__ for key in ("evidence", "sources", "plans") if values.get(key)
    }
    return {"kinds": named, "limits": values["limits"].model_dump() if "limits" in values else None}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["run", "resume", "approve"])
    parser.add_argument("home", type=Path)
    parser.add_argument("--stop")
    parser.add_argument("--review")
    parser.add_argument("--plan", default="work")
    parser.add_argument("--own", action="store_true")
    run(Order(**vars(parser.parse_args())), lambda event: print(json.dumps(event), flush=True))  # noqa: T201 - its only output


if __name__ == "__main__":
    main()

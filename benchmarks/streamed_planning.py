"""Time to answer with and without streamed planning, behind a simulated planner of so many tokens a second.

A token is four characters of the plan's JSON. Each step takes one tool call of a seeded latency; workers, reviewer and
writer answer at once, so that what is left is the planner, the steps, and Planweave. Time passes `--speed` times faster
than it is printed: Planweave's own time counts so many times over, in both columns.

    python benchmarks/streamed_planning.py [--tokens-per-second 40] [--step-seconds 6] [--plans 3] [--speed 10] [--seed 0]
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from typing_extensions import override

from agents.models import Models
from benchmarks.scripted_models import Scripted, brief_of, call, finding
from graph import RunContext, build_graph
from schemas.limits import RunLimits
from schemas.plan import Step

TOKEN_CHARS = 4
PARALLEL = 16


def step(step_id: str, *needs: str) -> Step:
    """Return a step of the length that planners write: about seventy tokens."""
    task = (
        f"Find out for {step_id}: the monthly price, the number of seats and the notice period, with sources"
    )
    criteria = [f"The monthly price of {step_id} is known", f"The notice period of {step_id} is known"]
    return Step(id=step_id, task=task, success_criteria=criteria, depends_on=list(needs), tool_budget=2)


def survey(items: int) -> list[Step]:
    """Return so many steps that need nothing of each other, and one that compares."""
    steps = [step(f"item-{n}") for n in range(items)]
    return [*steps, step("compare", *(s.id for s in steps))]


def chains(items: int) -> list[Step]:
    """Return so many chains of three steps, and one step behind all of them."""
    steps = [step(f"i{n}-{k}", *([f"i{n}-{k - 1}"] if k else [])) for n in range(items) for k in range(3)]
    return [*steps, step("end", *(f"i{n}-2" for n in range(items)))]


FAMILIES: dict[str, Callable[[], list[Step]]] = {
    "1 step": lambda: [step("only")],
    "survey of 5": lambda: survey(5),
    "survey of 15": lambda: survey(15),
    "5 chains of 3": lambda: chains(5),
    "1 chain of 6": lambda: [step(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(6)],
}


@dataclass(frozen=True)
class Case:
    """A plan, what its steps take, and how fast it is written, in real seconds."""

    steps: list[Step]
    seconds: Mapping[str, float]
    tokens_per_second: float

    @property
    def text(self) -> str:
        """The plan as the planner writes it."""
        fields = ("id", "task", "success_criteria", "depends_on", "tool_budget")
        steps = [s.model_dump(include=set(fields)) for s in self.steps]
        return json.dumps({"goal": "Compare them and recommend one", "steps": steps})

    @property
    def writing(self) -> float:
        """The real seconds that writing it takes."""
        return len(self.text) / TOKEN_CHARS / self.tokens_per_second


class Roles(Scripted):
    """Every role; the planner writes at its speed, whether or not anybody listens."""

    case: Any

    @override
    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if brief_of(messages)["role"] == "planner":
            await asyncio.sleep(self.case.writing)
        return self._generate(messages, *args, **kwargs)

    @override
    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        text, began = self.case.text, time.perf_counter()
        for at in range(0, len(text), TOKEN_CHARS):
            due = began + at / TOKEN_CHARS / self.case.tokens_per_second
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            piece = text[at : at + TOKEN_CHARS]
            part = tool_call_chunk(name=None if at else "Plan", args=piece, id="p", index=0)
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[part]))

    @override
    def answer(self, messages: list[BaseMessage], bound: list[Any]) -> AIMessage:
        brief = brief_of(messages)
        match brief["role"]:
            case "planner":
                return call("Plan", **json.loads(self.case.text))
            case "reviewer":
                return call("Review", approved=True, gaps=[])
            case "writer":
                return AIMessage("The answer [1].")
            case _:
                return worked(brief["step"], messages)


def worked(todo: Mapping[str, Any], messages: Sequence[BaseMessage]) -> AIMessage:
    """Return a worker's answer: the tool call, then the finding."""
    if not any(isinstance(message, ToolMessage) for message in messages):
        return call("work", step_id=todo["id"])
    return finding("found", [f"src-{todo['id']}"], [(c, True) for c in todo["success_criteria"]])


def sleeper(seconds: Mapping[str, float]) -> BaseTool:
    """Return the tool whose body takes a step's seconds."""

    async def work(step_id: str) -> list[dict[str, str]]:
        """Do a step's work."""
        await asyncio.sleep(seconds[step_id])
        return [{"source_id": f"src-{step_id}", "text": f"result of {step_id}"}]

    return StructuredTool.from_function(coroutine=work, name="work")


async def answered(case: Case, *, stream: bool) -> float:
    """Run the product; return the real seconds from the objective to the answer."""
    graph = build_graph(
        Models.single(Roles(case=case)), [sleeper(case.seconds)], checkpointer=InMemorySaver()
    )
    limits = RunLimits(total_tool_budget=1000, max_parallel_steps=PARALLEL)
    context = RunContext(mode="plan", stream_plan=stream, limits=limits)
    began = time.perf_counter()
    out = await graph.ainvoke({"objective": "compare"}, {"configurable": {"thread_id": "t"}}, context=context)
    if out["status"] != "completed":
        raise RuntimeError(f"the benchmark's run ended as {out['status']}: {out['stop_reason']}")
    return time.perf_counter() - began


def cases(family: str, options: argparse.Namespace) -> list[Case]:
    """Return seeded cases; latencies lie between a quarter of the mean and two and a half times it."""
    found: list[Case] = []
    for n in range(options.plans):
        rng = random.Random(f"{family}-{options.seed}-{n}")
        steps = FAMILIES[family]()
        mean = options.step_seconds / options.speed
        seconds = {s.id: mean * rng.triangular(0.25, 2.5, 0.6) for s in steps}
        found.append(Case(steps, seconds, options.tokens_per_second * options.speed))
    return found


async def measure(options: argparse.Namespace) -> None:
    """Print a line for each family: medians in simulated seconds."""
    await answered(cases("1 step", options)[0], stream=True)  # what is built and imported once
    print(f"{options.tokens_per_second:g} tokens a second, steps of {options.step_seconds:g} s on average")
    print(f"{'plan':<16}{'writing it':>12}{'without':>10}{'streamed':>10}{'gain':>8}{'':>7}")
    for family in FAMILIES:
        rows: list[tuple[float, float, float]] = []
        for case in cases(family, options):
            plain, streamed = [await answered(case, stream=stream) for stream in (False, True)]
            rows.append((case.writing, plain, streamed))
        writing, plain, streamed = (statistics.median(r[i] for r in rows) * options.speed for i in range(3))
        gain = plain - streamed
        print(
            f"{family:<16}{writing:>10.1f} s{plain:>8.1f} s{streamed:>8.1f} s{gain:>6.1f} s{gain / plain:>6.0%}"
        )


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description="Time to answer with and without streamed planning")
    parser.add_argument("--tokens-per-second", type=float, default=40)
    parser.add_argument("--step-seconds", type=float, default=6)
    parser.add_argument("--plans", type=int, default=3)
    parser.add_argument("--speed", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()

"""Makespan against the critical path: lanes (the product), waves, and one step after the other.

    python benchmarks/makespan.py [--mean-ms 200] [--plans 5] [--runs 3] [--seed 0]

Every step asks its model, runs one tool that takes a simulated latency (a quarter of the mean to two and a half times
the mean: 50 to 500 ms by default), and asks its model again. The model answers at once, so that what is above 1 is
waiting and Planweave's own work. Waves are a plain LangGraph graph whose `Send` branches run create_agent workers with
the same model and tool, joined after each superstep; "waves alone" is what their barriers cost if all else were free.
"agents alone" is the critical path in plain create_agent workers, one after the other, with nothing beside them: on
this machine no graph of such agents can be shorter. The best of a plan's runs counts, in every column: whatever else
the machine does can only make one longer.
"""

import argparse
import asyncio
import json
import operator
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict, override

from agents.models import Models
from benchmarks.figures import Figures
from benchmarks.plan_cases import FAMILIES, Case, cases, ready_steps
from benchmarks.scripted_models import Scripted, brief_of, call, finding
from graph import RunContext, build_graph
from schemas.evidence import Finding
from schemas.limits import RunLimits

PARALLEL = 16
MOST = 1.05


@dataclass
class Clock:
    """Begin and end of each step in waves; `speed` 0 = tools take no time."""

    speed: float = 1.0
    spans: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])


def sleeper(seconds: Mapping[str, float], clock: Clock) -> BaseTool:
    """Return the tool whose body takes a step's seconds."""

    async def work(step_id: str) -> list[dict[str, str]]:
        """Do a step's work."""
        await asyncio.sleep(seconds[step_id] * clock.speed)
        return [{"source_id": f"src-{step_id}", "text": f"result of {step_id}"}]

    return StructuredTool.from_function(coroutine=work, name="work")


class AtOnce(Scripted):
    """Every role, for one case: plans it, works each step with one tool call, repairs what fails, approves the rest."""

    case: Any

    @override
    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        # On the event loop: a thread for each answer would be measured, too.
        return self._generate(messages, *args, **kwargs)

    @override
    def answer(self, messages: list[BaseMessage], bound: list[Any]) -> AIMessage:
        brief = brief_of(messages)
        match brief["role"]:
            case "planner":
                return call("Plan", **self.case.plan.model_dump(include={"goal", "steps"}))
            case "replanner":
                return call("Plan", goal="g", steps=[s.model_dump() for s in self.case.repairs])
            case "reviewer":
                return call("Review", approved=True, gaps=[])
            case "writer":
                return AIMessage("The answer [1].")
            case _:
                return self.worked(brief["step"]["id"], messages)

    def worked(self, step_id: str, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return a worker's answer: the tool call, then the finding."""
        if not any(isinstance(message, ToolMessage) for message in messages):
            return call("work", step_id=step_id)
        return finding("found", [f"src-{step_id}"], [("known", step_id not in self.case.fails)])


async def lanes(case: Case) -> float:
    """Run the product; return the seconds from the first step's start to the last one's end.

    A run without latencies comes first: a graph builds its agents when they are first wanted.
    """
    clock = Clock()
    graph = build_graph(
        Models.single(AtOnce(case=case)), [sleeper(case.seconds, clock)], checkpointer=InMemorySaver()
    )
    context = RunContext(mode="plan", limits=RunLimits(total_tool_budget=1000, max_parallel_steps=PARALLEL))
    for thread, speed in (("warm-up", 0.0), ("counted", 1.0)):
        clock.speed = speed
        out = await graph.ainvoke(
            {"objective": "work"}, {"configurable": {"thread_id": thread}}, context=context
        )
        if out["status"] != "completed":
            raise RuntimeError(f"the benchmark's run ended as {out['status']}: {out['stop_reason']}")
    worked = [e for e in out["evidence"] if e.finished_at > e.started_at]
    return (max(e.finished_at for e in worked) - min(e.started_at for e in worked)).total_seconds()


class Done(TypedDict):
    """The waves' state: ids of finished steps."""

    done: Annotated[list[str], operator.add]


async def waves(case: Case) -> float:
    """Run the same steps in waves; return the seconds from the first one's start to the last one's end."""
    clock = Clock()
    app = wave_graph(case, clock)
    for thread, speed in (("warm-up", 0.0), ("counted", 1.0)):
        clock.speed = speed
        clock.spans.clear()
        await app.ainvoke({"done": []}, {"configurable": {"thread_id": thread}})
    return max(end for _, end in clock.spans) - min(start for start, _ in clock.spans)


async def agents_alone(case: Case) -> float:
    """Return the seconds that the critical path's steps take in plain agents, one after the other."""
    clock = Clock()
    agent = plain_agent(case, clock)
    took = 0.0
    for clock.speed in (0.0, 1.0):
        began = time.perf_counter()
        for step_id in case.way:
            await agent.ainvoke({"messages": [plain_brief(step_id)]})
        took = time.perf_counter() - began
    return took


def plain_agent(case: Case, clock: Clock) -> Any:
    """Return the worker that one would write without Planweave."""
    return create_agent(  # pyright: ignore[reportUnknownVariableType]
        AtOnce(case=case),
        [sleeper(case.seconds, clock)],
        response_format=ToolStrategy(Finding),
        name="worker",
    )


def plain_brief(step_id: str) -> HumanMessage:
    """Return the request of a step to such a worker."""
    return HumanMessage(json.dumps({"role": "worker", "step": {"id": step_id}}))


def wave_graph(case: Case, clock: Clock) -> Any:
    """Return START -> schedule -> execute x N (Send) -> schedule ...; repairs are known beforehand, after all else."""
    saver = InMemorySaver().with_allowlist([(Finding.__module__, Finding.__name__)])
    agent = plain_agent(case, clock)

    async def execute(state: dict[str, str]) -> dict[str, list[str]]:
        began = time.perf_counter()
        await agent.ainvoke({"messages": [plain_brief(state["step_id"])]})
        clock.spans.append((began, time.perf_counter()))
        return {"done": [state["step_id"]]}

    async def join(state: Done) -> dict[str, Any]:  # noqa: ARG001
        return {}

    def ready(state: Done) -> list[Send] | str:
        done = set(state["done"])
        steps = ready_steps(case.plan.steps, done) or ready_steps(case.repairs, done)
        return [Send("execute", {"step_id": s.id}) for s in steps] or END

    graph: Any = StateGraph(Done)
    graph.add_node("schedule", join)
    graph.add_node("execute", execute)
    graph.add_edge(START, "schedule")
    graph.add_conditional_edges("schedule", ready, ["execute", END])
    graph.add_edge("execute", "schedule")
    return graph.compile(checkpointer=saver)


@dataclass(frozen=True)
class Row:
    """A family's makespans as multiples of the critical path, medians over its plans; `worst` is the product's worst."""

    family: str
    plans: int
    ours: float
    worst: float
    agents_alone: float
    waves: float
    waves_alone: float
    serial: float

    @property
    def multiples(self) -> tuple[float, ...]:
        """The table's columns."""
        return self.ours, self.worst, self.agents_alone, self.waves, self.waves_alone, self.serial

    @property
    def good(self) -> bool:
        """Whether lanes beat waves and stay near the critical path."""
        return self.ours <= MOST and self.ours < self.waves


async def measure(mean: float, plans: int, runs: int, seed: int) -> list[Row]:
    """Measure each family; `mean` in seconds."""
    return [await measured(family, cases(family, mean, plans, seed), runs) for family in FAMILIES]


async def measured(family: str, found: Sequence[Case], runs: int) -> Row:
    """Measure one family, every way in turn."""
    best: list[tuple[float, ...]] = []
    for case in found:
        took = [[await way(case) for way in (lanes, agents_alone, waves)] for _ in range(runs)]
        best.append(tuple(min(column) / case.critical for column in zip(*took, strict=True)))
    ours, agents, theirs = zip(*best, strict=True)
    middle = statistics.median
    return Row(
        family,
        len(found),
        ours=middle(ours),
        worst=max(ours),
        agents_alone=middle(agents),
        waves=middle(theirs),
        waves_alone=middle(case.waves_alone / case.critical for case in found),
        serial=middle(sum(case.seconds.values()) / case.critical for case in found),
    )


def figures(rows: Sequence[Row]) -> Figures:
    """Return the table."""
    return Figures(
        "Makespan",
        "First step's start to last step's end, as a multiple of the critical path; median over the plans.",
        ("family", "plans", "Planweave", "its worst", "agents alone", "waves", "waves alone", "one by one"),
        [(row.family, str(row.plans), *(f"{n:.3f}" for n in row.multiples)) for row in rows],
    )


def main() -> int:
    """Parse the arguments, measure and print; 1 where lanes do not beat waves, or are over 1.05."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mean-ms", type=float, default=200)
    parser.add_argument("--plans", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="of each plan; the shortest counts")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = asyncio.run(measure(given.mean_ms / 1000, given.plans, given.runs, given.seed))
    print(figures(rows).markdown())
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

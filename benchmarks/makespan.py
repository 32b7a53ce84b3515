"""Makespan against the critical path: lanes (the product), waves, and one step after the other.

Each step sleeps for a simulated latency in its tool. Waves are a plain LangGraph graph of `Send` branches that are
joined after each superstep; one after the other is the sum. All three run side by side on the same plans.

    python benchmarks/makespan.py [--mean-ms 200] [--plans 5] [--seed 0]
"""

import argparse
import asyncio
import operator
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1])
)  # run as a script: the scripted model is in tests/

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from graph import RunContext, build_graph
from nodes.lint import critical_path
from schemas.limits import RunLimits
from schemas.plan import Plan, Step
from tests.scripted import ScriptedModel, call, calls, finding, models, review

PARALLEL = 16


@dataclass(frozen=True)
class Case:
    """A plan, and the seconds that each step takes."""

    family: str
    plan: Plan
    seconds: dict[str, float]
    fails: frozenset[str] = frozenset()

    @property
    def critical(self) -> float:
        """The length of the critical path in seconds, a repair included."""
        length = critical_path(self.plan, self.seconds)[1]
        return length + sum(self.seconds[f"{i}-2"] for i in self.fails)


def step(step_id: str, *needs: str) -> Step:
    """Return a step that one tool run carries out."""
    return Step(
        id=step_id, task=f"do {step_id}", success_criteria=[f"{step_id} is known"], depends_on=list(needs)
    )


def chains(_: random.Random) -> list[Step]:
    """Per-item chains (search, read, extract for each of five items), then one conclusion."""
    steps = [step(f"i{n}-{k}", *([f"i{n}-{k - 1}"] if k else [])) for n in range(5) for k in range(3)]
    return [*steps, step("end", *(f"i{n}-2" for n in range(5)))]


def diamond(_: random.Random) -> list[Step]:
    """One start, two branches of two steps each, one end."""
    return [
        step("start"),
        step("left", "start"),
        step("right", "start"),
        step("left2", "left"),
        step("right2", "right"),
        step("end", "left2", "right2"),
    ]


def randomly(rng: random.Random) -> list[Step]:
    """A random plan of 12 steps, each with up to three dependencies among the earlier ones."""
    return [
        step(f"s{n}", *(f"s{m}" for m in rng.sample(range(n), min(n, rng.randint(0, 3))))) for n in range(12)
    ]


FAMILIES: dict[str, Callable[[random.Random], list[Step]]] = {
    "chains": chains,
    "diamond": diamond,
    "random": randomly,
    "replan": chains,
}


def cases(family: str, mean: float, plans: int, seed: int) -> list[Case]:
    """Return seeded plans of a family; latencies lie between a quarter of the mean and two and a half times it."""
    found: list[Case] = []
    for n in range(plans):
        rng = random.Random(f"{family}-{seed}-{n}")
        steps = FAMILIES[family](rng)
        ids = [s.id for s in steps]
        fails = frozenset([ids[-1]]) if family == "replan" else frozenset[str]()
        seconds = {i: mean * rng.triangular(0.25, 2.5, 0.6) for i in [*ids, *(f"{i}-2" for i in fails)]}
        found.append(Case(family, Plan(goal="g", steps=steps), seconds, fails))
    return found


def sleeper(seconds: dict[str, float]) -> BaseTool:
    """Return the tool whose body takes a step's seconds."""

    async def work(step_id: str) -> list[dict[str, str]]:
        """Do a step's work."""
        await asyncio.sleep(seconds[step_id])
        return [{"source_id": f"src-{step_id}", "text": f"result of {step_id}"}]

    return StructuredTool.from_function(coroutine=work, name="work")


def worker(case: Case) -> ScriptedModel:
    """Return a worker that works once and concludes; a step that is to fail does so."""
    ids = [*case.seconds]
    script = {
        i: [calls(call("work", f"c-{i}", step_id=i)), finding(i, f"src-{i}", met=i not in case.fails)]
        for i in ids
    }
    for i in case.fails:  # its stand-in answers the same criterion
        script[f"{i}-2"][1] = finding(i, f"src-{i}-2")
    return ScriptedModel(by_step=script)


def replanner(case: Case) -> list[Any]:
    """Return the planner's answers: the plan, then a repair for the step that is to fail."""
    answers: list[Any] = [calls(call("Plan", "p", **case.plan.model_dump(include={"goal", "steps"})))]
    for i in case.fails:
        again = case.plan.step(i).model_copy(update={"id": f"{i}-2", "task": f"do {i} again", "replaces": i})
        answers.append(calls(call("Plan", "p", goal="g", steps=[again.model_dump()])))
    return answers


async def lanes(case: Case) -> float:
    """Run the product; return the seconds from the first step's start to the last one's end.

    The run is made twice, and the second one counts: a graph builds its agents when they are first wanted.
    """
    script = worker(case)
    script.by_step = {i: [*answers, *answers] for i, answers in script.by_step.items()}
    graph = build_graph(
        models(
            ScriptedModel(answers=replanner(case) * 2),
            script,
            ScriptedModel(answers=[review() for _ in range(2 + 2 * len(case.fails))]),
            ScriptedModel(answers=[calls().model_copy(update={"content": "done"})] * 2),
        ),
        [sleeper(case.seconds)],
        checkpointer=InMemorySaver(),
    )
    context = RunContext(mode="plan", limits=RunLimits(total_tool_budget=1000, max_parallel_steps=PARALLEL))
    for thread in ("warm-up", "counted"):
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
    """Run the same plan in a plain graph of Send branches, joined after each superstep."""

    async def execute(state: dict[str, str]) -> dict[str, list[str]]:
        await asyncio.sleep(case.seconds[state["step_id"]])
        return {"done": [state["step_id"]]}

    def ready(state: Done) -> list[Send] | str:
        done = set(state["done"])
        steps = [s for s in case.plan.steps if s.id not in done and set(s.depends_on) <= done]
        return [Send("execute", {"step_id": s.id}) for s in steps] or END

    graph: Any = StateGraph(Done)
    graph.add_node("schedule", lambda _: {})
    graph.add_node("execute", execute)
    graph.add_edge(START, "schedule")
    graph.add_conditional_edges("schedule", ready, ["execute", END])
    graph.add_edge("execute", "schedule")
    app = graph.compile(checkpointer=InMemorySaver())
    began = time.perf_counter()
    await app.ainvoke({"done": []}, {"configurable": {"thread_id": "t"}})
    repairs = sum(case.seconds[f"{i}-2"] for i in case.fails)
    await asyncio.sleep(repairs)
    return time.perf_counter() - began


async def measure(mean: float, plans: int, seed: int) -> bool:
    """Print one row for each family; return whether lanes beat waves everywhere and stay at 1.05 in the median."""
    print(
        f"{'family':10}{'plans':>6}{'lanes':>9}{'worst':>8}{'waves':>9}{'one by one':>12}   (makespan / critical path)"
    )
    good = True
    for family in FAMILIES:
        rows: list[tuple[float, float, float]] = []
        for case in cases(family, mean, plans, seed):
            took, waved = await lanes(case), await waves(case)
            rows.append(
                (took / case.critical, waved / case.critical, sum(case.seconds.values()) / case.critical)
            )
        ours, theirs, serial = (statistics.median(column) for column in zip(*rows, strict=True))
        worst = max(row[0] for row in rows)
        print(f"{family:10}{len(rows):>6}{ours:>9.3f}{worst:>8.3f}{theirs:>9.3f}{serial:>12.3f}")
        good = good and ours <= 1.05 and ours < theirs
    return good


def main() -> int:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mean-ms", type=float, default=200)
    parser.add_argument("--plans", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    return 0 if asyncio.run(measure(given.mean_ms / 1000, given.plans, given.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())

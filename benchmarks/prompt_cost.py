"""What a run's steps cost in prompt characters: each with the evidence of its direct dependencies, or of all so far.

    python benchmarks/prompt_cost.py

Real runs over a scripted model, which records every request of the worker. The baseline is the same requests with the
evidence of every step before in place of the direct dependencies', as a loop does that carries all past steps along.
Neither is trimmed. Exits 1 if 20 steps cost more than 40 % of the baseline in any of the shapes.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1])
)  # run as a script, only this folder is on the path

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from typing_extensions import override

from agents.models import Models
from benchmarks.scripted_models import Scripted, brief_of, call, finding
from graph import RunContext, build_graph
from schemas.limits import RunLimits

SIZES = (5, 10, 20)
MOST = 0.40  # of the baseline, at the largest size
WORDS = [
    "plans",
    "seats",
    "orders",
    "depots",
    "crews",
    "routes",
    "reports",
    "delays",
    "audits",
    "permits",
    "sensors",
    "valves",
    "ledgers",
    "invoices",
    "harbours",
    "bridges",
    "turbines",
    "orchards",
    "archives",
    "signals",
    "tariffs",
    "workshops",
]
Steps = list[dict[str, Any]]


def step(step_id: str, *needs: str, tools: bool = True) -> dict[str, Any]:
    """Return a step of a plan; without tools it compares or concludes."""
    return {
        "id": step_id,
        "task": f"Find out what the documents say about part {step_id}, with sources, and name what they leave open",
        "success_criteria": [
            f"part {step_id} is answered with a source",
            f"what is open in {step_id} is named",
        ],
        "depends_on": list(needs),
        "tool_budget": 2 if tools else 0,
        **({} if tools else {"tools": []}),
    }


def chain(size: int) -> Steps:
    """Return steps that each need the one before."""
    return [step(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(size)]


def fan_in(size: int) -> Steps:
    """Return gathering steps and one that concludes from all of them."""
    gather = [step(f"g{n}") for n in range(size - 1)]
    return [*gather, step("conclude", *(s["id"] for s in gather), tools=False)]


def mixed(size: int) -> Steps:
    """Return gathering steps, every fourth going on from the one before, comparisons of groups, one conclusion."""
    compared = max(1, size // 4)
    gather = [step(f"g{n}", *([f"g{n - 1}"] if n % 4 == 3 else [])) for n in range(size - 1 - compared)]
    groups = [[s["id"] for s in gather[n::compared]] for n in range(compared)]
    compare = [step(f"c{n}", *group, tools=False) for n, group in enumerate(groups)]
    return [*gather, *compare, step("conclude", *(s["id"] for s in compare), tools=False)]


SHAPES: dict[str, Callable[[int], Steps]] = {"chain": chain, "fan-in": fan_in, "mixed": mixed}


def prose(rng: Random, least: int, most: int) -> str:
    """Return words of a length between two numbers of characters."""
    length = rng.randint(least, most)
    text = ""
    while len(text) < length:
        text += f"{rng.choice(WORDS)} "
    return text[:length].strip()


class Roles(Scripted):
    """Plays every role over a given plan, and records what the worker was asked, by step."""

    steps: Any
    asked: Any

    @override
    def answer(self, messages: list[BaseMessage], bound: list[Any]) -> AIMessage:
        brief = brief_of(messages)
        if brief["role"] == "planner":
            return call("Plan", goal=brief["objective"], steps=self.steps)
        if brief["role"] == "reviewer":
            return call("Review", approved=True, gaps=[])
        if brief["role"] == "writer":
            return AIMessage("Done.")
        return self._work(brief["step"], brief["dependencies"], messages)

    def _work(
        self, given: dict[str, Any], dependencies: list[dict[str, Any]], messages: list[BaseMessage]
    ) -> AIMessage:
        step_id = given["id"]
        self.asked.setdefault(step_id, []).append(messages)
        if given["tool_budget"] and not any(isinstance(m, ToolMessage) for m in messages):
            return call("look", query=step_id)
        rng = Random(step_id)
        own = [f"{step_id}-{n}" for n in range(sources_of(step_id))] if given["tool_budget"] else []
        carried = [i for d in dependencies for i in d["source_ids"]]
        met = [(criterion, True) for criterion in given["success_criteria"]]
        return finding(prose(rng, 600, 1200), own or rng.sample(carried, min(5, len(carried))), met)


def sources_of(step_id: str) -> int:
    """Return how many sources a step finds: three to five."""
    return Random(f"sources {step_id}").randint(3, 5)


def look_tool() -> BaseTool:
    """Return the tool that finds a step's sources."""

    def look(query: str) -> list[dict[str, str]]:
        """Look something up."""
        rng = Random(query)
        return [
            {
                "source_id": f"{query}-{n}",
                "title": prose(rng, 20, 60),
                "url": f"https://docs.example/{query}/{n}",
                "text": prose(rng, 500, 900),
            }
            for n in range(sources_of(query))
        ]

    return StructuredTool.from_function(look)


@dataclass
class Cost:
    """Prompt characters of all worker requests of one run.

    Attributes:
        direct: as the product sent them.
        all_so_far: with the evidence of every step before.
        largest: characters of the largest request of each kind.
        by_step: characters of each step's first request, as sent.
    """

    direct: int = 0
    all_so_far: int = 0
    largest: tuple[int, int] = (0, 0)
    by_step: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def share(self) -> float:
        """What the product needs of the baseline, 0 to 1."""
        return self.direct / self.all_so_far


def chars(messages: Sequence[BaseMessage]) -> int:
    """Return the characters of a request."""
    calls = [m.tool_calls for m in messages if isinstance(m, AIMessage)]
    return sum(len(m.text) for m in messages) + sum(len(json.dumps(c)) for c in calls if c)


async def requests(steps: Steps) -> dict[str, list[list[BaseMessage]]]:
    """Run a plan; return every request of the worker, by step, in the order of the steps' first requests."""
    roles = Roles(steps=steps, asked={})
    graph = build_graph(Models.single(roles), [look_tool()])
    limits = RunLimits(total_tool_budget=1000, max_request_chars=2_000_000, max_parallel_steps=1)
    config: Any = {"configurable": {"thread_id": "cost"}}
    context = RunContext(mode="plan", limits=limits)
    objective = "Find out how the sites are run, compare them group by group, and conclude"
    out = await graph.ainvoke({"objective": objective}, config, context=context)
    if out["status"] != "completed":
        raise SystemExit(f"the run ended as {out['status']}: {out['final_answer'][:300]}")
    return roles.asked


def cost_of(asked: Mapping[str, Sequence[Sequence[BaseMessage]]]) -> Cost:
    """Add the requests up, and what they would be with all evidence so far."""
    briefs = {step_id: brief_of(requests[0]) for step_id, requests in asked.items()}
    entries = {d["step_id"]: d for brief in briefs.values() for d in brief["dependencies"]}
    cost = Cost()
    before: list[dict[str, Any]] = []
    for step_id, requests in asked.items():
        brief = briefs[step_id]
        more = size({**brief, "dependencies": before}) - size(brief)
        for messages in requests:
            sent = chars(messages)
            cost.direct += sent
            cost.all_so_far += sent + more
            cost.largest = (max(cost.largest[0], sent), max(cost.largest[1], sent + more))
        cost.by_step[step_id] = chars(requests[0])
        if step_id in entries:
            before = [*before, entries[step_id]]
    return cost


def size(brief: Mapping[str, Any]) -> int:
    """Return the characters of a brief as it is sent."""
    return len(json.dumps(brief, ensure_ascii=False))


def main() -> int:
    """Print the table; return the exit code."""
    print(
        f"{'plan':8}{'steps':>6}{'direct dependencies':>22}{'all evidence so far':>22}{'share':>8}{'largest prompt':>20}"
    )
    worst = 0.0
    for name, shape in SHAPES.items():
        for number in SIZES:
            cost = cost_of(asyncio.run(requests(shape(number))))
            largest = f"{cost.largest[0]:,} / {cost.largest[1]:,}"
            print(f"{name:8}{number:6}{cost.direct:22,}{cost.all_so_far:22,}{cost.share:8.1%}{largest:>20}")
            worst = max(worst, cost.share if number == SIZES[-1] else 0.0)
    print(
        f"\nworker prompts in characters; at {SIZES[-1]} steps at most {worst:.1%} of the baseline ({MOST:.0%} allowed)"
    )
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())

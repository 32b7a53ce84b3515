"""What Planweave itself costs: milliseconds and bytes per step, over a model that answers at once.

    python benchmarks/overhead.py [--runs 5] [--profile]

Every step makes one tool call and answers. The same steps go through a plain LangGraph graph, whose `Send` branches
(or, for the chain, whose nodes one after the other) are create_agent workers with the same saver: the ratio is what
plans, budgets, ledgers and evidence cost on top. "run of 10" is a whole run, planning, review and answer included,
by its number of steps; "one more step" is what each step adds between runs of 5 and of 20.
"""

import argparse
import asyncio
import cProfile
import operator
import pstats
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
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
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict, override

from agents.models import Models
from benchmarks.figures import Figures
from benchmarks.scripted_models import Scripted, brief_of, call, finding
from graph import RunContext, build_graph, open_graph
from graph.settings import Settings
from schemas.evidence import Finding
from schemas.limits import RunLimits

STEPS = 10
SIZES = (5, 20)
RESULT_CHARS = (200, 200_000)
CONFIG: Any = {"configurable": {"thread_id": "bench"}, "recursion_limit": 1000}


class AtOnce(Scripted):
    """Every role of both graphs; the objective says the shape: "parallel 10", "chain 10"."""

    @override
    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        # On the event loop: a thread for each answer would be measured, too.
        return self._generate(messages, *args, **kwargs)

    @override
    def answer(self, messages: list[BaseMessage], bound: list[Any]) -> AIMessage:
        brief = brief_of(messages)
        if brief["role"] == "planner":
            return call("Plan", goal="g", steps=planned(brief["objective"]))
        if brief["role"] == "reviewer":
            return call("Review", approved=True, gaps=[])
        if brief["role"] == "writer":
            return AIMessage("The answer [1].")
        if not any(isinstance(m, ToolMessage) for m in messages):
            return call("fetch", query=brief["step"]["id"])
        return finding("found", [f"s-{brief['step']['id']}"], [("known", True)])


def planned(objective: str) -> list[dict[str, Any]]:
    """Return the steps of a shape."""
    shape, _, count = objective.partition(" ")
    ids = [f"a{n}" for n in range(int(count))]
    return [
        {
            "id": i,
            "task": f"fetch {i}",
            "success_criteria": ["known"],
            "depends_on": ids[n - 1 : n] if shape == "chain" and n else [],
            "tool_budget": 1,
        }
        for n, i in enumerate(ids)
    ]


def fetch_tool(chars: int = 200) -> BaseTool:
    """Return a tool that gives one source with a text of that many characters, another one for each query."""

    async def fetch(query: str) -> list[dict[str, str]]:
        """Fetch a page."""
        return [
            {
                "source_id": f"s-{query}",
                "url": f"https://e.test/{query}",
                "text": f"{query} ".ljust(chars, "."),
            }
        ]

    return StructuredTool.from_function(coroutine=fetch, name="fetch")


def context(steps: int) -> RunContext:
    """Return choices that hold no step up."""
    return RunContext(limits=RunLimits(total_tool_budget=steps, max_parallel_steps=64))


@asynccontextmanager
async def planweave(store: str, chars: int = 200, home: Path | None = None) -> AsyncGenerator[Any]:
    """Open Planweave in memory, or on SQLite as it is by default."""
    models = Models.single(AtOnce())
    if store == "memory":
        yield build_graph(models, [fetch_tool(chars)], checkpointer=InMemorySaver())
        return
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=home or Path(folder))
        async with open_graph(settings, models=models, tools=[fetch_tool(chars)]) as graph:
            yield graph


class PlainState(TypedDict):
    """The state of the plain graph."""

    objective: str
    found: Annotated[list[Finding], operator.add]


@asynccontextmanager
async def plain(store: str) -> AsyncGenerator[Any]:
    """Open the plain graph on a saver of the same kind."""
    if store == "memory":
        yield plain_graph(InMemorySaver())
        return
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncSqliteSaver.from_conn_string(f"{folder}/checkpoints.sqlite") as saver:
            await saver.conn.execute("PRAGMA synchronous=NORMAL")
            yield plain_graph(saver)


def plain_graph(saver: Any) -> Any:
    """Return START -> work x N (Send) -> work x N ...: what one would write without Planweave."""
    saver = saver.with_allowlist([(Finding.__module__, Finding.__name__)])
    agent: Any = create_agent(  # pyright: ignore[reportUnknownVariableType]
        AtOnce(), [fetch_tool()], response_format=ToolStrategy(Finding), name="worker"
    )

    async def work(task: dict[str, Any]) -> dict[str, Any]:
        brief = f'{{"role": "worker", "step": {{"id": "{task["id"]}"}}}}'
        state = await agent.ainvoke({"messages": [HumanMessage(brief)]})
        return {"found": [state["structured_response"]]}

    def send(state: PlainState) -> list[Send] | str:
        shape, _, count = state["objective"].partition(" ")
        done = len(state["found"])
        if done == int(count):
            return END
        return [
            Send("work", {"id": f"a{n}"}) for n in range(done, done + 1 if shape == "chain" else int(count))
        ]

    async def join(state: PlainState) -> dict[str, Any]:  # noqa: ARG001
        return {}

    graph = StateGraph(PlainState)
    graph.add_node("join", join)
    graph.add_node("work", work)  # pyright: ignore[reportArgumentType]
    graph.add_edge(START, "join")
    graph.add_conditional_edges("join", send, ["work", END])
    graph.add_edge("work", "join")
    return graph.compile(checkpointer=saver)


async def run_milliseconds(open_it: Callable[[str], Any], store: str, shape: str, steps: int) -> float:
    """Return the wall-clock milliseconds of one run on a fresh graph."""
    given: dict[str, Any] = {"objective": f"{shape} {steps}"}
    if open_it is plain:
        given["found"] = []
    extra = {} if open_it is plain else {"context": context(steps)}
    async with open_it(store) as graph:
        began = time.perf_counter()
        await graph.ainvoke(given, CONFIG, durability="sync", **extra)
        return (time.perf_counter() - began) * 1000


async def best_milliseconds(
    store: str, shape: str, runs: int
) -> dict[tuple[Callable[[str], Any], int], float]:
    """Return the shortest run of each graph and size: whatever else the machine does can only make one longer.

    The graphs take turns, so that a busy minute meets both.
    """
    best: dict[tuple[Callable[[str], Any], int], float] = {}
    for turn in range(runs + 1):
        for steps in (STEPS, *SIZES):
            for open_it in (plain, planweave):
                took = await run_milliseconds(open_it, store, shape, steps)
                if turn:  # the first one imports and compiles
                    best[open_it, steps] = min(took, best.get((open_it, steps), took))
    return best


async def stored_bytes(shape: str, steps: int, chars: int) -> dict[str, int]:
    """Return what one run leaves on disk, in bytes, by kind."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        async with planweave("sqlite", chars, home) as graph:
            await graph.ainvoke({"objective": f"{shape} {steps}"}, CONFIG, context=context(steps))
        return {
            "checkpoints": (home / "checkpoints.sqlite").stat().st_size,
            "store": (home / "store.sqlite").stat().st_size,
            "artifacts": sum(p.stat().st_size for p in (home / "artifacts").rglob("*") if p.is_file()),
        }


async def time_table(runs: int) -> Figures:
    """Measure and return milliseconds per step: of a whole run, and of one step more."""
    columns = [
        f"{what}, {who}"
        for what in (f"run of {STEPS}", "one more step")
        for who in ("plain", "Planweave", "ratio")
    ]
    rows: list[list[str]] = []
    few, many = SIZES
    for shape in ("parallel", "chain"):
        for store in ("memory", "sqlite"):
            best = await best_milliseconds(store, shape, runs)
            whole = [best[who, STEPS] / STEPS for who in (plain, planweave)]
            more = [(best[who, many] - best[who, few]) / (many - few) for who in (plain, planweave)]
            cells = [f"{n:.1f}" for n in (*whole, *more)]
            ratios = [f"{ours / base:.2f}" for base, ours in (whole, more)]
            rows.append([f"{shape}, {store}", *cells[:2], ratios[0], *cells[2:], ratios[1]])
    note = (
        "Milliseconds per step over a model that answers at once; a whole run plans, reviews and writes, too."
    )
    return Figures("Overhead", note, ["shape, store", *columns], rows)


async def size_table() -> Figures:
    """Measure and return kilobytes per step."""
    columns = [f"{kind}, {n} steps" for n in SIZES for kind in ("database", "artifacts")]
    rows: list[list[str]] = []
    for shape in ("parallel", "chain"):
        for chars in RESULT_CHARS:
            cells: list[str] = []
            database: list[float] = []
            for steps in SIZES:
                found = await stored_bytes(shape, steps, chars)
                database.append((found["checkpoints"] + found["store"]) / 1000 / steps)
                cells += [f"{database[-1]:.1f}", f"{found['artifacts'] / 1000 / steps:.1f}"]
            rows.append([f"{shape}, {chars / 1000:g} kB", *cells, f"{database[1] / database[0]:.2f}"])
    note = (
        f"Kilobytes per step that a run leaves on disk, by the size of a tool's result; growth: {SIZES[1]} / "
        f"{SIZES[0]} steps."
    )
    return Figures("Database growth", note, ["shape, result", *columns, "growth"], rows)


async def profile() -> pstats.Stats:
    """Profile ten runs of parallel steps on SQLite."""
    profiler = cProfile.Profile()
    async with planweave("sqlite") as graph:
        await graph.ainvoke({"objective": f"parallel {STEPS}"}, CONFIG, context=context(STEPS))
        profiler.enable()
        for _ in range(10):
            await graph.ainvoke({"objective": f"parallel {STEPS}"}, CONFIG, context=context(STEPS))
        profiler.disable()
    return pstats.Stats(profiler)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="runs of each measurement; the shortest counts")
    parser.add_argument("--profile", action="store_true", help="show where the time goes instead")
    options = parser.parse_args(arguments)
    if options.profile:
        asyncio.run(profile()).sort_stats("cumulative").print_stats(60)
        return
    print(asyncio.run(time_table(options.runs)).markdown())
    print(asyncio.run(size_table()).markdown())


if __name__ == "__main__":
    main()

"""Two hundred runs at once in one process: memory per run, and events per second.

    python benchmarks/many_runs.py [--runs 200] [--steps 5] [--store memory|sqlite]

Each run has a thread of its own on one graph, and streams its events to a reader. The model answers at once: what is
measured is how many runs the process can carry, not how long models take. Memory is what Python's objects hold at the
peak above what they held before, divided by the runs; the same runs are made again for it, because counting it is slow.
"""

import argparse
import asyncio
import sys
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import Figures
from benchmarks.overhead import context, planweave

RUNS = 200
STEPS = 5


@dataclass(frozen=True)
class Load:
    """What a number of runs at once has cost: seconds in all, events read, bytes at the peak."""

    store: str
    runs: int
    steps: int
    seconds: float
    events: int
    peak: int

    def cells(self) -> list[str]:
        """Return the table's row."""
        per_second = (self.runs / self.seconds, self.events / self.seconds)
        memory = self.peak / self.runs / 1000
        return [
            self.store,
            str(self.runs),
            str(self.steps),
            *(f"{n:.0f}" for n in (memory, *per_second)),
            f"{self.seconds:.1f}",
        ]


async def one_run(graph: Any, number: int, steps: int) -> int:
    """Run once and return how many events came.

    Raises:
        RuntimeError: the run did not complete.
    """
    config: Any = {"configurable": {"thread_id": f"run-{number}"}, "recursion_limit": 1000}
    events = [
        event
        async for event in graph.astream(
            {"objective": f"parallel {steps}"}, config, context=context(steps), stream_mode="custom"
        )
    ]
    if not events or events[-1].get("status") != "completed":
        raise RuntimeError(f"run {number} ended with {events[-1:]}")
    return len(events)


async def measure(store: str, runs: int, steps: int) -> Load:
    """Run them all at once, twice."""
    async with planweave(store) as graph:
        await one_run(graph, 0, steps)
        began = time.perf_counter()
        events = await at_once(graph, runs, steps)
        seconds = time.perf_counter() - began
    async with planweave(store) as graph:
        await one_run(graph, 0, steps)
        tracemalloc.start()
        try:
            await at_once(graph, runs, steps)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    return Load(store, runs, steps, seconds, events, peak)


async def at_once(graph: Any, runs: int, steps: int) -> int:
    """Make a number of runs and return how many events came."""
    return sum(await asyncio.gather(*(one_run(graph, n + 1, steps) for n in range(runs))))


def figures(loads: Sequence[Load]) -> Figures:
    """Return the table."""
    return Figures(
        "Many runs at once",
        "One process, one event loop, a model that answers at once; kB: Python's objects at the peak, per run.",
        (
            "store",
            "runs",
            "steps each",
            "kB per run",
            "runs per second",
            "events per second",
            "seconds in all",
        ),
        [load.cells() for load in loads],
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--store", choices=["memory", "sqlite"], default="memory")
    given = parser.parse_args()
    print(figures([asyncio.run(measure(given.store, given.runs, given.steps))]).markdown())


if __name__ == "__main__":
    main()

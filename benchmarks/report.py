"""All measurements of time and room, side by side; --write keeps them in benchmarks/RESULTS.md.

    python benchmarks/report.py [--write] [--quick]

Run it on a machine that does nothing else. --quick measures less often: to see that everything works.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import makespan, many_runs, overhead, startup
from benchmarks.figures import Figures

RESULTS = Path(__file__).with_name("RESULTS.md")
LIBRARIES = ("langgraph", "langchain", "langgraph-checkpoint-sqlite", "pydantic")
MEAN_SECONDS = 0.2
SEED = 0


def measured(*, quick: bool) -> Iterator[Figures]:
    """Measure one table after the other."""
    rows = makespan.measure(MEAN_SECONDS, 1 if quick else 5, 1 if quick else 3, SEED)
    yield makespan.figures(asyncio.run(rows))
    yield asyncio.run(overhead.time_table(1 if quick else 10))
    yield asyncio.run(overhead.size_table())
    runs = 20 if quick else many_runs.RUNS
    loads = [asyncio.run(many_runs.measure(store, runs, many_runs.STEPS)) for store in ("memory", "sqlite")]
    yield many_runs.figures(loads)
    yield startup.figures(1 if quick else 5)


def heading() -> str:
    """Return the beginning of the file: when, on what, and how to measure anew. No names of machines."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return "\n".join(
        [
            "# Measured",
            "",
            f"On {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
            f"Python {platform.python_version()}, {libraries}.",
            "Written by `make results`; `make bench` prints the same. Ratios say more than milliseconds.",
            "",
            "",
        ]
    )


def write(path: Path, text: str) -> None:
    """Replace a file, whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}")
    parser.add_argument("--quick", action="store_true", help="measure less often")
    given = parser.parse_args()
    parts: list[str] = []
    for figures in measured(quick=given.quick):
        parts.append(figures.markdown())
        print(parts[-1], flush=True)
    if given.write:
        write(RESULTS, heading() + "\n".join(parts))


if __name__ == "__main__":
    main()

"""How long it takes to start: the command's help, and importing the package, against what it stands on.

python benchmarks/startup.py [--runs 5]
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import Figures

ROOT = Path(__file__).resolve().parents[1]
BASE = "import langchain.agents, langgraph.graph"
PROGRAMS = {
    "import langchain.agents, langgraph.graph": BASE,
    "import graph": "import graph",
    "planweave --help": "import sys; sys.argv = ['planweave', '--help']; from cli.main import main; main()",
}


def seconds(program: str, runs: int) -> float:
    """Return the shortest of some runs of a program in a new interpreter.

    Raises:
        CalledProcessError: it fails.
    """
    took: list[float] = []
    for _ in range(runs + 1):  # the first one may have to write byte code
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        took.append(time.perf_counter() - began)
    return min(took)


def figures(runs: int) -> Figures:
    """Measure and return the table."""
    found = {name: seconds(program, runs) for name, program in PROGRAMS.items()}
    base = found[BASE]
    rows = [(name, f"{took:.2f}", f"{took / base:.2f}") for name, took in found.items()]
    note = "A new interpreter each time; the shortest of several. Ratio: to LangChain's own import."
    return Figures("Start-up", note, ("what", "seconds", "ratio"), rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5)
    print(figures(parser.parse_args().runs).markdown())


if __name__ == "__main__":
    main()

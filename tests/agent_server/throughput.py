"""Runs per minute with one server and with two. Prints a table for docs/scale.md.

python -m tests.agent_server.throughput
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.agent_server.environment import Unavailable, agent_server_python
from tests.agent_server.servers import Cluster, cluster

RUNS = 60
JOBS = 10
# What each model answer and each tool body takes. A run has eleven of them one after the other.
SECONDS = (0.2, 1.0)
STEPS = 4


def measured(found: Cluster) -> float:
    """Return the seconds from the first run that is submitted to the end of the last."""
    server = found.servers[0]
    threads = [server.new_thread() for _ in range(RUNS)]
    began = time.monotonic()
    runs = [server.submit(thread, input={"objective": f"r{n}"}) for n, thread in enumerate(threads)]
    for thread, run in zip(threads, runs, strict=True):
        assert server.ended(thread, run, 600)["status"] == "success"
    return time.monotonic() - began


def main() -> None:
    try:
        python = agent_server_python()
    except Unavailable as error:
        sys.exit(str(error))
    print(f"{RUNS} runs of {STEPS} steps, {JOBS} runs at once on a server, {os.cpu_count()} processors")  # noqa: T201
    print("| each model answer and tool body | servers | seconds | runs/min | steps/s |")  # noqa: T201
    print("|---|---|---|---|---|")  # noqa: T201
    for seconds in SECONDS:
        for servers in (1, 2):
            with (
                tempfile.TemporaryDirectory() as folder,
                cluster(
                    python, Path(folder), N_JOBS_PER_WORKER=str(JOBS), PLANWEAVE_TEST_SECONDS=str(seconds)
                ) as found,
            ):
                for _ in range(servers):
                    found.start()
                took = measured(found)
            rates = f"{RUNS / took * 60:.0f} | {RUNS * STEPS / took:.1f}"
            print(f"| {seconds:g} s | {servers} | {took:.1f} | {rates} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

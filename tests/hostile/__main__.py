"""Thousands of hostile runs: `python -m tests.hostile --runs 5000 --seed 0`. Prints each seed that breaks a rule."""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import sys
import time
import traceback
from collections import Counter

from tests.hostile.checks import violations
from tests.hostile.run import run_seed

STUCK_SECONDS = 60


def main() -> int:
    """Run the seeds, and return 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    options = parser.parse_args()
    endings: Counter[str] = Counter()
    failed: list[int] = []
    began = time.monotonic()
    for seed in range(options.seed, options.seed + options.runs):
        print(f"seed {seed}", end="\r", flush=True)  # noqa: T201
        faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
        lines = one(seed, endings)
        faulthandler.cancel_dump_traceback_later()
        if lines:
            failed.append(seed)
            print(f"seed {seed}: " + "\n    ".join(lines), flush=True)  # noqa: T201
    for ending, count in endings.most_common():
        print(f"{count:6d}  {ending}")  # noqa: T201
    print(f"{options.runs} runs, {len(failed)} failed, {time.monotonic() - began:.0f} s")  # noqa: T201
    return 1 if failed else 0


def one(seed: int, endings: Counter[str]) -> list[str]:
    """Carry out one run; return what it has broken."""
    try:
        run = run_seed(seed)
        endings[f"{run.out.get('status')}, {run.out.get('stop_reason')}"] += 1
        return violations(run)
    except (Exception, asyncio.CancelledError):  # noqa: BLE001 - a run that raises is a finding like any other
        endings["raised"] += 1
        return traceback.format_exc().splitlines()[-12:]


if __name__ == "__main__":
    sys.exit(main())

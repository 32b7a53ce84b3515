"""The kill matrix until so many kills have hit: `python -m tests.kill --kills 300`, half on SQLite, half on Postgres.

Prints each run that has repeated or lost something, and the tally at the end. A number of seeds would say less: many
moments come after a run's end, and hit nothing.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.kill.lives import Nursery
from tests.kill.trial import Trial, tally, trial
from tests.postgres.server import PostgresServer

# So many broken runs say enough.
ENOUGH = 20


class Matrix:
    """Trials with one seed after the other, on both backends, until each has had its share of the kills."""

    def __init__(self, kills: int, server: PostgresServer, folder: Path) -> None:
        self._wanted = {"sqlite": (kills + 1) // 2, "postgres": kills // 2}
        self._server, self._folder = server, folder
        self._nursery = Nursery()
        self.trials: list[Trial] = []

    def hit(self, backend: str) -> int:
        """Return the kills on a backend so far."""
        return sum(t.kills for t in self.trials if t.backend == backend)

    def wanting(self, first: int) -> Iterator[tuple[int, str]]:
        """Yield seeds and backends while kills are wanting."""
        for seed in itertools.count(first):
            open_backends = [name for name, wanted in self._wanted.items() if self.hit(name) < wanted]
            if not open_backends or sum(bool(t.repeats or t.losses) for t in self.trials) >= ENOUGH:
                return
            yield seed, open_backends[seed % len(open_backends)]

    def one(self, seed: int, backend: str) -> Trial:
        """Carry out one trial; one that raises is a loss."""
        home = self._folder / str(seed)
        url = self._server.new_database() if backend == "postgres" else None
        try:
            return trial(self._nursery, seed, home, url)
        except Exception:  # noqa: BLE001 - a run that cannot be gone on with is what is looked for
            return Trial(seed, backend, losses=[traceback.format_exc(limit=-4)])
        finally:
            if url is not None:
                self._server.drop(url)

    def run(self, first: int, workers: int) -> None:
        """Carry out trials, some at once, and print what each has broken."""
        with ThreadPoolExecutor(workers) as pool:
            at_work: set[Future[Trial]] = set()
            for seed, backend in self.wanting(first):
                at_work.add(pool.submit(self.one, seed, backend))
                while len(at_work) >= workers:
                    at_work -= {done for done in at_work if self._taken(done)}
            for future in at_work:
                future.result()
                self._taken(future)

    def _taken(self, future: Future[Trial]) -> bool:
        try:
            found = future.result(timeout=0.1)
        except TimeoutError:
            return False
        self.trials.append(found)
        for line in [*(f"ran again: {name}" for name in found.repeats), *found.losses]:
            print(f"seed {found.seed} ({found.backend}): {line}", flush=True)  # noqa: T201
        if len(self.trials) % 25 == 0:
            print(f"{len(self.trials)} runs, {sum(t.kills for t in self.trials)} kills", flush=True)  # noqa: T201
        return True


def main() -> int:
    """Run the matrix, and return 1 if anything was repeated or lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planweave-chaos-") as folder:
        # Started by root the server runs as another user, who has to get there.
        Path(folder).chmod(0o755)
        with PostgresServer(Path(folder) / "data") as server:
            matrix = Matrix(options.kills, server, Path(folder))
            matrix.run(options.seed, options.workers)
    print(tally(matrix.trials))  # noqa: T201
    print(f"{time.monotonic() - began:.0f} s")  # noqa: T201
    return 1 if any(t.repeats or t.losses for t in matrix.trials) else 0


if __name__ == "__main__":
    sys.exit(main())

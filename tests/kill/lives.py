"""Processes that run the driver, and what they leave behind."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.kill import driver
from tests.kill.driver import Order

ROOT = Path(__file__).parents[2]


@dataclass
class Life:
    """One process of `python -m tests.kill.driver`; `stderr` collects all it says there."""

    process: subprocess.Popen[str]
    stderr: Path

    def event(self) -> dict[str, Any]:
        """Return the next thing that the process reports."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        assert line, f"the process ended without a word: {self.stderr.read_text()[-2000:]}"
        return json.loads(line)

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL

    def end(self) -> dict[str, Any]:
        """Return what the run came to; the process must end by itself."""
        found = self.event()
        assert self.process.wait() == 0
        return found


@contextmanager
def life(home: Path, mode: str, *options: str, **env: str) -> Iterator[Life]:
    """Start a process of its own, and see to its end."""
    command = [sys.executable, "-m", "tests.kill.driver", mode, str(home), *options]
    stderr = home.parent / f"{home.name}.stderr"
    with (
        stderr.open("a") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=os.environ | env, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            yield Life(process, stderr)
        finally:
            process.kill()


def killed_at(home: Path, stop: str, mode: str = "run", *options: str) -> None:
    """Run until a stop point, and kill there."""
    with life(home, mode, "--stop", stop, *options) as one:
        assert one.event() == {"at": stop}
        one.kill()


def resumed(home: Path, *options: str, mode: str = "resume", **env: str) -> dict[str, Any]:
    """Go on in a new process, and return what the run came to."""
    with life(home, mode, *options, **env) as one:
        return one.end()["done"]


def _drive(order: Order, reports: Connection) -> None:
    reports.send({"at": "start"})
    driver.run(order, reports.send)


class Nursery:
    """Starts driver processes in milliseconds: forked from a server that has imported everything, and nothing else."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["graph", "agents.worker", "tests.kill.driver"])

    def live(self, order: Order, seconds: float | None = None) -> dict[str, Any]:
        """Carry out an order; kill it `seconds` after its start.

        Returns:
            What it reported, and the "seconds" that it took; or {"killed": monotonic ns}.
        """
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_drive, args=(order, sender))
        process.start()
        sender.close()
        with closing(receiver):
            assert receiver.recv() == {"at": "start"}
            began = time.monotonic_ns()
            if not receiver.poll(seconds):
                os.kill(process.pid or 0, signal.SIGKILL)
            ended = time.monotonic_ns()
            process.join()
            if process.exitcode != 0:
                return {"killed": ended}
            return receiver.recv() | {"seconds": (ended - began) / 1e9}


@dataclass
class Remains:
    """What killed processes have left, read from outside.

    Attributes:
        unstarted: for each call, the runs that were counted although the kill came before the body began.
    """

    home: Path
    kills: list[int] = field(default_factory=list[int])
    unstarted: Counter[str] = field(default_factory=Counter[str])

    def lines(self) -> list[tuple[str, str, int]]:
        """Return (word, call, monotonic ns) of the log; the last line may be cut by the kill."""
        log = self.home / "bodies.log"
        text = log.read_text() if log.exists() else ""
        split = (line.split() for line in text.splitlines())
        return [(word, name, int(ns)) for word, name, ns in split]

    def starts(self) -> Counter[str]:
        return Counter(name for word, name, _ in self.lines() if word == "start")

    def note_kill(self, ns: int) -> None:
        """Take down what the Store says after a kill."""
        self.kills.append(ns)
        starts = self.starts()
        for record in self.ledger():
            name = json.loads("{" + record["arguments"] + "}")["query"]
            assert record["runs"] >= starts[name], f"the body of {name} ran uncounted"
            self.unstarted[name] = max(self.unstarted[name], record["runs"] - starts[name])

    def ledger(self) -> list[dict[str, Any]]:
        return [json.loads(value) for (value,) in self._rows("store", "value", "prefix LIKE 'planweave.ledger.%'")]

    def worker_rows(self) -> int:
        return sum(
            len(self._rows(table, "1", "checkpoint_ns != ''", "checkpoints")) for table in ("checkpoints", "writes")
        )

    def _rows(self, table: str, columns: str, where: str, database: str = "store") -> list[tuple[Any, ...]]:
        path = self.home / f"{database}.sqlite"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as conn:
            known = {name for (name,) in conn.execute("SELECT name FROM sqlite_master")}
            return conn.execute(f"SELECT {columns} FROM {table} WHERE {where}").fetchall() if table in known else []



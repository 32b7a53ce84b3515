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
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.kill import driver
from tests.kill.driver import Order

ROOT = Path(__file__).parents[2]
# From the end of a body until its result is recorded, a call counts as running. That takes about 3 ms; so many beats
# of the driver's event loop are at least 40 ms of its own time, however busy the machine is.
BEATS = 8
# How often the log is looked at for the moment to kill.
POLL_SECONDS = 0.002
# What another life changes in a record.
TIMES = ("started_at", "finished_at", "retrieved_at", "tool_calls")


def timeless(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return evidence or sources without times and call counts, in one order."""
    kept = [{k: v for k, v in record.items() if k not in TIMES} for record in records]
    return sorted(kept, key=lambda r: (r["step_id"], r.get("attempt", 0), r.get("id", "")))


def alone(home: Path, mode: str, *options: str, **env: str) -> tuple[dict[str, Any], str]:
    """Run the driver by `python -m` in a new interpreter; return its last report, and what it said on stderr."""
    command = [sys.executable, "-m", "tests.kill.driver", mode, str(home), *options]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout.splitlines()[-1]), ended.stderr


def _drive(order: Order, reports: Connection) -> None:
    reports.send({"at": "start"})
    driver.run(order, reports.send)


@dataclass(frozen=True)
class Moment:
    """When to kill: `seconds` after the log has told of so much `progress`."""

    progress: int
    seconds: float

    def comes(self, home: Path, reports: Connection) -> bool:
        """Wait for it; return False if the process has told of its end before."""
        while progress(home) < self.progress:
            if reports.poll(POLL_SECONDS):
                return False
        return not reports.poll(self.seconds)


def progress(home: Path) -> int:
    """Return how often tool calls have begun, ended, or been told of, in all lives."""
    log = home / "bodies.log"
    text = log.read_bytes() if log.exists() else b""
    return sum(text.count(word) for word in (b"start ", b"end ", b"kept "))


class Nursery:
    """Starts driver processes in milliseconds: forked from a server that has imported everything, and nothing else."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["graph", "agents.worker", "tests.kill.driver"])

    @contextmanager
    def life(self, order: Order) -> Iterator[Life]:
        """Start a process that carries out an order, and see to its end."""
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_drive, args=(order, sender))
        process.start()
        sender.close()
        try:
            with closing(receiver):
                assert receiver.recv() == {"at": "start"}
                yield Life(process, receiver)
        finally:
            process.kill()
            process.join()

    def live(self, order: Order, moment: Moment | None = None) -> dict[str, Any]:
        """Carry out an order; kill the process at the moment, if there is one.

        Returns:
            What it reported, and the "seconds" that it took; or {"killed": True}.
        """
        with self.life(order) as one:
            began = time.monotonic()
            if moment is not None and moment.comes(order.home, one.reports):
                one.kill()
                if one.process.exitcode != 0:  # it may have ended by itself meanwhile
                    return {"killed": True}
            return one.reports.recv() | {"seconds": time.monotonic() - began}

    def kill_at(self, order: Order) -> None:
        """Run until the order's stop point, and kill there."""
        with self.life(order) as one:
            assert one.reports.recv() == {"at": order.stop}
            one.kill()


@dataclass
class Life:
    """One process, and what it reports."""

    process: BaseProcess
    reports: Connection

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        assert self.process.pid is not None
        with suppress(ProcessLookupError):  # it may have ended by itself meanwhile
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


@dataclass
class Remains:
    """What killed processes have left, read from outside.

    Attributes:
        unstarted: for each call, the runs that were counted although the kill came before the body began.
        uncounted: calls whose body ran without having been counted before.
    """

    home: Path
    unstarted: Counter[str] = field(default_factory=Counter[str])
    uncounted: list[str] = field(default_factory=list[str])

    def lines(self) -> list[tuple[str, str]]:
        """Return (word, call) of the log."""
        log = self.home / "bodies.log"
        text = log.read_text() if log.exists() else ""
        split = (line.split() for line in text.splitlines())
        return [(word, name) for word, name in split]

    def starts(self) -> Counter[str]:
        return Counter(name for word, name in self.lines() if word == "start")

    def repeated(self, beats_to_record: float = BEATS) -> list[str]:
        """Return the calls that started again although they were finished: known to be, or ended in good time.

        Args:
            beats_to_record: that a result takes from its body's end; inf = count only what is known to be recorded.
        """
        finished: set[str] = set()
        ended: dict[str, int] = {}
        beats = 0
        wrong: list[str] = []
        for word, name in self.lines():
            if word == "start" and name in finished:
                wrong.append(name)
            elif word == "end":
                ended[name] = beats
            elif word == "kept":
                finished.add(name)
            elif word == "beat":
                beats += 1
            elif word == "life":
                finished |= {call for call, at in ended.items() if beats - at >= beats_to_record}
                ended.clear()
        return wrong

    def note_kill(self) -> bool:
        """Take down what the Store says after a kill; return whether a tool body was at work."""
        starts = self.starts()
        for record in self.kept("ledger"):
            if "arguments" not in record:  # the seconds before a pause
                continue
            name = json.loads("{" + record["arguments"] + "}")["query"]
            if record["runs"] < starts[name]:
                self.uncounted.append(name)
            self.unstarted[name] = max(self.unstarted[name], record["runs"] - starts[name])
        lines = self.lines()
        life = lines[max((n for n, (word, _) in enumerate(lines) if word == "life"), default=0) :]
        return sum(word == "start" for word, _ in life) > sum(word == "end" for word, _ in life)

    def kept(self, what: str) -> list[dict[str, Any]]:
        """Return what the Store holds of running steps: "ledger" for tool calls, "finished" for steps."""
        return [
            json.loads(value)
            for (value,) in self._rows("store", "value", f"prefix LIKE 'planweave.{what}.%'")
        ]

    def worker_rows(self) -> int:
        return sum(
            len(self._rows(table, "1", "checkpoint_ns != ''", "checkpoints"))
            for table in ("checkpoints", "writes")
        )

    def _rows(self, table: str, columns: str, where: str, database: str = "store") -> list[tuple[Any, ...]]:
        path = self.home / f"{database}.sqlite"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as conn:
            known = {name for (name,) in conn.execute("SELECT name FROM sqlite_master")}
            return (
                conn.execute(f"SELECT {columns} FROM {table} WHERE {where}").fetchall()
                if table in known
                else []
            )


TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@dataclass
class PostgresRemains(Remains):
    """What killed processes have left in a database."""

    url: str = ""

    def kept(self, what: str) -> list[dict[str, Any]]:
        rows = self.rows(f"SELECT value::text FROM store WHERE prefix LIKE 'planweave.{what}.%'")
        return [json.loads(value) for (value,) in rows]

    def worker_rows(self) -> int:
        counts = [self.rows(f"SELECT count(*) FROM {table} WHERE checkpoint_ns <> ''") for table in TABLES]
        return sum(count for ((count,),) in counts)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as conn:
            try:
                return conn.execute(sql.encode()).fetchall()
            except psycopg.errors.UndefinedTable:  # killed before they were made
                return []

"""One run by chance, killed up to three times, against the same run undisturbed; and the tally of many."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.kill.lives import Moment, Nursery, Order, PostgresRemains, Remains, progress, timeless
from tests.kill.scenes import MAX_KILLS, scene_of

# A run waits for a person once for each plan and each note or record; each wait ends a life, and so does each kill.
MAX_LIVES = 40
# The other moments are spread over the progress of the tool calls: a clock alone would hit start-up most of all.
BY_CLOCK = 0.25
JITTER_SECONDS = 0.03
ENDS = ("final_answer", "status", "stop_reason", "limits")


@dataclass
class Trial:
    """What one run has shown.

    Attributes:
        kills: that hit a process at work; missed: moments that came after its end.
        at_work: kills that came while a tool body ran.
        repeats: finished tool calls that were run again.
        losses: what is missing, doubled, miscounted or different from the undisturbed run, one line each.
    """

    seed: int
    backend: str
    kills: int = 0
    missed: int = 0
    at_work: int = 0
    repeats: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def undisturbed(nursery: Nursery, objective: str) -> dict[str, Any]:
    """Return what a run comes to when nobody kills it, its "progress", and the "seconds" that one of its lives takes."""
    with tempfile.TemporaryDirectory(prefix="planweave-kill-") as home:
        order, seconds = Order(Path(home), plan=objective), 0.0
        for lives in range(1, MAX_LIVES):
            found = nursery.live(order)
            seconds += found["seconds"]
            if not found["done"]["questions"]:
                return found["done"] | {"seconds": seconds / lives, "progress": progress(order.home)}
            order = replace(order, mode="approve")
    raise AssertionError(f"{objective} does not end")


def trial(nursery: Nursery, seed: int, home: Path, database: str | None = None) -> Trial:
    """Carry out one run with kills at seeded moments, and compare it with the undisturbed one."""
    objective = f"scene {seed}"
    found = Trial(seed, "sqlite" if database is None else "postgres")
    remains = Remains(home) if database is None else PostgresRemains(home, url=database)
    whole = undisturbed(nursery, objective)
    done = disturbed(nursery, Order(home, plan=objective, database=database), whole, remains, found)
    found.repeats = remains.repeated() + twice_recorded(objective, remains)
    found.losses = losses(done, whole, remains)
    return found


def disturbed(
    nursery: Nursery, order: Order, whole: dict[str, Any], remains: Remains, found: Trial
) -> dict[str, Any]:
    """Go on with the run, whatever kills it, until it has ended."""
    rng = random.Random(found.seed)
    most = rng.randint(1, MAX_KILLS)
    for _ in range(MAX_LIVES):
        at = moment(rng, progress(order.home), whole) if found.kills < most else None
        report = nursery.live(order, at)
        if "killed" in report:
            found.kills += 1
            found.at_work += remains.note_kill()
            order = replace(order, mode="resume")
            continue
        found.missed += at is not None
        if "no such thread" in report.get("line", ""):  # killed before the objective was stored
            order = replace(order, mode="run")
        elif report["done"]["questions"]:
            order = replace(order, mode="approve")
        else:
            return report["done"]
    raise AssertionError(f"scene {found.seed} does not end")


def moment(rng: random.Random, now: int, whole: dict[str, Any]) -> Moment:
    """Return when to kill a run that has come so far."""
    if rng.random() < BY_CLOCK or now >= whole["progress"]:
        return Moment(now, rng.uniform(0, whole["seconds"]))
    return Moment(rng.randint(now + 1, whole["progress"]), rng.uniform(0, JITTER_SECONDS))


def twice_recorded(objective: str, remains: Remains) -> list[str]:
    """Return the calls that may never be made twice, finished or not, and were."""
    rounds = scene_of(objective).rounds.values()
    records = {name for step in rounds for r in step for tool, name in r if tool == "record"}
    return sorted(name for name, count in remains.starts().items() if name in records and count > 1)


def losses(done: dict[str, Any], whole: dict[str, Any], remains: Remains) -> list[str]:
    """Return what differs from the undisturbed run, or was counted wrongly, or left behind."""
    wrong = [f"{key}: {done[key]!r} instead of {whole[key]!r}" for key in ENDS if done[key] != whole[key]]
    wrong += [key for key in ("evidence", "sources") if timeless(done[key]) != timeless(whole[key])]
    if done["plan"]["fingerprint"] != whole["plan"]["fingerprint"]:
        wrong.append("another plan")
    bodies = remains.starts().total() + remains.unstarted.total()
    counts = (done["usage"]["tool_calls"], sum(e["tool_calls"] for e in done["evidence"]))
    if counts != (bodies, bodies):
        wrong.append(f"{bodies} tool bodies ran, counted as {counts}")
    for key in ("model_calls", "input_tokens", "output_tokens"):
        if done["usage"][key] != whole["usage"][key]:
            wrong.append(f"{key}: {done['usage'][key]} instead of {whole['usage'][key]}")
    left = (len(remains.kept("ledger")), len(remains.kept("finished")), remains.worker_rows())
    if any(left):
        wrong.append(f"ledger records, finished steps, worker rows left behind: {left}")
    return wrong + [f"the body of {name} ran uncounted" for name in remains.uncounted]


def tally(trials: list[Trial]) -> str:
    """Return the table of many trials, by backend."""
    head = ("backend", "runs", "kills", "in tool bodies", "missed", "repeats", "losses")
    rows: list[tuple[object, ...]] = [head]
    for backend in sorted({t.backend for t in trials}):
        rows.append((backend, *sums([t for t in trials if t.backend == backend])))
    rows.append(("all", *sums(trials)))
    lines = ["".join(f"{value!s:>16}" for value in row) for row in rows]
    by_kills = Counter(t.kills for t in trials)
    return "\n".join(
        [*lines, "runs by kills: " + ", ".join(f"{k}: {n}" for k, n in sorted(by_kills.items()))]
    )


def sums(trials: list[Trial]) -> tuple[int, ...]:
    """Return runs, kills, kills in bodies, misses, repeats and losses."""
    return (
        len(trials),
        sum(t.kills for t in trials),
        sum(t.at_work for t in trials),
        sum(t.missed for t in trials),
        sum(len(t.repeats) for t in trials),
        sum(len(t.losses) for t in trials),
    )

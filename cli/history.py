"""The checkpoints of a thread, and what changed at each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from langgraph.types import StateSnapshot

from cli.printable import one_line
from cli.screen import Screen
from cli.texts import Texts
from graph.forking import FORK_OF
from graph.runner import Outcome, thread_config
from schemas.errors import InputError
from schemas.evidence import Evidence

if TYPE_CHECKING:
    from graph.threads import TaskGraph

_LEAST_ID_CHARS = 4


@dataclass(frozen=True)
class Entry:
    """One checkpoint.

    Attributes:
        step: its number in the thread: unique, and going up.
        node: what has run up to it; next: what would run from it on.
        changes: words for what is new in it.
    """

    step: int
    checkpoint_id: str
    at: datetime | None
    node: str
    next: tuple[str, ...]
    changes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        at = self.at.isoformat() if self.at is not None else None
        return {**vars(self), "at": at, "next": list(self.next)}


async def snapshots(graph: "TaskGraph", thread_id: str) -> list[StateSnapshot]:
    """Return a thread's checkpoints, the first one first."""
    found = [snapshot async for snapshot in graph.aget_state_history(thread_config(thread_id))]
    return found[::-1]


def checkpoint_id(snapshot: StateSnapshot) -> str:
    """Return a checkpoint's id."""
    return str(snapshot.config.get("configurable", {}).get("checkpoint_id"))


def number(snapshot: StateSnapshot) -> int:
    """Return a checkpoint's number in its thread."""
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    return int(metadata.get("step", -1))


def named(found: Sequence[StateSnapshot], at: str, say: Texts) -> StateSnapshot:
    """Return the checkpoint that a person means: by its number, by its id, or by the beginning of it.

    Raises:
        InputError: there is none, or more than one.
    """
    meant = [s for s in found if checkpoint_id(s) == at]
    if not meant and at.lstrip("-").isdecimal():
        meant = [s for s in found if number(s) == int(at)]
    if not meant and len(at) >= _LEAST_ID_CHARS:
        meant = [s for s in found if checkpoint_id(s).startswith(at)]
    if len(meant) != 1:
        key = "history.several" if meant else "history.unknown"
        raise InputError(say(key, at=one_line(at, 60)))
    return meant[0]


async def entries(graph: "TaskGraph", thread_id: str, now: Outcome, say: Texts) -> list[Entry]:
    """Return a thread's checkpoints, the first one first.

    Args:
        graph: the graph.
        thread_id: of the thread.
        now: what it has come to; in an unfinished superstep this is more than its last checkpoint says.
        say: the words.
    """
    found = await snapshots(graph, thread_id)
    before: StateSnapshot | None = None
    rows: list[Entry] = []
    for snapshot in found:
        rows.append(_entry(snapshot, before, say))
        before = snapshot
    if before is not None and now.evidence and before.values.get("evidence") != now.evidence:
        beyond = _evidence(before.values.get("evidence", []), now.evidence, say)
        rows[-1].changes.append(say("history.since", changes=", ".join(beyond)))
    return rows


def _entry(snapshot: StateSnapshot, before: StateSnapshot | None, say: Texts) -> Entry:
    metadata = cast("Mapping[str, Any]", snapshot.metadata or {})
    # Parallel branches have one node; what a person writes has none.
    nodes = dict.fromkeys(task.name for task in before.tasks) if before is not None else {}
    source = metadata.get("source")
    node = ", ".join(nodes) if source == "loop" else str(source)
    words = changed(before.values if before is not None else {}, snapshot.values, say)
    if metadata.get(FORK_OF):
        words.insert(0, say("history.fork_of", thread=one_line(str(metadata[FORK_OF]))))
    return Entry(
        step=number(snapshot),
        checkpoint_id=checkpoint_id(snapshot),
        at=datetime.fromisoformat(snapshot.created_at) if snapshot.created_at else None,
        node=node.strip("_"),
        next=tuple(dict.fromkeys(snapshot.next)),
        changes=words,
    )


def changed(before: Mapping[str, Any], after: Mapping[str, Any], say: Texts) -> list[str]:
    """Return words for what is new in a state."""
    words: list[str] = []
    if after.get("run_id") != before.get("run_id"):
        words.append(say("history.objective", objective=one_line(str(after.get("objective", "")), 80)))
    if after.get("planned_run_id") != before.get("planned_run_id"):
        before = {}  # what the objective before has left is no news
    plan = after.get("plan")
    if plan is not None and plan != before.get("plan"):
        by = say(f"by.{plan.created_by}")
        words.append(say("history.plan", version=plan.version, by=by, count=len(plan.steps)))
    if after.get("questions") and after["questions"] != before.get("questions"):
        words.append(say("history.questions", count=len(after["questions"])))
    words += _evidence(before.get("evidence", []), after.get("evidence", []), say)
    return words + _ending(before, after, say)


def _ending(before: Mapping[str, Any], after: Mapping[str, Any], say: Texts) -> list[str]:
    words: list[str] = []
    if after.get("approved") and after["approved"] != before.get("approved"):
        words.append(say("history.approved"))
    if before.get("limits") is not None and after.get("limits") != before["limits"]:
        words.append(say("history.limits"))
    if after.get("review") is not None and after["review"] != before.get("review"):
        review = after["review"]
        words.append(
            say("review.approved") if review.approved else say("review.gaps", count=len(review.gaps))
        )
    if after.get("stop_reason") not in (None, "approved", before.get("stop_reason")):
        words.append(say(f"reason.{after['stop_reason']}"))
    if after.get("status") != before.get("status") and after.get("status") not in (None, "running"):
        words.append(say(f"status.{after['status']}"))
    return words


def _evidence(before: Sequence[Evidence], after: Sequence[Evidence], say: Texts) -> list[str]:
    states: dict[str, list[str]] = {}
    for record in after:
        if record not in before:
            state = "skipped" if record.skipped_because else "passed" if record.passed else "failed"
            states.setdefault(state, []).append(record.step_id)
    words = [say("field", name=say(f"state.{state}")) + ", ".join(ids) for state, ids in states.items()]
    there = {record.step_id for record in after}
    gone = dict.fromkeys(record.step_id for record in before if record.step_id not in there)
    if gone:
        words.append(say("history.again", steps=", ".join(gone)))
    return words


def print_history(screen: Screen, thread_id: str, rows: Sequence[Entry], *, as_json: bool) -> None:
    """Print a thread's checkpoints, and how to go on from one."""
    say = screen.say
    if as_json:
        screen.json([row.to_json() for row in rows])
        return
    header = [say(f"history.{name}") for name in ("step", "at", "node", "changes", "next")]
    screen.table(header, [_cells(row, say) for row in rows], numbers=(0,), wraps=(3,))
    screen.line()
    screen.line(say("history.how", thread=quote(one_line(thread_id))), "dim")


def _cells(row: Entry, say: Texts) -> tuple[str, ...]:
    at = f"{row.at.astimezone():%H:%M:%S}" if row.at is not None else ""
    ended = say("history.end") if not row.next else ", ".join(node.strip("_") for node in row.next)
    return (str(row.step), at, row.node, "; ".join(row.changes), ended)

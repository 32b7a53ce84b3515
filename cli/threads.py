"""`planweave threads`: what there is, how far it has come, and what it has cost."""

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cli.desk import Desk
from cli.exit_codes import ExitCode
from cli.looking import look
from cli.printable import one_line
from cli.texts import Texts

if TYPE_CHECKING:
    from graph.threads import TaskGraph, ThreadSummary

_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


@dataclasses.dataclass(frozen=True)
class Listed:
    """A line of the list."""

    summary: "ThreadSummary"
    stop_reason: str | None
    tool_calls: int
    model_calls: int
    tokens: int

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        cost = {name: getattr(self, name) for name in ("stop_reason", "tool_calls", "model_calls", "tokens")}
        summary = dataclasses.asdict(self.summary)
        return summary | {"updated_at": self.summary.updated_at.isoformat()} | cost


async def threads(desk: Desk, *, as_json: bool) -> ExitCode:
    """List the threads, the latest first."""
    screen, say = desk.screen, desk.screen.say
    async with desk.open() as graph:
        found = [await _listed(graph, summary) for summary in await graph.threads()]
    if as_json:
        screen.json([thread.to_json() for thread in found])
        return ExitCode.COMPLETED
    if not found:
        screen.note(say("threads.none"))
        return ExitCode.COMPLETED
    names = ("thread", "status", "age", "tools", "models", "tokens", "objective")
    now = datetime.now(UTC)
    screen.table(
        [say(f"threads.{name}") for name in names],
        [_cells(thread, say, now) for thread in found],
        cut_last=True,
        numbers=(3, 4, 5),
    )
    return ExitCode.COMPLETED


async def _listed(graph: "TaskGraph", summary: "ThreadSummary") -> Listed:
    found = (await look(graph, summary.thread_id)).outcome
    usage = found.usage
    return Listed(summary, found.stop_reason, usage.tool_calls, usage.model_calls, usage.tokens)


def _cells(thread: Listed, say: Texts, now: datetime) -> tuple[str, ...]:
    summary = thread.summary
    return (
        summary.thread_id,
        say(f"status.{summary.status}"),
        age(summary.updated_at, now, say),
        str(thread.tool_calls),
        str(thread.model_calls),
        str(thread.tokens),
        one_line(summary.objective, 120),
    )


def age(then: datetime, now: datetime, say: Texts) -> str:
    """Return how long ago something was, in its largest unit."""
    seconds = max(0, int((now - then).total_seconds()))
    for unit, length in _UNITS:
        if seconds >= length:
            return say(f"age.{unit}", count=seconds // length)
    return say("age.seconds", count=seconds)

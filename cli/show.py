"""`planweave show`: a thread, or one side of it."""

from typing import TYPE_CHECKING, Any, Literal

from cli.desk import Desk
from cli.exit_codes import ExitCode
from cli.history import entries, print_history
from cli.looking import Seen, look
from cli.plan_text import plan_yaml
from cli.plan_versions import print_versions, versions_json
from cli.printable import one_line
from cli.screen import Screen
from cli.thread_page import print_thread
from graph.runner import Outcome
from schemas.errors import InputError

if TYPE_CHECKING:
    from graph.threads import TaskGraph

Part = Literal["thread", "plan", "plans", "history"]


async def show(desk: Desk, thread_id: str, part: Part, *, evidence: bool, as_json: bool) -> ExitCode:
    """Show one thread.

    Raises:
        InputError: there is no such thread, or no plan where one is wanted.
    """
    screen = desk.screen
    async with desk.open() as graph:
        seen = await look(graph, thread_id)
        found = seen.outcome
        if not found.known:
            raise InputError(screen.say("show.unknown", thread=one_line(thread_id)))
        if part == "history":
            rows = await entries(graph, thread_id, seen.outcome, screen.say)
            print_history(screen, thread_id, rows, as_json=as_json)
            return ExitCode.COMPLETED
        status = await _status(graph, found)
    if part == "thread":
        _print_whole(screen, seen, status, evidence=evidence, as_json=as_json)
        return ExitCode.COMPLETED
    if found.plan is None:
        raise InputError(screen.say("show.not_planned", thread=one_line(thread_id)))
    if part == "plans":
        _print_plans(screen, found, as_json=as_json)
    elif as_json:
        screen.json(found.plan.model_dump(mode="json"))
    else:
        screen.line(plan_yaml(found.plan.model_dump(mode="json")).rstrip("\n"), exact=True)
    return ExitCode.COMPLETED


def _print_whole(screen: Screen, seen: Seen, status: str, *, evidence: bool, as_json: bool) -> None:
    if as_json:
        value: dict[str, Any] = seen.outcome.to_json() | {"status": status}
        screen.json(value)
    else:
        print_thread(screen, seen.outcome, status, evidence=evidence)


def _print_plans(screen: Screen, found: Outcome, *, as_json: bool) -> None:
    if as_json:
        screen.json(versions_json(found.plans))
    else:
        print_versions(screen, found.plans)


async def _status(graph: "TaskGraph", found: Outcome) -> str:
    """Return the status as `threads` gives it: it knows whether a running one still has a process."""
    for thread in await graph.threads():
        if thread.thread_id == found.thread_id:
            return thread.status
    return found.status or "running"

"""Forking a thread, removing one, and freeing what nothing needs."""

import dataclasses
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from langgraph.types import StateSnapshot

from cli.desk import Desk
from cli.editor import Draft
from cli.exit_codes import ExitCode
from cli.history import checkpoint_id, named, number, snapshots
from cli.looking import look
from cli.plan_text import read_yaml, without_computed, yaml_text
from cli.printable import one_line
from cli.screen import Screen, typed_line
from cli.terms import stored_terms
from graph import forking, housekeeping
from graph.forking import Edit, Forked, read_edit
from schemas.errors import InputError
from schemas.plan import PlanDraft
from schemas.state import latest

if TYPE_CHECKING:
    from graph.threads import TaskGraph

_YES = frozenset({"y", "yes", "是", "好"})
_UNITS = ("B", "kB", "MB", "GB")


async def fork(desk: Desk, thread_id: str, at: str, file: str | None, *, to: str, as_json: bool) -> ExitCode:
    """Copy a thread up to a checkpoint to a new one, and say how to go on.

    Args:
        desk: where the person sits.
        thread_id: of the original.
        at: the checkpoint, as `show --history` lists it.
        file: of what is changed; "-" = standard input; "" = in the person's editor; None = nothing.
        to: id of the new thread.
        as_json: whether the result is printed as JSON.

    Raises:
        InputError: there is no such thread or checkpoint, or the change does not fit.
    """
    screen = desk.screen
    async with desk.open() as graph:
        if not (await look(graph, thread_id)).outcome.known:
            raise InputError(screen.say("show.unknown", thread=one_line(thread_id)))
        terms = await stored_terms(graph, thread_id)
    # Another plan may name only the tools that the run has.
    async with desk.open(terms.kit) as graph:
        source = checkpoint_id(named(await snapshots(graph, thread_id), at, screen.say))
        state = await forking.state_at(graph, thread_id, source)
        if file == "":
            edit = _edited(screen, graph, state)
        else:
            edit = _read(read_yaml(file)) if file is not None else None
        new = await forking.fork(graph, thread_id, source, to=to, edit=edit)
    if as_json:
        screen.json(dataclasses.asdict(new))
    else:
        _tell(screen, new, thread_id, number(state))
    return ExitCode.COMPLETED


def _tell(screen: Screen, new: Forked, source: str, at: int) -> None:
    say = screen.say
    name = one_line(new.thread_id)
    screen.line(say("fork.done", thread=name, source=one_line(source), at=at), "bold")
    if new.kept:
        screen.line(say("fork.kept", steps=", ".join(new.kept)))
    if new.open:
        screen.line(say("fork.open", steps=", ".join(new.open)))
    screen.line(say("fork.resume" if new.next else "fork.ended", thread=quote(name)))


def _read(raw: Any) -> Edit:
    edit = read_edit(raw)
    return edit.model_copy(update={"plan": without_computed(edit.plan)}) if edit.plan is not None else edit


def _edited(screen: Screen, graph: "TaskGraph", state: StateSnapshot) -> Edit:
    if not screen.can_ask:
        raise InputError(screen.say("fork.no_editor"))

    def problems(raw: Any) -> Sequence[str]:
        try:
            forking.changed(state, _read(raw), graph)
        except InputError as error:
            return [str(error)]
        return []

    raw = Draft(screen, yaml_text(editable(state)), problems, head=screen.say("edit.fork")).edit()
    if raw is None:
        raise InputError(screen.say("fork.unchanged"))
    return _read(raw)


def editable(state: StateSnapshot) -> dict[str, Any]:
    """Return what can be changed in a fork: the plan, and what the last record of each step says.

    Raises:
        InputError: there is no plan at this checkpoint.
    """
    values = cast("Mapping[str, Any]", state.values)
    plan = values.get("plan")
    if plan is None:
        raise InputError("there is no plan at this checkpoint yet: nothing can be changed in it")
    whole = plan.model_dump(mode="json")
    fields = ("step_id", "passed", "summary", "missing", "source_ids")
    records = latest(values.get("evidence", [])).values()
    return {
        "again": [],
        "evidence": [{name: getattr(record, name) for name in fields} for record in records],
        "plan": {name: whole[name] for name in PlanDraft.model_fields},
    }


async def remove(desk: Desk, thread_id: str, *, sure: bool) -> ExitCode:
    """Delete a thread, after a yes.

    Raises:
        InputError: there is no such thread, or nobody has said yes.
    """
    screen = desk.screen
    name = one_line(thread_id)
    async with desk.open() as graph:
        found = (await look(graph, thread_id)).outcome
        listed = any(thread.thread_id == thread_id for thread in await graph.threads())
        if not found.known and not listed:
            raise InputError(screen.say("show.unknown", thread=name))
        if not sure:
            objective = one_line(found.objective, 200)
            if not _agreed(screen, screen.say("rm.ask", thread=name, objective=objective)):
                return ExitCode.FAILED
        await housekeeping.remove(graph, thread_id)
    screen.line(screen.say("rm.done", thread=name))
    return ExitCode.COMPLETED


async def prune(desk: Desk, *, history: bool, sure: bool, as_json: bool) -> ExitCode:
    """Free what nothing needs; histories only after a yes.

    Raises:
        InputError: nobody has said yes, or the database cannot be pruned.
    """
    screen, say = desk.screen, desk.screen.say
    if history and not sure and not _agreed(screen, say("prune.ask")):
        return ExitCode.FAILED
    async with desk.open() as graph:
        found = await housekeeping.prune(graph, history=history)
    if as_json:
        screen.json(dataclasses.asdict(found))
        return ExitCode.COMPLETED
    counts = {"rows": found.rows, "checkpoints": found.checkpoints, "artifacts": found.artifacts}
    screen.line(say("prune.done", bytes=found.bytes, size=size(found.bytes), **counts))
    if found.busy:
        screen.line(say("prune.busy", threads=", ".join(map(one_line, found.busy))), "yellow")
    return ExitCode.COMPLETED


def _agreed(screen: Screen, question: str) -> bool:
    """Return whether the person says yes.

    Raises:
        InputError: nobody is there to be asked.
    """
    if not screen.can_ask:
        raise InputError(screen.say("rm.unasked"))
    reply = typed_line(question)
    if reply is None:
        screen.line()
    return (reply or "").strip().casefold() in _YES


def size(count: int) -> str:
    """Return bytes in a unit that is easy to read."""
    value = float(count)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return ""

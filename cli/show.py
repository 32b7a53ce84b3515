"""What there is to see without running anything: threads, one thread, the tools, the graph."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.text import Text
from rich.tree import Tree

from cli.board import Board
from cli.exit_codes import ExitCode
from cli.plan_tree import plan_tree
from cli.printable import clean, json_line, one_line
from cli.review import plan_yaml
from cli.screen import Screen
from cli.texts import Texts
from graph.builder import build_graph
from graph.persistence import open_graph
from graph.runner import Outcome, outcome
from graph.settings import load_settings
from graph.threads import TaskGraph
from schemas.errors import InputError
from schemas.evidence import Evidence, Source

_UNMET = "✗"
_MET = "✓"


async def threads(screen: Screen, *, as_json: bool) -> ExitCode:
    """List the threads, the latest first."""
    async with open_graph(load_settings()) as graph:
        found = await graph.threads()
    if as_json:
        rows = [
            dataclasses.asdict(thread) | {"updated_at": thread.updated_at.isoformat()} for thread in found
        ]
        screen.line(json_line(rows))
        return ExitCode.COMPLETED
    say = screen.say
    if not found:
        screen.note(say("threads.none"))
        return ExitCode.COMPLETED
    names = ("thread", "status", "updated", "calls", "objective")
    screen.table(
        [say(f"threads.{name}") for name in names],
        [
            (
                thread.thread_id,
                say(f"status.{thread.status}"),
                f"{thread.updated_at.astimezone():%Y-%m-%d %H:%M}",
                str(thread.tool_calls),
                one_line(thread.objective, 120),
            )
            for thread in found
        ],
        cut_last=True,
    )
    return ExitCode.COMPLETED


async def show(screen: Screen, thread_id: str, *, evidence: bool, plan: bool, as_json: bool) -> ExitCode:
    """Show one thread.

    Raises:
        InputError: there is no such thread, or --plan and no plan.
    """
    async with open_graph(load_settings()) as graph:
        found = await outcome(graph, thread_id)
        if not found.known:
            raise InputError(screen.say("show.unknown", thread=one_line(thread_id)))
        status = await _status(graph, found)
    if plan:
        if found.plan is None:
            raise InputError(screen.say("show.not_planned", thread=one_line(thread_id)))
        screen.line(plan_yaml(found.plan.model_dump(mode="json")).rstrip("\n"))
    elif as_json:
        screen.line(json_line(found.to_json() | {"status": status}))
    else:
        _print_thread(screen, found, status, evidence=evidence)
    return ExitCode.COMPLETED


async def _status(graph: TaskGraph, found: Outcome) -> str:
    """Return the status as `threads` gives it: it knows whether a running one still has a process."""
    for thread in await graph.threads():
        if thread.thread_id == found.thread_id:
            return thread.status
    return found.status or "running"


def _print_thread(screen: Screen, found: Outcome, status: str, *, evidence: bool) -> None:
    say = screen.say
    usage = say(
        "show.used", tools=found.usage.tool_calls, models=found.usage.model_calls, tokens=found.usage.tokens
    )
    reason = f" ({found.stop_reason})" if found.stop_reason else ""
    for name, value in (
        ("thread", found.thread_id),
        ("objective", one_line(found.objective, 2000)),
        ("status", say(f"status.{status}") + reason),
        ("usage", usage),
    ):
        screen.out.print(
            Text.assemble((_field(say, f"show.{name}"), "bold"), one_line(value, 2000)), soft_wrap=True
        )
    screen.line()
    _print_plan(screen, found)
    if evidence:
        _heading(screen, "show.evidence")
        for record in found.evidence:
            _print_evidence(screen, record, found.sources)
    _heading(screen, "show.gaps")
    gaps = found.review.gaps if found.review is not None else []
    for gap in gaps:
        screen.line(f"- {one_line(gap.description, 1000)}")
    if not gaps:
        screen.line(say("show.no_gaps"), "dim")
    if found.final_answer:
        _heading(screen, "show.answer")
        screen.markdown(found.final_answer)


def _heading(screen: Screen, key: str) -> None:
    screen.line()
    screen.line(screen.say(key), "bold")


def _print_plan(screen: Screen, found: Outcome) -> None:
    if found.plan is None:
        screen.line(screen.say("show.no_plan"), "dim")
        return
    # Earlier versions first: a failed step that a later version replaced is part of what happened.
    board = Board()
    for version in found.plans or [found.plan]:
        board.seed(version, [])
    board.seed(found.plan, found.evidence)
    current = {step.id for step in found.plan.steps}
    steps = [
        step.model_dump(mode="json")
        for version in found.plans
        for step in version.steps
        if step.id not in current and step.id in {record.step_id for record in found.evidence}
    ]
    steps = [
        *{step["id"]: step for step in steps}.values(),
        *(s.model_dump(mode="json") for s in found.plan.steps),
    ]
    head = screen.say(
        "plan.line",
        version=found.plan.version,
        by=found.plan.created_by,
        count=len(found.plan.steps),
        goal="",
    )
    screen.tree(plan_tree(head, steps, board.rows, screen.say))


def _print_evidence(screen: Screen, record: Evidence, sources: Sequence[Source]) -> None:
    say = screen.say
    state = "skipped" if record.skipped_because else "passed" if record.passed else "failed"
    style = {"passed": "green", "failed": "red", "skipped": "yellow"}[state]
    screen.out.print(
        Text.assemble((record.step_id, "bold"), "  ", (say(f"state.{state}"), style)), soft_wrap=True
    )
    for line in _evidence_lines(record, sources, say):
        screen.line(f"    {line}")


def _evidence_lines(record: Evidence, sources: Sequence[Source], say: Texts) -> Iterable[str]:
    if record.error_type:
        yield (
            _field(say, "show.rule")
            + record.error_type
            + (f": {one_line(record.detail, 500)}" if record.detail else "")
        )
    if record.skipped_because:
        yield say("step.skipped", step=record.step_id, because=record.skipped_because)
        return
    if record.reasoning:
        yield say("show.reasoning")
    for item in record.criteria:
        mark = f"{_MET} {_field(say, 'show.met')}" if item.met else f"{_UNMET} {_field(say, 'show.unmet')}"
        reason = f" - {one_line(item.reason, 300)}" if item.reason else ""
        yield f"{mark}{one_line(item.criterion, 300)}{reason}"
    for missing in record.missing:
        yield _field(say, "show.missing") + one_line(missing, 300)
    by_id = {source.id: source for source in sources}
    for source_id in record.source_ids:
        source = by_id.get(source_id)
        place = f" {one_line(source.title, 80)} ({one_line(source.locator, 300)})" if source else ""
        yield f"{say('show.source')} {one_line(source_id, 80)}{place}"
    seconds = f"{(record.finished_at - record.started_at).total_seconds():.1f}"
    yield say(
        "show.calls",
        attempt=record.attempt,
        tools=record.tool_calls,
        models=record.model_calls,
        seconds=seconds,
    )


def _field(say: Texts, key: str) -> str:
    return say("field", name=say(key))


async def tools(screen: Screen, docs: Path | None, root: Path | None, *, as_json: bool) -> ExitCode:
    """List the tools that steps may use."""
    say = screen.say
    async with open_graph(load_settings(), docs=docs, root=root) as graph:
        registry = graph.registry
        specs = [registry.spec(name) for name in registry.names()]
    if as_json:
        keys = ("name", "permission", "idempotent", "timeout_seconds", "description")
        screen.line(json_line([{key: getattr(spec, key) for key in keys} for spec in specs]))
        return ExitCode.COMPLETED
    if not specs:
        screen.note(say("tools.none"))
        return ExitCode.COMPLETED
    screen.table(
        [say(f"tools.{name}") for name in ("name", "permission", "idempotent", "description")],
        [
            (spec.name, spec.permission, say("yes" if spec.idempotent else "no"), spec.description)
            for spec in specs
        ],
    )
    return ExitCode.COMPLETED


def draw(screen: Screen, *, mermaid: bool) -> ExitCode:
    """Draw the graph: as a tree in a terminal, as Mermaid text otherwise."""
    drawable = build_graph().get_graph()
    if mermaid or not screen.terminal:
        screen.line(clean(drawable.draw_mermaid()).rstrip("\n"))
        return ExitCode.COMPLETED
    edges: dict[str, list[tuple[str, bool]]] = {}
    for edge in drawable.edges:
        edges.setdefault(edge.source, []).append((edge.target, edge.conditional))
    screen.tree(graph_tree("__start__", edges, screen.say))
    return ExitCode.COMPLETED


def graph_tree(start: str, edges: dict[str, list[tuple[str, bool]]], say: Texts) -> Tree:
    """Return the nodes as a tree from `start` on, each drawn out once; conditional edges are marked "?"."""
    order = [start]
    for node in order:
        order += [target for target, _ in edges.get(node, []) if target not in order]
    tree = Tree(Text(start.strip("_"), "bold"), guide_style="dim")
    branches = {start: tree}
    for node in order:
        for target, conditional in edges.get(node, []):
            label = Text("? " if conditional else "").append(target.strip("_"), "bold")
            if target in branches:
                branches[node].add(label.append(" " + say("graph.seen"), "dim"))
            else:
                branches[target] = branches[node].add(label)
    return tree

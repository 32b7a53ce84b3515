"""One thread on a page: its plan with states, its evidence, its gaps, its answer."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from cli.board import Board
from cli.plan_tree import plan_tree
from cli.printable import one_line
from cli.screen import Screen
from cli.spending import by_role, money
from cli.texts import Texts
from graph.runner import Outcome
from schemas.evidence import Evidence, Source

_UNMET = "✗"
_MET = "✓"


def print_thread(screen: Screen, found: Outcome, status: str, *, evidence: bool) -> None:
    """Print what a thread has come to; with `evidence`, also what is recorded of each step."""
    say = screen.say
    usage = say(
        "show.used", tools=found.usage.tool_calls, models=found.usage.model_calls, tokens=found.usage.tokens
    )
    reason = f" ({found.stop_reason})" if found.stop_reason else ""
    rows = (
        ("thread", found.thread_id),
        ("objective", found.objective),
        ("status", say(f"status.{status}") + reason),
        ("usage", usage),
        ("by_role", by_role(found.usage, say)),
        ("cost", money(found.usage)),
    )
    screen.fields([(say(f"show.{name}"), one_line(value, 2000)) for name, value in rows if value])
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
        by=screen.say(f"by.{found.plan.created_by}"),
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

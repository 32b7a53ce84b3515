"""The evidence of a run as a table: on a narrow page each row is a card."""

from collections.abc import Iterator

from cli.report_facts import Facts, seconds_of, state_of
from cli.report_graph import MARKS
from cli.report_markup import lines, words
from cli.texts import Texts
from schemas.evidence import Evidence

_HEADS = ("step", "state", "criteria", "calls_head", "seconds_head")


def evidence_table(facts: Facts, say: Texts) -> str:
    """Return the table: every attempt at every step, in the order in which they were recorded."""
    if not facts.found.evidence:
        return f"<p>{words(say('report.nothing_ran'))}</p>"
    tasks = {step.id: step.task for plan in facts.plans for step in plan.steps}
    head = "".join(f"<th>{words(say(f'report.{name}'))}</th>" for name in _HEADS)
    rows = "".join(_row(record, tasks.get(record.step_id, ""), facts, say) for record in facts.found.evidence)
    return f'<table class="steps"><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>\n'


def _row(record: Evidence, task: str, facts: Facts, say: Texts) -> str:
    state = state_of(record)
    ran = state != "skipped"
    label = f'<span class="badge {state}">{MARKS[state]} {words(say(f"state.{state}"))}</span>'
    cells = [
        f"<td>{_step(record, task, say)}</td>",
        f"<td>{label}{_why(record, say)}</td>",
        f"<td>{''.join(_criteria(record, say))}{_finding(record, facts, say)}</td>",
        _number(str(record.tool_calls) if ran else "", say("report.calls_head")),
        _number(f"{seconds_of(record):.1f}" if ran else "", say("report.seconds_head")),
    ]
    return f"<tr>{''.join(cells)}</tr>\n"


def _number(text: str, label: str) -> str:
    return f'<td class="number" data-label="{words(label)}">{words(text)}</td>'


def _step(record: Evidence, task: str, say: Texts) -> str:
    notes = [say("report.of_plan", version=record.plan_version)]
    if record.attempt > 1:
        notes.append(say("report.attempt", number=record.attempt))
    return (
        f'<div class="id">{words(record.step_id)}</div><div>{words(task, 500)}</div>'
        f'<div class="small">{words(" · ".join(notes))}</div>'
    )


def _why(record: Evidence, say: Texts) -> str:
    if record.skipped_because:
        return f'<div class="small">{words(say("report.skipped", step=record.skipped_because))}</div>'
    if record.reasoning:
        return f'<div class="small">{words(say("report.reasoning"))}</div>'
    if record.error_type is None:
        return ""
    rule = say(f"report.rule.{record.error_type}")
    return (
        f'<div class="why">{words(rule)} <code>{record.error_type}</code></div>'
        f'<div class="small">{words(record.detail, 500)}</div>'
    )


def _criteria(record: Evidence, say: Texts) -> Iterator[str]:
    if not record.criteria and not record.missing:
        return
    yield "<ul>"
    for item in record.criteria:
        kind, mark = ("met", "✓") if item.met else ("unmet", "✗")
        reason = f'<div class="small">{words(item.reason, 500)}</div>' if item.reason else ""
        yield (
            f'<li class="{kind}"><span class="mark">{mark} {words(say(f"report.{kind}"))}</span> '
            f"{words(item.criterion, 500)}{reason}</li>"
        )
    for missing in record.missing:
        yield f'<li class="small">{words(say("report.missing", what=missing), 500)}</li>'
    yield "</ul>"


def _finding(record: Evidence, facts: Facts, say: Texts) -> str:
    numbers = sorted({n for n in map(facts.number_of, record.source_ids) if n is not None})
    links = " ".join(f'<a class="cite" href="#source-{n}">[{n}]</a>' for n in numbers)
    cites = f'<div class="small">{words(say("report.cites"))} {links}</div>' if links else ""
    if not record.summary.strip():
        return cites
    return (
        f"<details><summary>{words(say('report.finding'))}</summary>"
        f'<div class="finding">{lines(record.summary)}</div></details>{cites}'
    )

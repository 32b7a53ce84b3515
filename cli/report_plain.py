"""A report as Markdown, and as JSON for programs."""

import html
import re
from typing import Any

from cli.printable import clean, json_line, one_line
from cli.report_facts import Facts, seconds_of, state_of, title_of
from cli.texts import Texts
from schemas.evidence import Evidence

_CODE = re.compile(
    r"(^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)|\Z)|`[^`\n]+`)", re.DOTALL | re.MULTILINE
)
_SPECIAL = re.compile(r"([\\`*_\[\]|!~#])")


def markdown(facts: Facts, say: Texts) -> str:
    """Return the report as Markdown; text from outside is escaped, the answer's own Markdown is kept."""
    found = facts.found
    reason = f" · {say(f'report.reason.{found.stop_reason}')}" if found.stop_reason else ""
    status = (
        f"{say(f'status.{facts.status}')}{reason} · {say('report.thread', thread=one_line(found.thread_id))}"
    )
    parts = [f"# {_cell(title_of(facts), 200)}", _cell(status, 2000)]
    parts += [f"## {say('report.answer')}", _answer(found.final_answer) or say("report.no_answer")]
    if found.evidence:
        heads = ("step", "state", "criteria", "calls_head", "seconds_head")
        table = [[say(f"report.{name}") for name in heads]]
        table += [_row(record, say) for record in found.evidence]
        parts += [f"## {say('report.evidence')}", _table(table)]
    parts += [f"## {say('report.budgets')}", _table(_budgets(facts, say))]
    if facts.plans:
        parts.append(f"## {say('report.versions')}")
        parts += [_table(_steps(facts, at, say)) for at in range(len(facts.plans))]
    return "\n\n".join(parts) + "\n"


def _answer(text: str) -> str:
    """Return the answer with raw HTML and pictures turned into text, but for what is code."""
    text = clean(text).strip()
    pieces: list[str] = []
    at = 0
    for match in _CODE.finditer(text):
        pieces += [_tame(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*pieces, _tame(text[at:])])


def _tame(text: str) -> str:
    return text.replace("<", "&lt;").replace("![", "!\\[")


def _cell(text: str, limit: int = 500) -> str:
    """Return text for a table cell or a line: nothing in it is Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", html.escape(one_line(text, limit), quote=False))


def _table(rows: list[list[str]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def _row(record: Evidence, say: Texts) -> list[str]:
    state = say(f"state.{state_of(record)}")
    if record.skipped_because:
        state += f" ({_cell(say('report.skipped', step=record.skipped_because))})"
    elif record.error_type:
        state += f" ({say(f'report.rule.{record.error_type}')}; {_cell(record.detail)})"
    criteria = [
        f"{'✓' if c.met else '✗'} {say('report.met' if c.met else 'report.unmet')}: {_cell(c.criterion)}"
        + (f" ({_cell(c.reason)})" if c.reason else "")
        for c in record.criteria
    ]
    return [
        _cell(record.step_id),
        state,
        "<br>".join(criteria),
        str(record.tool_calls),
        f"{seconds_of(record):.1f}",
    ]


def _budgets(facts: Facts, say: Texts) -> list[list[str]]:
    rows = [[say("report.budgets"), ""]]
    for budget in facts.budgets:
        text = (
            say("report.unbounded", used=f"{budget.used:,}")
            if budget.allowed is None
            else say("report.of", used=f"{budget.used:,}", allowed=f"{budget.allowed:,g}")
        )
        rows.append([say(f"report.budget.{budget.name}"), text])
    return rows


def _steps(facts: Facts, at: int, say: Texts) -> list[list[str]]:
    plan = facts.plans[at]
    name = say("report.version", version=plan.version)
    who = say("report.by", who=say(f"report.by.{plan.created_by}"), count=len(plan.steps))
    rows = [[name, _cell(f"{who} {plan.reason}".strip())]]
    for step in plan.steps:
        after = f" ({say('show.after', steps=', '.join(step.depends_on))})" if step.depends_on else ""
        rows.append([_cell(step.id), _cell(step.task + after, 800)])
    return rows


def as_json(facts: Facts) -> str:
    """Return the report as one JSON object on one line: the outcome, every plan version, citations and budgets."""
    found = facts.found
    budgets: dict[str, Any] = {b.name: {"used": b.used, "allowed": b.allowed} for b in facts.budgets}
    value = found.to_json() | {
        "status": facts.status,
        "as_of": facts.as_of,
        "plans": [plan.model_dump(mode="json") for plan in facts.plans],
        "gaps": [gap.model_dump(mode="json") for gap in facts.gaps],
        "citations": {str(n.number): n.source.id if n.source else None for n in facts.sources if n.cited},
        "budgets": budgets,
    }
    return json_line(value) + "\n"

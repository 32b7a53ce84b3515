"""A report as one HTML page: no script, nothing loaded from elsewhere, all text escaped."""

from collections.abc import Iterable, Sequence

from cli.report_evidence import evidence_table
from cli.report_facts import Budget, Facts, Numbered, title_of
from cli.report_graph import plan_graph
from cli.report_markup import answer_html, lines, place, words
from cli.report_style import STYLE
from cli.report_timeline import timeline
from cli.texts import Texts
from schemas.plan import Plan
from schemas.state import latest

# A second fence behind the escaping: the page may load nothing and run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_SECTIONS = ("answer", "gaps", "plan", "timeline", "evidence", "sources", "budgets", "versions")


def page(facts: Facts, say: Texts) -> str:
    """Return the whole page."""
    title = words(title_of(facts)) or words(say("report.title"))
    bodies = {
        "answer": _answer(facts, say),
        "gaps": _gaps(facts, say),
        "plan": _plan(facts, say),
        "timeline": _timeline(facts, say),
        "evidence": evidence_table(facts, say),
        "sources": _sources(facts.sources, say),
        "budgets": _budgets(facts, say),
        "versions": "".join(_version(facts, at, say) for at in range(len(facts.plans))),
    }
    sections = [
        f'<section id="{name}"><h2>{words(say(f"report.{name}"))}</h2>\n{bodies[name]}</section>\n'
        for name in _SECTIONS
    ]
    nav = " ".join(f'<a href="#{name}">{words(say(f"report.{name}"))}</a>' for name in _SECTIONS)
    return (
        f'<!DOCTYPE html>\n<html lang="{"zh-CN" if say.language == "zh" else "en"}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
        f"{_status(facts, say)}<nav>{nav}</nav>\n</header>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _status(facts: Facts, say: Texts) -> str:
    found = facts.found
    reason = f" {words(say(f'report.reason.{found.stop_reason}'))} ·" if found.stop_reason else ""
    when = facts.as_of[:16].replace("T", " ") + " UTC" if facts.as_of else "-"
    whole = found.objective.strip()
    more = ""
    if title_of(facts) != " ".join(whole.split()):
        more = (
            f"<details><summary>{words(say('report.whole'))}</summary>"
            f'<div class="finding">{lines(whole, 20_000)}</div></details>\n'
        )
    return (
        f'<p class="status"><span class="badge {words(facts.status)}">{words(say(f"status.{facts.status}"))}</span>'
        f"{reason} {words(say('report.as_of', time=when))} · {words(say('report.thread', thread=found.thread_id))}</p>\n"
        + more
    )


def _answer(facts: Facts, say: Texts) -> str:
    if not facts.answer:
        return f"<p>{words(say('report.no_answer'))}</p>"
    return answer_html(facts.answer, [source.number for source in facts.sources])


def _gaps(facts: Facts, say: Texts) -> str:
    if not facts.gaps:
        return f"<p>{words(say('report.no_gaps'))}</p>"
    return "<ul>" + "".join(f"<li>{words(gap.description)}</li>" for gap in facts.gaps) + "</ul>\n"


def _plan(facts: Facts, say: Texts) -> str:
    plan = facts.plans[-1] if facts.plans else None
    if plan is None:
        return f"<p>{words(say('report.no_plan'))}</p>"
    return plan_graph(plan, latest(facts.found.evidence), say)


def _timeline(facts: Facts, say: Texts) -> str:
    drawn = timeline(facts.plans, facts.found.evidence, say)
    note = "report.timeline_note" if drawn else "report.nothing_ran"
    return f'{drawn}<p class="small">{words(say(note))}</p>\n'


def _sources(sources: Sequence[Numbered], say: Texts) -> str:
    if not sources:
        return f"<p>{words(say('report.no_sources'))}</p>"
    cited = [source for source in sources if source.cited]
    others = [source for source in sources if not source.cited]
    body = _source_list(cited, say)
    if others:
        head = words(say("report.uncited", count=len(others)))
        body += f"<details><summary>{head}</summary>\n{_source_list(others, say)}</details>\n"
    return body


def _source_list(sources: Sequence[Numbered], say: Texts) -> str:
    return f'<ol class="sources">\n{"".join(_source(source, say) for source in sources)}</ol>\n'


def _source(item: Numbered, say: Texts) -> str:
    head = f'<li id="source-{item.number}"><span class="n">[{item.number}]</span>'
    source = item.source
    if source is None:
        return f"{head}{words(item.label)}</li>\n"
    title = f"<bdi>{words(source.title)}</bdi> " if source.title and source.title != source.locator else ""
    seen = say("report.seen_by", tool=source.tool, steps=", ".join(item.steps))
    excerpt = f'<div class="excerpt">{lines(source.excerpt)}</div>' if source.excerpt else ""
    return f'{head}{title}{place(source.locator)}<div class="small">{words(seen)}</div>{excerpt}</li>\n'


def _budgets(facts: Facts, say: Texts) -> str:
    items = "".join(_budget(budget, say) for budget in facts.budgets)
    rows = [
        (role, model, str(used.model_calls), f"{used.input_tokens:,}", f"{used.output_tokens:,}")
        for role, models in facts.found.usage.by_role.items()
        for model, used in models.items()
    ]
    table = ""
    if rows:
        names = ("role", "model", "model_calls", "tokens_in", "tokens_out")
        head = _row("th", [say(f"report.{name}") for name in names])
        body = "".join(_row("td", row) for row in rows)
        table = f'<div class="scroll"><table class="roles"><thead>{head}</thead><tbody>{body}</tbody></table></div>\n'
    return f'<ul class="budgets">{items}</ul>\n{table}'


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{words(cell)}</{tag}>" for cell in cells) + "</tr>"


def _budget(budget: Budget, say: Texts) -> str:
    name = words(say(f"report.budget.{budget.name}"))
    used = f"{budget.used:,}"
    if budget.allowed is None:
        return f"<li>{name}<b>{words(say('report.unbounded', used=used))}</b></li>"
    share = min(1.0, budget.used / budget.allowed) if budget.allowed else float(budget.used > 0)
    spent = ' class="spent"' if share >= 1 else ""
    return (
        f"<li>{name}<b>{words(say('report.of', used=used, allowed=f'{budget.allowed:,g}'))}</b>"
        f'<div class="bar"><i{spent} style="width:{share * 100:.1f}%"></i></div></li>'
    )


def _version(facts: Facts, at: int, say: Texts) -> str:
    plan = facts.plans[at]
    before = {step.id for version in facts.plans[:at] for step in version.steps}
    new = [step.id for step in plan.steps if step.id not in before]
    who = say("report.by", who=say(f"report.by.{plan.created_by}"), count=len(plan.steps))
    parts = [f"<h3>{words(say('report.version', version=plan.version))}</h3>\n<p>{words(who)}"]
    parts.append(f" · <code>{words(plan.fingerprint[:12])}</code></p>\n")
    if plan.reason:
        parts.append(f"<p>{words(plan.reason)}</p>\n")
    if at and new:
        parts.append(f"<p>{words(say('report.new_steps', steps=', '.join(new)))}</p>\n")
    if at + 1 < len(facts.plans):
        parts.append(_earlier(facts, plan, say))
    return "".join(parts)


def _earlier(facts: Facts, plan: Plan, say: Texts) -> str:
    """Return an earlier version's drawing, with what its steps came to while it was in force."""
    records = latest([record for record in facts.found.evidence if record.plan_version <= plan.version])
    return f"<details><summary>{words(say('report.plan'))}</summary>\n{plan_graph(plan, records, say)}</details>\n"

"""Who ran when: a bar for each attempt at a step, a thin line for the time it waited."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from cli.report_facts import seconds_of, state_of
from cli.report_graph import MARKS
from cli.report_markup import words
from cli.texts import Texts
from schemas.evidence import Evidence
from schemas.plan import Plan

_ROW, _BAR, _TOP = 36, 10, 22
_PAUSE_WIDTH = 0.08
_TICKS = 4


def timeline(plans: Sequence[Plan], evidence: Sequence[Evidence], say: Texts) -> str:
    """Return the SVG; positions are percentages, so that text keeps its size on a narrow page. "" if nothing ran."""
    ran = sorted((e for e in evidence if e.finished_at > e.started_at), key=lambda e: e.started_at)
    if not ran:
        return ""
    needs = {step.id: step.depends_on for plan in plans for step in plan.steps}
    begins = {id(e): _ready(e, ran, needs) for e in ran}
    spread, pauses = scale(ran)
    height = _TOP + len(ran) * _ROW + 4
    rows = [
        _row(e, begins[id(e)], spread, _TOP + row * _ROW, ran[0].started_at, say) for row, e in enumerate(ran)
    ]
    label = words(say("report.timeline_label", count=len(ran)))
    marks = [_pause(start, end, spread, height, say) for start, end in pauses]
    return (
        f'<svg class="timeline" width="100%" height="{height}" role="img" aria-label="{label}">'
        + _axis(ran, spread, height, bool(pauses), say)
        + "".join(marks + rows)
        + "</svg>"
    )


def _ready(record: Evidence, ran: Sequence[Evidence], needs: Mapping[str, Sequence[str]]) -> datetime:
    """Return since when nothing but a place, a review or a person kept the step from starting."""
    before = [
        e.finished_at
        for e in ran
        if e.finished_at <= record.started_at
        and (
            e.step_id in needs.get(record.step_id, ())
            or e.plan_version < record.plan_version
            or (e.step_id == record.step_id and e.attempt < record.attempt)
        )
    ]
    return max(before, default=min(ran[0].started_at, record.started_at))


def scale(ran: Sequence[Evidence]) -> tuple[Callable[[datetime], float], list[tuple[datetime, datetime]]]:
    """Return the function from a time to 0..1, and the long pauses that it shortens.

    A person may answer after a night: a pause longer than all the work takes a narrow strip.

    Args:
        ran: by their start.
    """
    spans: list[tuple[datetime, datetime]] = []
    for e in ran:
        if spans and e.started_at <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], e.finished_at))
        else:
            spans.append((e.started_at, e.finished_at))
    work = sum((end - start for start, end in spans), timedelta()).total_seconds()
    pauses = [
        (one[1], two[0]) for one, two in pairwise(spans) if (two[0] - one[1]).total_seconds() > max(work, 1.0)
    ]
    start, end = spans[0][0], spans[-1][1]
    lost = sum((b - a for a, b in pauses), timedelta()).total_seconds()
    strip = (
        min(_PAUSE_WIDTH, 0.5 / len(pauses)) * ((end - start).total_seconds() - lost) / 0.5 if pauses else 0.0
    )
    total = (end - start).total_seconds() - lost + strip * len(pauses)

    def at(time: datetime) -> float:
        seconds = (time - start).total_seconds()
        for a, b in pauses:
            if time >= b:
                seconds += strip - (b - a).total_seconds()
            elif time > a:
                seconds += (strip / (b - a).total_seconds() - 1) * (time - a).total_seconds()
        return min(1.0, max(0.0, seconds / total))

    return at, pauses


def _percent(share: float) -> str:
    return f"{share * 100:.2f}%"


def _row(
    record: Evidence,
    ready: datetime,
    spread: Callable[[datetime], float],
    top: int,
    zero: datetime,
    say: Texts,
) -> str:
    state = state_of(record)
    start, end, begin = spread(record.started_at), spread(record.finished_at), spread(ready)
    attempt = f" · {say('report.attempt', number=record.attempt)}" if record.attempt > 1 else ""
    took = say("report.seconds", seconds=f"{seconds_of(record):.1f}")
    waited = (record.started_at - ready).total_seconds()
    after = say("report.seconds", seconds=f"{(record.started_at - zero).total_seconds():.1f}")
    title = say("report.bar", step=record.step_id, start=after, waited=f"{waited:.1f}", took=took)
    middle = top + 24
    wait = (
        f'<line class="wait" x1="{_percent(begin)}" x2="{_percent(start)}" y1="{middle}" y2="{middle}"/>'
        if start - begin > 0.001
        else ""
    )
    width = max(0.004, end - start)
    shape = (
        f'x="{_percent(min(start, 1 - width))}" y="{middle - _BAR // 2}" '
        f'width="{_percent(width)}" height="{_BAR}"'
    )
    return (
        f'<g class="step {state}"><title>{words(title)}</title>'
        f'<text x="0" y="{top + 13}" class="name">{MARKS[state]} {words(record.step_id, 40)}'
        f'<tspan class="note">  {words(took + attempt)}</tspan></text>'
        f'{wait}<rect {shape} rx="{0 if state == "failed" else 3}"/></g>'
    )


def _axis(
    ran: Sequence[Evidence], spread: Callable[[datetime], float], height: int, broken: bool, say: Texts
) -> str:
    start, end = ran[0].started_at, max(e.finished_at for e in ran)
    parts: list[str] = []
    # Behind a shortened pause even ticks would lie: then only the beginning and the end are marked.
    for tick in (0, _TICKS) if broken else range(_TICKS + 1):
        time = start + (end - start) * (tick / _TICKS)
        x = _percent(spread(time))
        anchor = "start" if tick == 0 else "end" if tick == _TICKS else "middle"
        label = say("report.seconds", seconds=f"{(time - start).total_seconds():.1f}")
        parts.append(f'<line class="tick" x1="{x}" x2="{x}" y1="16" y2="{height}"/>')
        parts.append(f'<text class="note" x="{x}" y="11" text-anchor="{anchor}">{words(label)}</text>')
    return "".join(parts)


def _pause(
    start: datetime, end: datetime, spread: Callable[[datetime], float], height: int, say: Texts
) -> str:
    left, right = spread(start), spread(end)
    label = say("report.pause", seconds=f"{(end - start).total_seconds():.0f}")
    return (
        f'<g class="pause"><title>{words(label)}</title><rect x="{_percent(left)}" y="16" '
        f'width="{_percent(right - left)}" height="{height - 16}"/>'
        f'<text class="note" x="{_percent((left + right) / 2)}" y="11" text-anchor="middle">⋯</text></g>'
    )

"""A plan drawn as SVG, twice: waves side by side for wide pages, one step on a line for narrow ones."""

from collections.abc import Mapping
from dataclasses import dataclass

from cli.report_facts import seconds_of, state_of
from cli.report_markup import words
from cli.texts import Texts
from nodes.lint import waves
from schemas.evidence import Evidence
from schemas.plan import Plan

# A shape for each state, besides its colour and its word: for print, and for eyes that see no red or green.
MARKS = {"passed": "✓", "failed": "✗", "skipped": "–", "waiting": "…"}
_WIDTH = 980
_MAX_COLUMNS = 5
_BOX_HEIGHT, _ROW = 44, 58
_LINE, _LANE, _DOT = 42, 22, 6


@dataclass(frozen=True)
class _Node:
    step_id: str
    needs: list[str]
    state: str
    note: str
    title: str


def plan_graph(plan: Plan, records: Mapping[str, Evidence], say: Texts) -> str:
    """Return both drawings; style sheets show the one that fits. Steps with no record in `records` wait."""
    layers = waves(plan)
    nodes = {step.id: _node(plan, step.id, records.get(step.id), say) for step in plan.steps}
    label = words(say("report.graph_label", count=len(nodes), waves=len(layers)))
    rail = _rail(layers, nodes, f"r{plan.version}", label)
    if len(layers) > _MAX_COLUMNS:
        return f'<div class="graph only">{rail}</div>'
    wide = _columns(layers, nodes, f"w{plan.version}", label)
    return f'<div class="graph wide">{wide}</div><div class="graph narrow">{rail}</div>'


def _node(plan: Plan, step_id: str, record: Evidence | None, say: Texts) -> _Node:
    step = plan.step(step_id)
    state = state_of(record)
    note = say(f"state.{state}")
    if record is not None and state != "skipped":
        note += " · " + say("report.seconds", seconds=f"{seconds_of(record):.1f}")
        note += " · " + say("report.calls", count=record.tool_calls)
    return _Node(step_id, step.depends_on, state, note, f"{step_id}: {step.task}")


def _arrow(name: str) -> str:
    return (
        f'<defs><marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" class="head"/></marker></defs>'
    )


def _cut(text: str, room: float) -> str:
    """Cut text to what fits into `room` pixels at 13 px; a CJK character is twice as wide as a Latin one."""
    width = 0.0
    for at, char in enumerate(text):
        width += 13.0 if ord(char) > 0x2E80 else 7.4
        if width > room:
            return text[: max(1, at - 1)] + "…"
    return text


def _columns(layers: list[list[str]], nodes: Mapping[str, _Node], name: str, label: str) -> str:
    columns = len(layers)
    gap = 70
    box = min(230, (_WIDTH - gap * (columns - 1) - 4) // columns)
    height = max(map(len, layers)) * _ROW
    place: dict[str, tuple[float, float]] = {}
    for column, layer in enumerate(layers):
        top = (height - len(layer) * _ROW) / 2 + (_ROW - _BOX_HEIGHT) / 2
        for row, step_id in enumerate(layer):
            place[step_id] = (2 + column * (box + gap), top + row * _ROW)
    edges = [
        _edge(place[need], place[node.step_id], box, name)
        for node in nodes.values()
        for need in node.needs
        if need in place
    ]
    boxes = [_box(node, *place[node.step_id], box) for node in nodes.values()]
    width = columns * (box + gap) - gap + 4
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" aria-label="{label}">'
        + _arrow(name)
        + "".join(edges + boxes)
        + "</svg>"
    )


def _edge(start: tuple[float, float], end: tuple[float, float], box: float, name: str) -> str:
    x1, y1 = start[0] + box, start[1] + _BOX_HEIGHT / 2
    x2, y2 = end[0] - 1, end[1] + _BOX_HEIGHT / 2
    # Bent within the last gap, so that an edge over several waves runs straight between the boxes.
    bend = 34
    path = f"M{x1:.0f} {y1:.0f}L{x2 - 2 * bend:.0f} {y1:.0f}" if x2 - x1 > 2 * bend + 4 else ""
    head = path or f"M{x1:.0f} {y1:.0f}"
    return (
        f'<path class="edge" d="{head}C{x2 - bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}" '
        f'marker-end="url(#{name})"/>'
    )


def _box(node: _Node, x: float, y: float, width: float) -> str:
    radius = {"passed": 9, "failed": 0}.get(node.state, 3)
    mark = MARKS[node.state]
    return (
        f'<g class="step {node.state}"><title>{words(node.title, 400)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_BOX_HEIGHT}" rx="{radius}"/>'
        f'<text x="{x + 10:.0f}" y="{y + 18:.0f}" class="name">{words(_cut(node.step_id, width - 20))}</text>'
        f'<text x="{x + 10:.0f}" y="{y + 35:.0f}" class="note">{mark} {words(_cut(node.note, width - 34))}</text></g>'
    )


def _rail(layers: list[list[str]], nodes: Mapping[str, _Node], name: str, label: str) -> str:
    """Draw one step on a line, its dot set in by its wave; the lines of its dependencies come from above."""
    lane = min(_LANE, 150 // max(1, len(layers)))
    order = [step_id for layer in layers for step_id in layer]
    place = {
        step_id: (12 + wave * lane, order.index(step_id) * _LINE + _LINE / 2)
        for wave, layer in enumerate(layers)
        for step_id in layer
    }
    edges: list[str] = []
    for node in nodes.values():
        x2, y2 = place[node.step_id]
        for x1, y1 in (place[need] for need in node.needs if need in place):
            edges.append(
                f'<path class="edge" d="M{x1 + _DOT} {y1:.0f}H{x2 - 5}Q{x2} {y1:.0f} {x2} {y1 + 5:.0f}'
                f'V{y2 - _DOT - 2:.0f}" marker-end="url(#{name})"/>'
            )
    left = 12 + len(layers) * lane
    rows = [_rail_row(nodes[step_id], *place[step_id], left) for step_id in order]
    return (
        f'<svg width="100%" height="{len(order) * _LINE}" role="img" aria-label="{label}">'
        + _arrow(name)
        + "".join(edges + rows)
        + "</svg>"
    )


def _rail_row(node: _Node, x: float, y: float, left: float) -> str:
    dot = {
        "passed": f'<circle cx="{x}" cy="{y:.0f}" r="{_DOT}"/>',
        "failed": f'<path class="dot" d="M{x - _DOT} {y - _DOT}h12v12h-12z"/>',
    }.get(node.state, f'<path class="dot" d="M{x} {y - 7}l7 7l-7 7l-7 -7z"/>')
    return (
        f'<g class="step {node.state}"><title>{words(node.title, 400)}</title>{dot}'
        f'<text x="{left}" y="{y - 3:.0f}" class="name">{words(_cut(node.step_id, 290 - left))}</text>'
        f'<text x="{left}" y="{y + 13:.0f}" class="note">{MARKS[node.state]} {words(node.note)}</text></g>'
    )

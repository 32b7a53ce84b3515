"""What the program has: the tools, and the graph."""

from rich.text import Text
from rich.tree import Tree

from cli.desk import Desk
from cli.exit_codes import ExitCode
from cli.kit import Kit
from cli.printable import clean
from cli.screen import Screen
from cli.texts import Texts
from graph.builder import build_graph


async def tools(desk: Desk, kit: Kit, *, as_json: bool) -> ExitCode:
    """List the tools that steps may use."""
    screen, say = desk.screen, desk.screen.say
    async with desk.open(kit) as graph:
        registry = graph.registry
        specs = [registry.spec(name) for name in registry.names()]
    if as_json:
        keys = ("name", "permission", "idempotent", "timeout_seconds", "description")
        screen.json([{key: getattr(spec, key) for key in keys} for spec in specs])
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

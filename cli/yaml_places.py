"""Where in a YAML text a problem stands that was found in its value."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import yaml

_PATH = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*): ")
_LINE = re.compile(r"line (\d+), column")
_QUOTED = re.compile(r"'([^']*)'")
# Which field of a step a problem of the whole plan is about.
_FIELDS = (
    ("depends on", "depends_on"),
    ("in a circle", "depends_on"),
    ("unknown tools", "tools"),
    ("replaces", "replaces"),
)


@dataclass(frozen=True)
class Place:
    """A line, counted from 0, and how far its first word stands in."""

    line: int = 0
    indent: int = 0


def place_of(text: str, problem: str) -> Place:
    """Return the place of what a problem names: a field path, a line, or a step's id; else the top.

    Args:
        text: YAML, as the person wrote it.
        problem: as `schemas.plan.parse_draft` or YAML itself words it.
    """
    if named := _LINE.match(problem):
        return _indented(text, int(named[1]) - 1)
    try:
        root = cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return Place()
    if root is None:
        return Place()
    if named := _PATH.match(problem):
        return _indented(text, _followed(root, named[1].split(".")))
    steps = dict(_steps(root))
    step = next((steps[name] for name in _QUOTED.findall(problem) if name in steps), None)
    if step is None:
        return Place()
    field = next((field for words, field in _FIELDS if words in problem), "id")
    return _indented(text, _followed(step, [field]))


def _indented(text: str, line: int) -> Place:
    lines = text.splitlines()
    found = lines[line] if line < len(lines) else ""
    return Place(line, len(found) - len(found.lstrip(" ")))


def _followed(node: yaml.Node, path: list[str]) -> int:
    """Return the line of the deepest part of a path that is there."""
    line = node.start_mark.line
    for name in path:
        if isinstance(node, yaml.MappingNode):
            pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
            found = next(((key, value) for key, value in pairs if key.value == name), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and name.isdigit():
            items = cast("list[yaml.Node]", node.value)
            if int(name) >= len(items):
                break
            node = items[int(name)]
            line = node.start_mark.line
        else:
            break
    return line


def _steps(root: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the steps of a plan by id, wherever in the text it stands."""
    if not isinstance(root, yaml.MappingNode):
        return
    for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", root.value):
        if key.value == "plan":
            yield from _steps(value)
        if key.value == "steps" and isinstance(value, yaml.SequenceNode):
            for step in cast("list[yaml.Node]", value.value):
                name = _id(step)
                if name is not None:
                    yield name, step


def _id(step: yaml.Node) -> str | None:
    if not isinstance(step, yaml.MappingNode):
        return None
    pairs = cast("list[tuple[yaml.Node, yaml.Node]]", step.value)
    name: Any = next((value.value for key, value in pairs if key.value == "id"), None)
    return name if isinstance(name, str) else None

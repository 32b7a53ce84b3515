"""The one list of tools: what prompts show, what plans are checked against, and what a worker may run."""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from langchain_core.tools import BaseTool

from schemas.context import Autonomy
from schemas.errors import ToolDefinitionError
from tools.results import clean_text

Permission = Literal["read", "write", "execute", "network"]
RESERVED_NAMES = frozenset({"Finding"})
"""Names a tool may not have: the structured answer of a worker comes as a call of this name."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DESCRIPTION_CHARS = 300


@dataclass(frozen=True)
class ToolSpec:
    """A tool and the rules for running it.

    Attributes:
        permission: only "read" runs without approval.
        idempotent: whether a failed call may be repeated.
        timeout_seconds: wall-clock seconds for one call; None = the step's own.
    """

    tool: BaseTool
    name: str
    description: str
    permission: Permission = "read"
    idempotent: bool = False
    timeout_seconds: float | None = None


class ToolRegistry:
    """Every tool of a run, checked once, in the order given.

    Raises:
        ToolDefinitionError: two tools of one name, an unusable name, or wrong metadata; every fault is named.
    """

    def __init__(self, tools: Sequence[BaseTool]) -> None:
        problems: list[str] = []
        self._specs: dict[str, ToolSpec] = {}
        for tool in tools:
            faults = _faults(tool)
            first = self._specs.get(tool.name) if not faults else None
            if first is not None:
                faults = [
                    f"{tool.name!r} is the name of two tools: {_origin(first.tool)} and {_origin(tool)}"
                ]
            problems += faults
            if not faults:
                self._specs[tool.name] = _spec(tool)
        if problems:
            raise ToolDefinitionError("; ".join(problems))

    def names(self, autonomy: Autonomy = "ask") -> list[str]:
        """Return the names of the tools that a run may use: with autonomy "read" only those that read."""
        specs = self._specs.values()
        return [spec.name for spec in specs if autonomy != "read" or spec.permission == "read"]

    def spec(self, name: str) -> ToolSpec:
        """Return the tool of that name and its rules.

        Raises:
            KeyError: no tool has it.
        """
        return self._specs[name]

    def unasked(self, autonomy: Autonomy = "ask") -> list[str]:
        """Return the names of the tools that may run without approval: those that read; with "all", every one."""
        specs = self._specs.values()
        return [spec.name for spec in specs if autonomy == "all" or spec.permission == "read"]

    def for_step(self, tools: list[str] | None, autonomy: Autonomy = "ask") -> list[BaseTool]:
        """Return a step's tools, in the registry's order, so that equal steps get equal prompts.

        Args:
            tools: Step.tools: None = every tool that runs unasked, [] = none.
            autonomy: of the run; with "read", tools that change something are left out even where a step names them.

        Raises:
            KeyError: a name that no tool has; plans are checked before.
        """
        wanted = {self.spec(name).name for name in (self.unasked(autonomy) if tools is None else tools)}
        return [self._specs[name].tool for name in self.names(autonomy) if name in wanted]

    def describe(self, autonomy: Autonomy = "ask") -> list[dict[str, str]]:
        """Return name, description (its first paragraph, at most 300 characters) and permission of each tool."""
        specs = [self._specs[name] for name in self.names(autonomy)]
        return [
            {"name": spec.name, "description": spec.description, "permission": spec.permission}
            for spec in specs
        ]

    def catalogue(self) -> dict[str, Any]:
        """Return what the planner is told about the material, merged over the tools that know some.

        Shape: {"documents": {"groups": [{"name", "documents": [{"path", "title", "headings"}]}], "left_out": int},
        "tables": [{"name", "path", "rows", "columns": [{"name", "type", "distinct"}]}]}.
        """
        merged: dict[str, Any] = {"documents": {"groups": [], "left_out": 0}, "tables": []}
        for spec in self._specs.values():
            merged = _merge(merged, _metadata(spec.tool).get("catalogue") or {})
        return merged


def _metadata(tool: BaseTool) -> dict[str, Any]:
    return tool.metadata or {}


def _spec(tool: BaseTool) -> ToolSpec:
    metadata = _metadata(tool)
    return ToolSpec(
        tool=tool,
        name=tool.name,
        description=_first_paragraph(tool.description),
        permission=metadata.get("permission", "read"),
        idempotent=metadata.get("idempotent", False),
        timeout_seconds=metadata.get("timeout_seconds"),
    )


def _first_paragraph(text: str) -> str:
    paragraph = " ".join(re.split(r"\n\s*\n", clean_text(text).strip(), maxsplit=1)[0].split())
    return paragraph if len(paragraph) <= _DESCRIPTION_CHARS else paragraph[: _DESCRIPTION_CHARS - 1] + "…"


def _faults(tool: BaseTool) -> list[str]:
    """Return what is wrong with a tool, each line naming it."""
    if not isinstance(tool, BaseTool):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        return [f"{_origin(tool)} is not a LangChain tool: decorate it with langchain_core.tools.tool"]
    faults: list[str] = []
    if not _NAME.fullmatch(tool.name):
        faults.append(
            f"the name {tool.name!r} ({_origin(tool)}) is not 1 to 64 of the characters A-Z a-z 0-9 _ -"
        )
    elif tool.name in RESERVED_NAMES:
        faults.append(f"the name {tool.name!r} ({_origin(tool)}) is reserved for the worker's answer")
    wrong = (key for key, fits in _METADATA_RULES.items() if not fits(_metadata(tool).get(key)))
    return faults + [
        f"tool {tool.name!r} ({_origin(tool)}): metadata {key!r} is {_metadata(tool)[key]!r}; it must be "
        f"{_METADATA_WORDS[key]}"
        for key in wrong
    ]


def _is_seconds(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    )


_METADATA_RULES: dict[str, Callable[[Any], bool]] = {
    "permission": lambda value: value is None or (isinstance(value, str) and value in get_args(Permission)),
    "idempotent": lambda value: value is None or isinstance(value, bool),
    "timeout_seconds": lambda value: value is None or _is_seconds(value),
    "catalogue": lambda value: value is None or isinstance(value, dict),
}
_METADATA_WORDS = {
    "permission": "one of " + ", ".join(get_args(Permission)),
    "idempotent": "True or False",
    "timeout_seconds": "a number of seconds above 0",
    "catalogue": "a dict",
}


def _origin(tool: Any) -> str:
    """Return module.qualname of the function or class behind a tool, never a file path."""
    made_by = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or tool
    if not (inspect.isroutine(made_by) or inspect.isclass(made_by)):
        made_by = cast("type[Any]", type(made_by))
    return f"{made_by.__module__}.{made_by.__qualname__}"


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two catalogues: lists are joined, counts added, mappings merged; anything else is replaced."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", value))
        elif isinstance(before, list) and isinstance(value, list):
            merged[key] = [*cast("list[Any]", before), *cast("list[Any]", value)]
        elif key == "left_out" and isinstance(before, int) and isinstance(value, int):
            merged[key] = before + value
        else:
            merged[key] = value
    return merged

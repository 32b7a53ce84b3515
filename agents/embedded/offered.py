"""The tools that are bound to the embedded model: what they are called, say of themselves, and take."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

MAX_CHOICES = 50


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool.

    Attributes:
        name: as the tool calls it.
        kind: JSON type; "" if the schema does not say.
        required: whether a call must give it.
        choices: the values it takes; empty = any.
        pattern: of its values; "" = any.
    """

    name: str
    kind: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    pattern: str = ""


@dataclass(frozen=True)
class Offered:
    """A bound tool. `unasked`: it only reads, so that nobody has to approve the call."""

    name: str
    description: str = ""
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    unasked: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return [p.name for p in self.parameters]

    @property
    def said(self) -> str:
        """The tool's name as words, and its description."""
        return f"{re.sub(r'[_./-]+', ' ', self.name)} {self.description}"


def offered_tools(bound: Sequence[Mapping[str, Any]], unasked: Collection[str]) -> dict[str, Offered]:
    """Read tools in OpenAI's format.

    Args:
        bound: the tools.
        unasked: names of those that are known to only read.
    """
    found: dict[str, Offered] = {}
    for tool in bound:
        function = _mapping(tool.get("function")) or dict(tool)
        schema = _mapping(function.get("parameters"))
        required = {str(name) for name in _list(schema.get("required"))}
        name = str(function.get("name"))
        parameters = [
            _parameter(key, _mapping(value), key in required)
            for key, value in _mapping(schema.get("properties")).items()
        ]
        found[name] = Offered(name, str(function.get("description") or ""), parameters, name in unasked)
    return found


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> Parameter:
    options = [schema, *map(_mapping, _list(schema.get("anyOf")))]  # optional parameters are "string or null"
    kind = next((str(o["type"]) for o in options if o.get("type") not in (None, "null")), "")
    choices = [str(c) for o in options for c in _list(o.get("enum")) if isinstance(c, str)]
    choices = choices or _choices_in(str(schema.get("description") or ""))
    pattern = next((str(o["pattern"]) for o in options if o.get("pattern")), "")
    return Parameter(name, kind, required, tuple(choices[:MAX_CHOICES]), pattern)


def _choices_in(description: str) -> list[str]:
    """Return the values that a description lists: "one of: day, week or month"."""
    match = re.search(
        r"(?i)(?:\bone of|\beither|可选值|取值|之一)\s*[:：]?\s*([^.;。；]{1,300})", description
    )
    parts = re.split(r"\s*(?:,|，|、|\||/|\bor\b|或)\s*", match[1]) if match else []
    values = [part.strip(" '\"`“”") for part in parts]
    return [v for v in values if v] if len(values) > 1 and all(len(v.split()) <= 2 for v in values) else []


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []

"""A JSON schema as servers take it: without references, and without what only costs tokens or time.

Measured with llama.cpp: `#/$defs/...` inside a tool's parameters is refused by some servers (they move the schema elsewhere), and
a maxLength of 8,000 makes constrained sampling twenty times slower; 1,000 costs nothing that can be measured. What is
left out here is still checked by pydantic when the answer comes.
"""

from collections.abc import Mapping
from typing import Any, cast

MAX_LENGTH = 1_000
_DROPPED = frozenset({"title", "discriminator", "$defs"})
_NAMED = frozenset({"properties", "patternProperties"})


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with references resolved, and without titles, long bounds and patterns that grammars refuse.

    A reference to what is being resolved already becomes a schema that takes anything.
    """
    return _leaned(schema, cast("Mapping[str, Any]", schema.get("$defs", {})), ())


def _leaned(schema: Any, known: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_leaned(item, known, inside) for item in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    node = cast("Mapping[str, Any]", schema)
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name:
        rest = {key: value for key, value in node.items() if key != "$ref"}
        resolved: dict[str, Any] = dict(known.get(name, {})) if name not in inside else {}
        return _leaned({**resolved, **rest}, known, (*inside, name))
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NAMED:
            found[key] = {k: _leaned(v, known, inside) for k, v in cast("Mapping[str, Any]", value).items()}
        elif not _costs_only(key, value):
            # Examples and defaults are values, not schemas.
            found[key] = (
                value if key in ("default", "enum", "const", "examples") else _leaned(value, known, inside)
            )
    return found


def _costs_only(key: str, value: Any) -> bool:
    if key == "pattern":
        return not (str(value).startswith("^") and str(value).endswith("$"))
    if key == "maxLength":
        return value > MAX_LENGTH
    return key in _DROPPED

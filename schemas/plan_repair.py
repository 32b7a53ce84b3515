"""Small faults of a model's plan whose meaning is plain: repaired before the model is asked again.

Only references are touched, and only where exactly one step or tool can be meant. What stands in the plan otherwise
(ids, budgets, circles, steps that depend on themselves) is for the model or a person to change.
"""

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, cast

from schemas.errors import PlanInvalid
from schemas.plan import raw_steps

T = TypeVar("T")
NOTHING = frozenset({"", "none", "null", "nil", "na"})


def parsed_with_repairs(
    raw: Any, parse: Callable[[Any], T], *, tools: Collection[str], known: Collection[str] = ()
) -> T:
    """Return `parse(raw)`; where that is no valid plan, but the repaired one is, `parse` of that.

    Raises:
        PlanInvalid: with every violation of the plan as it was given.
    """
    try:
        return parse(raw)
    except PlanInvalid as error:
        repaired = with_repaired_references(raw, tools=tools, known=known)
        if repaired == raw:
            raise
        try:
            return parse(repaired)
        except PlanInvalid:
            raise error from None


def with_repaired_references(raw: Any, *, tools: Collection[str], known: Collection[str] = ()) -> Any:
    """Return a plan whose references name what they mean.

    Args:
        raw: what a model answered.
        tools: names that a step may list.
        known: ids of earlier steps that may be depended on or replaced.
    """
    if not isinstance(raw, Mapping):
        return raw
    plan = cast("Mapping[str, Any]", raw)
    steps = raw_steps(plan)
    listed = plan.get("steps")
    if not isinstance(listed, list) or len(steps) != len(cast("list[Any]", listed)):
        return plan
    ids = [str(step["id"]) for step in steps if isinstance(step.get("id"), str)]
    tasks = {str(step["id"]): str(step.get("task")) for step in steps if isinstance(step.get("id"), str)}
    names = _Names([*ids, *known], tasks)
    repaired = [_repaired(step, names, _Names(tools)) for step in steps]
    return {**plan, "steps": repaired}


def _repaired(step: Mapping[str, Any], ids: "_Names", tools: "_Names") -> dict[str, Any]:
    found = dict(step)
    if "depends_on" in found:
        found["depends_on"] = ids.all_meant(found["depends_on"])
    if "tools" in found and found["tools"] is not None:
        found["tools"] = tools.all_meant(found["tools"])
    if isinstance(found.get("replaces"), str):
        found["replaces"] = None if ids.is_nothing(found["replaces"]) else ids.meant(found["replaces"])
    return found


class _Names:
    """Names that can be meant; `texts` are other words for them, by name."""

    def __init__(
        self, names: Sequence[str] | Collection[str], texts: Mapping[str, str] | None = None
    ) -> None:
        self._names = frozenset(names)
        self._texts = texts or {}

    def all_meant(self, value: Any) -> Any:
        """Return a list of names as they are meant: without words for nothing, null as none, a text as a list of one."""
        if value is None:
            return []
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list):
            return value
        items = [item for item in cast("list[Any]", value) if not self.is_nothing(item)]
        return list(dict.fromkeys(map(self.meant, items))) if all(map(_hashable, items)) else items

    def is_nothing(self, value: Any) -> bool:
        """Return whether a value says that there is no name."""
        return isinstance(value, str) and value not in self._names and _plain(value) in NOTHING

    def meant(self, value: Any) -> Any:
        """Return the one name that a value can mean; the value itself where that is none, or more than one."""
        if isinstance(value, str) and value in self._names:
            return value
        if isinstance(value, str):
            key = _plain(value)
            found = [name for name in self._names if _plain(name) == key]
            found = found or [name for name, text in self._texts.items() if key and _plain(text) == key]
        elif isinstance(value, int) and not isinstance(value, bool):
            found = [name for name in self._names if _number_in(name) == value]
        else:
            return value
        return found[0] if len(found) == 1 else value


def _plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _number_in(name: str) -> int | None:
    digits = "".join(c if c.isascii() and c.isdigit() else " " for c in name).split()
    return int(digits[0]) if len(digits) == 1 else None


def _hashable(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)

"""The form in which a model is asked for a plan: fewer fields and narrower bounds than a plan may have.

A form is read with every request, and a field that is offered gets filled: small models put ids of the same plan into
`replaces`, and checks that no evidence can meet. What is not offered here is still accepted, from a model that knows
better and from a person. Bounded lists and texts keep a model that a grammar holds from writing without end.
"""

from collections.abc import Sequence
from typing import Any

FORM_CRITERIA, FORM_NEEDS, FORM_TOOLS = 3, 20, 8
# To find and to read. A step that lists tools and may run none is left to invent what it was to look up.
FORM_BUDGET = 2
# More names than these cost more than they help: they are in the brief already.
MOST_LISTED = 12


def plan_form(*, tools: Sequence[str] = (), max_steps: int = 20, repair: bool = False) -> dict[str, Any]:
    """Return the JSON schema of a plan as it is asked for.

    Args:
        tools: names that steps may list.
        max_steps: that the plan may have.
        repair: whether steps may stand in for earlier ones.
    """
    names = _texts(FORM_TOOLS, 64) | {"description": "[] = none"}
    if 0 < len(tools) <= MOST_LISTED:
        names["items"] = {"type": "string", "enum": list(tools)}
    fields: dict[str, Any] = {
        "id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"},
        "task": _text(500),
        "success_criteria": _texts(FORM_CRITERIA, 300) | {"minItems": 1},
        "depends_on": _texts(FORM_NEEDS, 64) | {"description": "Ids of other steps"},
        "tools": names,
        "tool_budget": {"type": "integer", "minimum": FORM_BUDGET, "maximum": 10},
    }
    if repair:
        fields["replaces"] = {"type": "string", "maxLength": 64}
    step = {
        "type": "object",
        "properties": fields,
        "required": ["id", "task", "success_criteria", "depends_on", "tools"],
        "additionalProperties": False,
    }
    return {
        "description": "A plan for the objective.",
        "type": "object",
        "properties": {
            "goal": _text(300),
            "assumptions": _texts(5, 300),
            "questions": _texts(5, 300),
            "steps": {"type": "array", "items": step, "maxItems": max_steps},
        },
        "required": ["steps"],
        "additionalProperties": False,
    }


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _texts(items: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "maxLength": most}, "maxItems": items}

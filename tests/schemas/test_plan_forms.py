"""The form of a plan is a part of what a plan may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.lean_schema import lean
from schemas.plan import PlanDraft, Step
from schemas.plan_forms import plan_form


def largest(schema: dict[str, Any]) -> Any:
    """Return an instance that fills every field of a form to its bounds."""
    if schema["type"] == "object":
        return {name: largest(value) for name, value in schema["properties"].items()}
    if schema["type"] == "array":
        return [largest(schema["items"])] * min(2, schema["maxItems"])
    return {"string": "x" * schema.get("maxLength", 64), "integer": schema.get("maximum", 1)}[schema["type"]]


@pytest.mark.parametrize("repair", [False, True])
def test_what_fits_the_form_is_read(repair: bool) -> None:
    draft = PlanDraft.model_validate(largest(plan_form(repair=repair)))
    assert len(draft.steps) == 2
    assert len(draft.steps[0].task) == 500


@pytest.mark.parametrize("repair", [False, True])
def test_only_fields_of_plans_are_asked_for(repair: bool) -> None:
    form = plan_form(repair=repair)
    step = form["properties"]["steps"]["items"]
    assert set(form["properties"]) <= set(PlanDraft.model_fields)
    assert set(step["properties"]) <= set(Step.model_fields)
    assert ("replaces" in step["properties"]) == repair


def test_steps_are_bounded_by_the_runs_limit() -> None:
    assert plan_form(max_steps=3)["properties"]["steps"]["maxItems"] == 3


def test_the_form_costs_less_than_half_of_the_whole_schema() -> None:
    whole = json.dumps(lean(PlanDraft.model_json_schema()))
    assert len(json.dumps(lean(plan_form()))) < len(whole) / 2


def test_the_runs_tools_are_listed_where_they_are_few() -> None:
    def listed(count: int) -> list[str] | None:
        form = plan_form(tools=[f"tool{n}" for n in range(count)])
        return form["properties"]["steps"]["items"]["properties"]["tools"]["items"].get("enum")

    assert listed(2) == ["tool0", "tool1"]
    assert listed(13) is None
    assert listed(0) is None

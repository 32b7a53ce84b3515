"""Small faults in a plan's references are repaired; what could mean two things is not."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.errors import PlanInvalid
from schemas.plan import PlanDraft, parse_draft
from schemas.plan_repair import parsed_with_repairs

TOOLS = ["search_documents", "read_document"]


def raw(step_id: str, *needs: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": step_id,
        "task": f"Find {step_id}",
        "success_criteria": ["known"],
        "depends_on": list(needs),
        **fields,
    }


def parsed(*steps: dict[str, Any], **options: Any) -> PlanDraft:
    known = options.get("known", ())
    return parsed_with_repairs(
        {"steps": list(steps)},
        lambda given: parse_draft(given, tools=TOOLS, **options),
        tools=TOOLS,
        known=known,
    )


@pytest.mark.parametrize("word", ["none", "None", "", " ", "null", "N/A", "nil", "-"])
def test_words_for_nothing_replace_and_need_nothing(word: str) -> None:
    step = parsed(raw("a"), raw("b", word, replaces=word), replaceable=["old"]).steps[1]
    assert (step.replaces, step.depends_on) == (None, [])


def test_a_step_called_none_is_a_step() -> None:
    assert parsed(raw("none"), raw("b", "none")).steps[1].depends_on == ["none"]


@pytest.mark.parametrize("need", [1, "Step 1", "STEP-1", "step_1", "find step-1", "Find  step-1."], ids=repr)
def test_a_dependency_by_number_other_spelling_or_task_is_the_steps_id(need: Any) -> None:
    assert parsed(raw("step-1"), raw("step-2", need)).steps[1].depends_on == ["step-1"]


def test_a_dependency_named_twice_counts_once() -> None:
    assert parsed(raw("s1"), raw("s2", "s1", "S1", 1)).steps[1].depends_on == ["s1"]


def test_dependencies_that_are_no_list() -> None:
    steps = parsed(raw("a") | {"depends_on": None}, raw("b") | {"depends_on": "a"}).steps
    assert [s.depends_on for s in steps] == [[], ["a"]]


@pytest.mark.parametrize(
    ("tools", "meant"),
    [
        (["Search_Documents"], ["search_documents"]),
        (["search documents", "readDocument"], ["search_documents", "read_document"]),
        ("search_documents", ["search_documents"]),
        (["none"], []),
        (None, None),
    ],
)
def test_tools_in_another_spelling(tools: Any, meant: Any) -> None:
    # Repairs are made only where something is wrong.
    assert parsed(raw("a", "none", tools=tools)).steps[0].tools == meant


def test_a_passed_step_of_an_earlier_version_can_be_meant() -> None:
    assert parsed(raw("b", "Old-1"), known=["old-1"]).steps[0].depends_on == ["old-1"]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([raw("a", "ghost")], ["'ghost'"]),
        ([raw("a", "b"), raw("b", "a")], ["circle", "'a'", "'b'"]),
        ([raw("a", "a")], ["depends on itself"]),
        ([raw("x-1"), raw("y-1"), raw("b", 1)], ["depends_on.0"]),
        ([raw("a"), raw("A"), raw("b", "none")], ["not unique", "'none'"]),
        ([raw("a", tools=["ghost"]), raw("b", "none")], ["'ghost'", "'none'"]),
        ([raw("a"), raw("b", replaces="a")], ["replaces 'a'"]),
        ([raw("a") | {"id": 1}], ["steps.0.id"]),
    ],
)
def test_what_is_not_plain_is_reported_with_everything_else(
    steps: list[dict[str, Any]], words: list[str]
) -> None:
    with pytest.raises(PlanInvalid) as caught:
        parsed(*steps)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("value", [None, "x", {"steps": None}, {"steps": ["x"]}, {"steps": [{"id": 1}]}])
def test_what_is_no_plan_stays_none(value: Any) -> None:
    with pytest.raises(PlanInvalid):
        parsed_with_repairs(value, lambda given: parse_draft(given, tools=TOOLS), tools=TOOLS)

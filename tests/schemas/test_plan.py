"""Plans: every rule, every violation at once, and a fingerprint that is always computed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.errors import PlanInvalid
from schemas.plan import Plan, Step, fingerprint, parse_draft


def raw(step_id: str, *needs: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": step_id,
        "task": f"do {step_id}",
        "success_criteria": ["ok"],
        "depends_on": list(needs),
        **fields,
    }


def problems(*steps: Any, **options: Any) -> list[str]:
    with pytest.raises(PlanInvalid) as caught:
        parse_draft({"steps": list(steps)}, **{"tools": ["look"], **options})
    return caught.value.problems


def test_every_violation_is_reported_at_once() -> None:
    found = " | ".join(
        problems(
            raw("a", "b", tool_budget=50),
            raw("b", "a", tools=["ghost_tool"]),
            raw("c", "c"),
            raw("d", "nobody"),
            raw("D"),
            raw("old"),
            taken=["old"],
            max_steps=5,
        )
    )
    for words in (
        "tool_budget",
        "'ghost_tool'",
        "'c' depends on itself",
        "'nobody'",
        "'d', 'D'",
        "circle",
        "'old'",
        "at most 5",
    ):
        assert words in found


@pytest.mark.parametrize(
    "value",
    [None, [], "text", 3, {}, {"steps": {}}, {"steps": [None, 3, "x", []]}, {"steps": [{"id": None}]}],
)
def test_what_is_no_plan_at_all_is_refused_in_words(value: Any) -> None:
    with pytest.raises(PlanInvalid) as caught:
        parse_draft(value, tools=[])
    assert caught.value.problems


def test_steps_may_depend_on_passed_ids_of_earlier_versions() -> None:
    assert parse_draft({"steps": [raw("n", "old")]}, tools=[], known=["old"], taken=["old"]).steps[
        0
    ].depends_on == ["old"]


def test_questions_may_stand_in_for_steps_but_nothing_may_not() -> None:
    assert parse_draft({"steps": [], "questions": ["Which year?"]}, tools=[]).questions
    assert "neither steps nor questions" in problems()[0]


@pytest.mark.parametrize(
    "fields", [{"version": 2}, {"fingerprint": "x"}, {"created_by": "human"}, {"parent_version": 1}]
)
def test_a_model_cannot_set_what_the_program_sets(fields: dict[str, Any]) -> None:
    with pytest.raises(PlanInvalid):
        parse_draft({"steps": [raw("a")], **fields}, tools=[])


def test_the_fingerprint_is_computed_and_never_taken_over() -> None:
    plan = Plan(steps=[Step(**raw("a"))], fingerprint="forged")
    assert plan.fingerprint == fingerprint(plan.steps)
    assert len(plan.fingerprint) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"task": "do A"}, {"success_criteria": ["ok", "more"]}, {"tools": []}, {"tools": ["look"]}, {"tool_budget": 5},
        {"timeout_seconds": 91.0}, {"optional": True}, {"depends_on": ["b"]}, {"id": "a2"}, {"replaces": "z"},
        {"checks": [{"type": "min_sources", "count": 1}]},
    ],
)  # fmt: skip
def test_any_change_of_a_step_changes_the_fingerprint(change: dict[str, Any]) -> None:
    before = Plan(steps=[Step(**raw("a")), Step(**raw("b"))])
    after = Plan(steps=[Step(**{**raw("a"), **change}), Step(**raw("b"))])
    assert before.fingerprint != after.fingerprint


def test_the_order_of_steps_is_part_of_what_is_approved_and_the_goal_is_not() -> None:
    a, b = Step(**raw("a")), Step(**raw("b"))
    assert Plan(steps=[a, b]).fingerprint != Plan(steps=[b, a]).fingerprint
    assert Plan(steps=[a], goal="x").fingerprint == Plan(steps=[a], goal="y").fingerprint


def test_a_plan_survives_its_own_json() -> None:
    plan = Plan(steps=[Step(**raw("a", tools=["look"])), Step(**raw("b", "a"))], goal="查找")
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_plan_object_refuses_a_circle_too() -> None:
    with pytest.raises(ValidationError, match="circle"):
        Plan(steps=[Step(**raw("a", "b")), Step(**raw("b", "a"))])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "task", "steps", "tools", "depends_on", "goal", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_no_json_breaks_the_parser(value: Any) -> None:
    try:
        draft = parse_draft({"steps": value} if not isinstance(value, dict) else value, tools=["look"])
    except PlanInvalid as error:
        found = error.problems
    else:
        assert draft.steps or draft.questions
        return
    assert found
    assert all("\n" not in line for line in found)


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.lists(st.sampled_from("abcdeX"), max_size=3)), max_size=6)
)
def test_what_is_accepted_is_a_graph_without_circles_and_ghosts(edges: list[tuple[str, list[str]]]) -> None:
    try:
        draft = parse_draft({"steps": [raw(i, *needs) for i, needs in edges]}, tools=[])
    except PlanInvalid:
        return
    done: set[str] = set()
    for _ in draft.steps:
        done |= {s.id for s in draft.steps if set(s.depends_on) <= done}
    assert done == {s.id for s in draft.steps}
    assert len(done) == len(edges)

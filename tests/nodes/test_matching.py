"""A plan held against steps that have begun: ids are never used twice, and equal work is not done twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodes.matching import begun_version, fitted, is_own, same_work
from schemas.ids import MAX_ID_CHARS, free_id
from schemas.plan import Plan, PlanDraft, Step
from tests.scripted import step


def made(step_id: str, *needs: str, **fields: object) -> Step:
    return Step.model_validate(step(step_id, *needs, **fields))


def draft(*steps: Step) -> PlanDraft:
    return PlanDraft(steps=list(steps))


def shape(found: PlanDraft) -> list[tuple[str, list[str]]]:
    return [(s.id, s.depends_on) for s in found.steps]


def test_a_plan_of_the_same_steps_stays_as_it_is() -> None:
    plan = draft(made("a"), made("b", "a"))
    assert fitted(plan, {"a": made("a"), "b": made("b", "a")}) == plan


def test_whether_a_step_may_fail_is_no_part_of_its_work() -> None:
    assert same_work(made("a", optional=True), made("a"))
    assert not same_work(made("a", task="other"), made("a"))
    assert not same_work(made("a", tool_budget=3), made("a"))


def test_a_step_of_other_work_gets_a_new_id_and_those_behind_it_follow() -> None:
    ran = {"a": made("a"), "b": made("b", "a"), "d": made("d")}
    plan = draft(made("a", task="other"), made("b", "a"), made("c", "b"), made("d"))
    assert shape(fitted(plan, ran)) == [("a.2", []), ("b.2", ["a.2"]), ("c", ["b.2"]), ("d", [])]


def test_ids_that_differ_only_in_case_are_one_id() -> None:
    assert shape(fitted(draft(made("A")), {"a": made("a")})) == [("A.2", [])]


def test_a_new_id_is_free_and_short_enough() -> None:
    ran = {"a": made("a"), "a.2": made("a.2")}
    assert shape(fitted(draft(made("a", task="x"), made("a.3")), ran)) == [("a.4", []), ("a.3", [])]
    assert len(free_id("x" * 64, {("x" * 60 + ".2").casefold()})) <= MAX_ID_CHARS


IDS = ["a", "A", "b", "c", "a.2"]


@given(
    st.lists(st.sampled_from(IDS), unique_by=str.casefold, max_size=4),
    st.lists(st.sampled_from(IDS), unique_by=str.casefold, min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_whatever_ran_the_fitted_plan_is_valid_and_uses_no_id_for_other_work(
    ran_ids: list[str], ids: list[str], changed: list[bool]
) -> None:
    ran = {i: made(i, *ran_ids[:n]) for n, i in enumerate(ran_ids)}
    steps = [
        made(i, *ids[:n], **({"task": "other"} if new else {}))
        for n, (i, new) in enumerate(zip(ids, changed, strict=False))
    ]
    found = Plan(steps=fitted(draft(*steps), ran).steps)
    taken = {i.casefold() for i in ran}
    assert all(is_own(s, ran) or s.id.casefold() not in taken for s in found.steps)
    assert [s.task for s in found.steps] == [s.task for s in steps]


def test_the_version_of_dropped_steps_has_what_they_depend_on_and_leaves_no_gap() -> None:
    begun = {"a": made("a"), "b": made("b", "a"), "c": made("c")}
    found = begun_version(begun, {"a", "c"}, [], "goal")
    assert [(s.id, s.optional) for s in found.steps] == [("a", False), ("b", True)]
    assert (found.version, found.parent_version) == (1, None)

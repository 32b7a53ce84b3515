"""The pass rule: a table of cases, and what holds for any finding whatever."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.pass_rule import Support, Verdict, judge, match_criteria
from agents.passages import SourceText
from schemas.evidence import CriterionResult, Finding
from schemas.plan import Step


def a_step(*criteria: str, **fields: Any) -> Step:
    return Step(id="a", task="find it", success_criteria=list(criteria or ("known",)), **fields)


def says(text: str, met: bool = True) -> CriterionResult:
    return CriterionResult(criterion=text, met=met)


def a_finding(*sources: str, criteria: list[CriterionResult] | None = None) -> Finding:
    return Finding(
        summary="found", source_ids=list(sources), criteria=[says("known")] if criteria is None else criteria
    )


FOUND = Support(
    own=["s1", "s2"], carried=["d1"], successful_calls=1, texts=[SourceText("T", "t.md", "found")]
)
NOTHING = Support(own=[], carried=[], successful_calls=0)
LOOKED = Support(own=[], carried=[], successful_calls=1)
CARRIED = Support(own=[], carried=["d1", "d2"], successful_calls=0)

TABLE: list[tuple[str, Step, Finding, Support, str | None, list[str]]] = [
    ("cites what its tools returned", a_step(), a_finding("s1"), FOUND, None, ["s1"]),
    ("cites what a dependency carries", a_step(), a_finding("d1"), FOUND, None, ["d1"]),
    ("cites an unknown id beside a known one", a_step(), a_finding("x", "s1"), FOUND, None, ["s1"]),
    ("cites only what is unknown", a_step(), a_finding("x"), FOUND, "unsupported_claim", []),
    ("cites nothing of what was returned", a_step(), a_finding(), FOUND, "unsupported_claim", []),
    ("claims without a call", a_step(), a_finding("s1"), NOTHING, "unsupported_claim", []),
    ("looked, and there is none", a_step(), a_finding(), LOOKED, None, []),
    ("looked, found nothing, cites something", a_step(), a_finding("x"), LOOKED, "unsupported_claim", []),
    ("did not look", a_step(), a_finding(), NOTHING, "unsupported_claim", []),
    ("says itself that it failed", a_step(), a_finding("s1", criteria=[says("known", False)]), FOUND, "criteria_unmet", ["s1"]),
    ("gives no verdict", a_step(), a_finding("s1", criteria=[]), FOUND, "criteria_unmet", ["s1"]),
    ("contradicts itself", a_step(), a_finding("s1", criteria=[says("known"), says("known", False)]), FOUND, "criteria_unmet", ["s1"]),
    ("contradicts itself the other way", a_step(), a_finding("s1", criteria=[says("known", False), says("known")]), FOUND, "criteria_unmet", ["s1"]),
    ("reasons over its dependencies", a_step(tools=[]), a_finding(), CARRIED, None, ["d1", "d2"]),
    ("reasons over some of them", a_step(tools=[]), a_finding("d2"), CARRIED, None, ["d2"]),
    ("reasons and invents", a_step(tools=[]), a_finding("x"), CARRIED, None, ["d1", "d2"]),
    ("reasons over nothing", a_step(tools=[]), a_finding("x"), NOTHING, None, []),
    ("has no budget", a_step(tool_budget=0), a_finding(), NOTHING, None, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "step", "finding", "support", "error_type", "cited"),
    TABLE,
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_pass_rule(
    name: str, step: Step, finding: Finding, support: Support, error_type: str | None, cited: list[str]
) -> None:
    verdict = judge(step, finding, support)
    assert (verdict.error_type, verdict.source_ids) == (error_type, cited)
    assert verdict.passed is (error_type is None)
    assert verdict.detail or error_type is None


def test_reasoning_is_marked_only_where_nothing_stands_behind_it() -> None:
    assert judge(a_step(tools=[]), a_finding(), NOTHING).reasoning
    assert not judge(a_step(tools=[]), a_finding(), CARRIED).reasoning
    assert not judge(a_step(), a_finding("s1"), FOUND).reasoning


@pytest.mark.parametrize(
    ("own", "given_texts", "met"),
    [
        (["Price is known", "Date is known"], ["date is KNOWN.", "price is known"], [True, True]),
        (["价格已知", "日期已知"], ["日期已知。", "价格已知"], [True, True]),
        (["ｆｕｌｌ", "b"], ["full", "B"], [True, True]),
        (["one", "two"], ["1", "2"], [True, True]),  # by order
        (["one", "two"], ["two"], [False, True]),
        (["one", "two", "three"], ["two", "other"], [True, True, False]),
    ],
)
def test_verdicts_are_matched_by_text_else_by_order(
    own: list[str], given_texts: list[str], met: list[bool]
) -> None:
    results = match_criteria(own, [says(text) for text in given_texts])
    assert [r.met for r in results] == met
    assert [r.criterion for r in results] == own


ids = st.sampled_from(["s1", "s2", "d1", "x", "", "S1", "s1 "])
texts = st.sampled_from(["known", "dated", "priced", "KNOWN", "other", ""])
verdicts = st.lists(st.builds(CriterionResult, criterion=texts, met=st.booleans()), max_size=6)
findings = st.builds(
    Finding,
    summary=st.sampled_from(["found", "没有", "99"]),
    source_ids=st.lists(ids, max_size=6),
    criteria=verdicts,
    missing=st.lists(st.text(max_size=5), max_size=2),
)
steps = st.builds(
    a_step,
    st.just("known"),
    st.sampled_from(["dated", "known", "priced"]),
    tools=st.sampled_from([None, [], ["look"]]),
    tool_budget=st.integers(0, 3),
)
supports = st.builds(
    Support,
    own=st.lists(st.sampled_from(["s1", "s2"]), unique=True),
    carried=st.lists(st.sampled_from(["d1", "d2"]), unique=True),
    successful_calls=st.integers(0, 2),
    texts=st.just([SourceText("T", "t.md", "found 99")]),
)


def supported(step: Step, verdict: Verdict, support: Support) -> bool:
    without_tools = step.tools == [] or step.tool_budget == 0
    return bool(verdict.source_ids) or without_tools or (support.successful_calls > 0 and not support.own)


@given(steps, findings, supports)
def test_passed_implies_every_rule(step: Step, finding: Finding, support: Support) -> None:
    verdict = judge(step, finding, support)
    if verdict.passed:
        assert all(c.met for c in verdict.criteria)
        assert supported(step, verdict, support)
        assert verdict.error_type is None
    else:
        assert verdict.error_type is not None
        assert verdict.detail
    assert [c.criterion for c in verdict.criteria] == step.success_criteria


@given(steps, findings, supports)
def test_unknown_ids_never_survive_and_are_all_named(step: Step, finding: Finding, support: Support) -> None:
    verdict = judge(step, finding, support)
    known = {*support.own, *support.carried}
    assert set(verdict.source_ids) <= known
    assert len(set(verdict.source_ids)) == len(verdict.source_ids)
    assert set(verdict.dropped) == set(finding.source_ids) - known


@given(steps, findings, supports, st.data())
def test_dropping_a_verdict_never_makes_a_step_pass(
    step: Step, finding: Finding, support: Support, data: Any
) -> None:
    met_before = [c.met for c in match_criteria(step.success_criteria, finding.criteria)]
    fewer = data.draw(st.integers(0, len(finding.criteria)))
    kept = finding.criteria[:fewer]
    less = judge(step, finding.model_copy(update={"criteria": kept}), support)
    contradicted = any(not c.met for c in finding.criteria[fewer:])
    if not judge(step, finding, support).passed and not contradicted:
        assert not less.passed
    assert sum(c.met for c in less.criteria) <= sum(met_before) or contradicted


@given(steps, findings, supports)
def test_one_unmet_verdict_more_never_makes_a_step_pass(
    step: Step, finding: Finding, support: Support
) -> None:
    if judge(step, finding, support).passed:
        return
    for criterion in step.success_criteria:
        more = finding.model_copy(update={"criteria": [*finding.criteria, says(criterion, met=False)]})
        assert not judge(step, more, support).passed


@given(steps, findings, supports)
def test_a_claim_of_success_alone_never_passes_a_step_with_tools(
    step: Step, finding: Finding, support: Support
) -> None:
    if step.tools == [] or step.tool_budget == 0:
        return
    alone = Support(own=[], carried=[], successful_calls=0)
    assert not judge(step, finding, alone).passed


TWO = [
    SourceText("Acme", "acme.md", "Acme costs 40 EUR a seat.", "acme"),
    SourceText("Bolt", "bolt.md", "Bolt costs 30 EUR a seat.", "bolt"),
]


@pytest.mark.parametrize(
    ("summary", "cited"),
    [
        ("Acme costs 40 EUR a seat. Bolt costs 30 EUR a seat.", ["acme", "bolt"]),
        ("Acme costs 40 EUR a seat.", ["acme"]),
        ("Acme costs 40 EUR a seat. Bolt costs 31 EUR a seat.", ["acme"]),
    ],
)
def test_a_source_that_the_worker_forgot_is_cited_where_it_bears_the_finding_out(
    summary: str, cited: list[str]
) -> None:
    support = Support(own=["acme", "bolt"], carried=[], successful_calls=1, texts=TWO)
    verdict = judge(a_step(), finding_of(summary, ["acme"]), support)
    assert (verdict.passed, verdict.source_ids) == (True, cited)


def test_a_finding_that_cites_nothing_it_has_does_not_pass_however_true_it_is() -> None:
    support = Support(own=["acme", "bolt"], carried=[], successful_calls=1, texts=TWO)
    verdict = judge(a_step(), finding_of("Acme costs 40 EUR a seat.", ["invented"]), support)
    assert (verdict.passed, verdict.source_ids) == (False, [])


def finding_of(summary: str, ids: list[str]) -> Finding:
    return Finding(summary=summary, source_ids=ids, criteria=[says("known")])

"""The embedded reviewer, replanner and writer."""

from typing import Any

from schemas.evidence import Review
from schemas.plan import PlanDraft, parse_draft
from tests.agents.asking import PRICE_OF, SOURCE, SUMMARY, TOOLS, ask, schema_tool, work


def judged(step_id: str, *, passed: bool, **more: Any) -> dict[str, Any]:
    return {"id": step_id, "task": "t", "success_criteria": ["c"], "passed": passed, **more}


def review(*steps: dict[str, Any]) -> Review:
    answer = ask(
        {"role": "reviewer", "objective": "o", "steps": steps}, tools=[schema_tool("Review", Review)]
    )
    return Review.model_validate(answer.tool_calls[0]["args"])


def test_the_review_follows_the_evidence() -> None:
    assert review(judged("a", passed=True)).approved
    assert not review(judged("a", passed=True, reasoning=True)).approved
    assert not review().approved
    unmet = [
        {"criterion": "x: price", "met": False, "reason": "none"},
        {"criterion": "y", "met": True, "reason": ""},
    ]
    first = review(
        judged("a", passed=True), judged("b", passed=False, criteria=unmet, error_type="criteria_unmet")
    )
    assert [(g.description, g.step_id, g.recoverable) for g in first.gaps] == [("x: price (none)", "b", True)]
    assert (
        not review(judged("b-2", passed=False, criteria=unmet, error_type="criteria_unmet"))
        .gaps[0]
        .recoverable
    )
    assert not review(judged("b", passed=False, detail="no key", error_type="auth")).gaps[0].recoverable


def test_the_replan_tries_other_words_and_lets_the_comparison_go_on() -> None:
    tried = [
        {
            "step_id": "borek-pricing",
            "task": "t",
            "error_type": "criteria_unmet",
            "criteria": [{"criterion": PRICE_OF.format("borek"), "met": False, "reason": ""}],
            "queries": ["borek pricing"],
        },
        {"step_id": "compare", "task": "t", "success_criteria": ["c"], "error_type": "dependency_failed"},
    ]
    gaps = [{"description": "d", "step_id": i, "recoverable": True} for i in ("borek-pricing", "compare")]
    request = {
        "role": "replanner",
        "objective": "compare prices",
        "passed": [{"step_id": "alda-pricing"}],
        "gaps": gaps,
        "tried": tried,
        "taken_ids": ["alda-pricing", "borek-pricing", "compare", "borek-pricing-2"],
        "tools": TOOLS,
        "limits": {"max_steps": 10, "tool_budget": 9},
    }
    args = ask(request, tools=[schema_tool("Plan", PlanDraft)]).tool_calls[0]["args"]
    draft = parse_draft(
        args, tools=[t["name"] for t in TOOLS], known=["alda-pricing"], taken=request["taken_ids"]
    )
    retry, compare = draft.steps
    assert (retry.id, retry.replaces) == ("borek-pricing-3", "borek-pricing")
    calls, _ = work(retry.success_criteria, task=retry.task, budget=retry.tool_budget)
    assert "borek pricing" not in [c["args"]["query"] for message in calls for c in message]
    assert (compare.id, compare.replaces, compare.depends_on) == ("compare-2", "compare", ["alda-pricing"])


def test_a_step_that_failed_twice_is_given_up() -> None:
    tried = [
        {"step_id": "borek-pricing-2", "task": "t", "success_criteria": ["c"], "error_type": "criteria_unmet"}
    ]
    gaps = [{"description": "d", "step_id": "borek-pricing-2", "recoverable": True}]
    request = {"role": "replanner", "objective": "o", "tried": tried, "gaps": gaps, "tools": TOOLS}
    answer = ask(request, tools=[schema_tool("Plan", PlanDraft)])
    assert PlanDraft.model_validate(answer.tool_calls[0]["args"]).steps == []


def write(language: str, **more: Any) -> str:
    return ask({"role": "writer", "objective": "o", "language": language, **more}).text


def test_the_answer_cites_each_quote_and_says_what_is_missing() -> None:
    findings = [
        {"step_id": "a", "summary": SUMMARY, "cite": [7]},
        {"step_id": "b", "summary": "It follows.\n# Not a heading [9]", "reasoning": True, "cite": []},
    ]
    text = write("en", findings=findings, sources=[{**SOURCE, "n": 7}], gaps=["borek: pricing (searched: x)"])
    assert "“The Team plan costs $19 per seat.” [7]" in text
    assert "Reasoning, no source" in text
    assert "[9]" not in text
    assert "Not known: borek: pricing." in text
    chinese = write("zh", findings=findings[1:], gaps=["乙：定价"])
    assert "推断" in chinese
    assert "仍不清楚：乙：定价。" in chinese
    assert "没有任何步骤" in write("zh", findings=[])

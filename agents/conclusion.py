"""From a worker's finding, or from what it left, to the step's evidence."""

from collections.abc import Mapping

from agents.embedded.text import is_chinese
from agents.ledger import StepLedger
from agents.middleware.budget import limit_error, refused_calls
from agents.pass_rule import Support, judge
from schemas.evidence import CriterionResult, Evidence, Finding, Source
from schemas.plan import Step


def unconcluded(base: Evidence, step: Step, ledger: StepLedger) -> Evidence:
    """Return the evidence of a step without a finding: what its tools returned until it was stopped."""
    unmet = [
        CriterionResult(criterion=c, met=False, reason="the step did not conclude")
        for c in step.success_criteria
    ]
    return base.model_copy(
        update={
            "summary": gathered(ledger.sources),
            "source_ids": list(ledger.sources),
            "criteria": unmet,
            "missing": [*step.success_criteria, *refused_calls(ledger)],
            "error_type": base.error_type or "schema",
        }
    )


def concluded(
    base: Evidence,
    step: Step,
    finding: Finding,
    ledger: StepLedger,
    support: Support,
) -> Evidence:
    """Return the evidence of a finding, judged by the pass rule.

    A limit that cut the work is named even where the step passes: what it refused is in `missing`.

    Args:
        base: who, when, and what was spent.
        step: what was asked.
        finding: what the worker answered.
        ledger: what its tools returned.
        support: what stands behind it.
    """
    verdict = judge(step, finding, support)
    limit = limit_error(ledger)
    refused = refused_calls(ledger)
    error_type, detail = verdict.error_type, verdict.detail
    failure = ledger.failure
    if failure is not None and not verdict.passed:
        error_type = failure.error_type or "tool"
        detail = f"{failure.tool} failed: {failure.content[:400]}. {detail}"
    return base.model_copy(
        update={
            # Nothing was returned, so nothing else can be stated.
            "summary": none_found(step) if verdict.none_found else finding.summary,
            "source_ids": verdict.source_ids,
            "criteria": verdict.criteria,
            "passed": verdict.passed,
            "reasoning": verdict.reasoning,
            "missing": [*verdict.missing, *(step.success_criteria if verdict.none_found else ()), *refused],
            "error_type": limit if limit and (refused or not verdict.passed) else error_type,
            "detail": detail,
        }
    )


def none_found(step: Step) -> str:
    """Return what a step establishes whose tools looked and returned nothing."""
    asked = "; ".join(step.success_criteria)
    return f"没有任何工具返回：{asked}" if is_chinese(asked) else f"No tool returned anything for: {asked}"


def gathered(sources: Mapping[str, Source]) -> str:
    """Return one line for each source that a step had got when it was stopped."""
    return "\n".join(
        f"[{s.id}] {s.title} ({s.locator}): {s.excerpt[:200]}" for s in list(sources.values())[:20]
    )

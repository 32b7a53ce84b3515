"""approve: show the plan to a person, and run exactly what they say yes to. Calls no model."""

from collections.abc import Mapping
from typing import Any, cast

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from nodes.lint import forecast
from nodes.parts import Node, Parts, emitter
from nodes.plan import allowed_replans, lint_of, plan_ready
from nodes.readiness import tool_budget_left
from nodes.verdict import all_steps
from schemas.context import RunContext
from schemas.errors import InvariantBroken, PlanInvalid
from schemas.plan import Plan, parse_draft
from schemas.state import TaskState, latest
from tools.results import clean_text

HOW = 'answer {"decision": "approve"}, {"decision": "edit", "plan": {...}}, {"decision": "revise", "feedback": "..."} or {"decision": "cancel"}'


def make_approve(parts: Parts) -> Node:
    """Return the node. It pauses until one of the four decisions comes; anything else asks again, with the reason."""

    async def approve(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        plan = state["plan"]
        if plan is None:
            raise InvariantBroken("approve was reached without a plan")
        error: str | None = None
        while True:
            answer = interrupt(question(plan, state, parts, error))
            update = decide(answer, plan, state, parts)
            if isinstance(update, dict):
                if update.get("approved") and isinstance(update.get("plan"), Plan):
                    emitter(runtime.stream_writer)(
                        plan_ready(update["plan"], lint_of(update["plan"], state, parts))
                    )
                return update
            error = update

    return approve


def question(plan: Plan, state: TaskState, parts: Parts, error: str | None) -> dict[str, Any]:
    """Return the interrupt's value: the plan, its fingerprint, what it comes to, and why the last answer was not taken."""
    left = tool_budget_left(state["limits"], state["usage"])
    cost = forecast(plan, state["limits"], state["evidence"], left)
    return {
        "kind": "approve",
        "plan": plan.model_dump(mode="json"),
        "fingerprint": plan.fingerprint,
        "summary": {
            "steps": len(plan.steps),
            "waves": len(cost.waves),
            "first": cost.waves[0],
            "critical_path": cost.critical_path,
            "critical_seconds": cost.critical_seconds,
            "worst_case_tool_calls": cost.tool_calls,
            "worst_case_model_calls": cost.model_calls,
        },
        "lint": lint_of(plan, state, parts),
        "error": error,
        "how": HOW,
    }


def decide(answer: Any, plan: Plan, state: TaskState, parts: Parts) -> dict[str, Any] | str:
    """Return the state update of a decision, or why it is none."""
    data = cast("dict[str, Any]", answer if isinstance(answer, dict) else {})
    match data.get("decision"):
        case "approve" if data.get("fingerprint", plan.fingerprint) == plan.fingerprint:
            return {"approved": plan.fingerprint}
        case "approve":
            return "the fingerprint is not that of the plan shown"
        case "edit":
            return edited(data.get("plan"), plan, state, parts)
        case "revise" if isinstance(data.get("feedback"), str) and data["feedback"].strip():
            # A repaired plan that is not wanted gives way to the version that has run: the gaps are planned again.
            ran = next(
                (p for p in state["plans"] if state["evidence"] and p.version == plan.parent_version), plan
            )
            return {
                "feedback": [*state["feedback"], clean_text(data["feedback"])[:2000]],
                "approved": None,
                "plan": ran,
            }
        case "cancel":
            return {"stop_reason": "plan_rejected", "approved": None}
        case _:
            return HOW


def edited(raw: Any, plan: Plan, state: TaskState, parts: Parts) -> dict[str, Any] | str:
    """Return the update for a person's own plan, checked by the same rules as a model's, or what is wrong with it."""
    sealed = ("version", "parent_version", "created_by", "reason", "fingerprint")
    if isinstance(raw, Mapping):
        raw = {key: value for key, value in cast("Mapping[str, Any]", raw).items() if key not in sealed}
    current = {step.id for step in plan.steps}
    known = set(all_steps(state["plans"]))
    retired = known - current
    max_steps = state["limits"].max_plan_steps
    try:
        draft = parse_draft(
            raw,
            tools=parts.registry.names(state["choices"].autonomy),
            max_steps=max_steps,
            taken=retired,
            replaceable=known,
        )
    except PlanInvalid as error:
        return str(error)
    if not draft.steps:
        return "the plan has no steps"
    changed = changed_passed_steps(draft.steps, plan, state)
    if changed:
        return f"steps that have passed cannot be changed: {', '.join(map(repr, changed))}"
    new = Plan(
        **draft.model_dump(),
        version=len(state["plans"]) + 1,
        parent_version=plan.version,
        created_by="human",
        reason="edited by a person",
    )
    update = {"plan": new, "plans": [*state["plans"], new], "approved": new.fingerprint}
    return update if state["evidence"] else update | {"max_replans": allowed_replans(new, state)}


def changed_passed_steps(steps: Any, plan: Plan, state: TaskState) -> list[str]:
    """Return the ids of steps that have passed and that an edit would change."""
    passed = {i for i, e in latest(state["evidence"]).items() if e.passed}
    old = {step.id: step for step in plan.steps}
    return [step.id for step in steps if step.id in passed and step != old.get(step.id)]

"""plan: take up the objective, start clean, and write a valid Plan."""

from collections.abc import Callable
from typing import Any, cast

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from nodes.briefs import planner_brief, request
from nodes.parts import Node, Parts, emitter
from nodes.readiness import seconds_left
from nodes.roles import ask_role, plan_schema
from nodes.verdict import choose_max_replans
from schemas.context import RunContext
from schemas.errors import PlanInvalid
from schemas.events import PlanReady, RunStarted
from schemas.evidence import Review, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan, PlanDraft, Step, parse_draft
from schemas.state import TaskState


def make_plan(parts: Parts) -> Node:
    """Return the node. It resets the state for a new objective; after a person's remark it keeps what was spent."""

    async def plan(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        emit = emitter(runtime.stream_writer)
        update: dict[str, Any] = {}
        if state["run_id"] != state.get("planned_run_id"):
            update = fresh_state(state, runtime.context or RunContext())
            emit(RunStarted(objective=state["objective"]))
        now = cast("TaskState", {**state, **{k: plain(v) for k, v in update.items()}})
        if now["choices"].mode == "react":
            return update | accepted(now, single_step(now), "shortcut", emit)
        limits = now["limits"]
        schema = plan_schema(
            lambda raw: runnable_draft(raw, tools=parts.registry.names(), max_steps=limits.max_plan_steps)
        )
        messages = request("planner", planner_brief(now, parts.registry), limits.max_request_chars)
        left = seconds_left(limits, now["evidence"], now["usage"])
        answer = await ask_role(parts, parts.models.planner, schema, messages, left)
        usage = answer.usage
        if isinstance(update.get("usage"), Overwrite):
            usage = Overwrite(usage)
        if answer.value is None:
            review = Review(approved=False, gaps=[])
            failed = {"stop_reason": answer.stop_reason, "review": review, "problem": answer.detail}
            return update | failed | {"usage": usage, "plan": None}
        return update | accepted(now, answer.value, "planner", emit) | {"usage": usage}

    return plan


def plain(value: Any) -> Any:
    """Return what a state key will hold after an update with this value."""
    return value.value if isinstance(value, Overwrite) else value


def fresh_state(state: TaskState, context: RunContext) -> dict[str, Any]:
    """Return the update that clears what an earlier run of this thread has left."""
    return {
        "planned_run_id": state["run_id"],
        "choices": context,
        "limits": context.limits,
        "plan": None,
        "plans": [],
        "approved": None,
        "evidence": Overwrite([]),
        "sources": Overwrite([]),
        "usage": Overwrite(Usage()),
        "review": None,
        "replan_count": 0,
        "max_replans": 0,
        "feedback": [],
        "problem": "",
        "status": "running",
        "stop_reason": None,
        "final_answer": "",
    }


def runnable_draft(raw: Any, *, tools: list[str], max_steps: int) -> PlanDraft:
    """Validate a first plan; it must have steps."""
    draft = parse_draft(raw, tools=tools, max_steps=max_steps)
    if not draft.steps:
        raise PlanInvalid(["steps: at least one is needed"])
    return draft


def single_step(state: TaskState) -> PlanDraft:
    """Return the plan of mode react: one worker, no planner; same limits, evidence and checkpoints."""
    objective = state["objective"]
    limits: RunLimits = state["limits"]
    step = Step(
        id="answer",
        task=objective[:2000],
        success_criteria=["The objective is answered with sources"],
        tool_budget=min(10, limits.total_tool_budget),
        timeout_seconds=min(600.0, max(10.0, limits.deadline_seconds)),
    )
    return PlanDraft(goal=objective[:2000], steps=[step])


def accepted(
    state: TaskState, draft: PlanDraft, created_by: Any, emit: Callable[[Any], None]
) -> dict[str, Any]:
    """Return the update for a valid draft: the next version, and the replans it may have."""
    plans = state["plans"]
    plan = Plan(
        **draft.model_dump(exclude={"goal"}),
        goal=draft.goal or state["objective"][:2000],
        version=len(plans) + 1,
        parent_version=plans[-1].version if plans else None,
        created_by=created_by,
        reason=state["feedback"][-1] if state["feedback"] else "",
    )
    emit(plan_ready(plan))
    limits = state["limits"]
    derived = choose_max_replans(len(plan.steps), limits.total_tool_budget - state["usage"].tool_calls)
    return {
        "plan": plan,
        "plans": [*plans, plan],
        "max_replans": derived if limits.max_replans is None else limits.max_replans,
    }


def plan_ready(plan: Plan) -> PlanReady:
    """Return the event that tells of a new version."""
    return PlanReady(
        version=plan.version,
        created_by=plan.created_by,
        fingerprint=plan.fingerprint,
        reason=plan.reason,
        plan=plan.model_dump(mode="json"),
    )

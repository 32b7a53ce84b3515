"""replan: plan only the gaps. What passed is kept and never runs again; ids are never used twice."""

from collections.abc import Sequence
from typing import Any, cast

from langgraph.runtime import Runtime
from pydantic import ValidationError

from nodes.briefs import replanner_brief, request
from nodes.parts import Node, Parts, emitter
from nodes.plan import lint_of, plan_ready
from nodes.readiness import seconds_left, tool_budget_left
from nodes.roles import ask_role, plan_schema
from nodes.schedule import current_plan
from nodes.verdict import all_steps, open_failures
from schemas.context import RunContext
from schemas.errors import PlanInvalid
from schemas.evidence import Evidence
from schemas.plan import Plan, PlanDraft, Step, parse_draft, validation_lines
from schemas.state import TaskState, latest


def make_replan(parts: Parts) -> Node:
    """Return the node. It counts each call of the replanner; no usable new steps end the run."""

    async def replan(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        plan = current_plan(state)
        schema = plan_schema(lambda raw: gap_draft(raw, plan, state, parts))
        messages = request(
            "replanner", replanner_brief(state, plan, parts.registry), state["limits"].max_request_chars
        )
        left = seconds_left(state["limits"], state["evidence"], state["usage"])
        answer = await ask_role(parts, parts.models.planner, schema, messages, left)
        update: dict[str, Any] = {"replan_count": state["replan_count"] + 1, "usage": answer.usage}
        if answer.value is None:
            return update | {"stop_reason": answer.stop_reason, "problem": answer.detail}
        if not answer.value.steps:
            return update | {"stop_reason": "no_progress", "problem": "the replanner had nothing else to try"}
        new = next_version(answer.value.steps, plan, state)
        emitter(runtime.stream_writer)(plan_ready(new, lint_of(new, state, parts)))
        # A plan that a person approved is not this one: they are asked again, or it runs as unapproved.
        return update | {"plan": new, "plans": [*state["plans"], new], "approved": None, "stop_reason": None}

    return replan


def gap_draft(raw: Any, plan: Plan, state: TaskState, parts: Parts) -> PlanDraft:
    """Validate a replanner's answer, alone and merged with what is kept.

    Raises:
        PlanInvalid: with every violation.
    """
    records = latest(state["evidence"])
    steps = all_steps(state["plans"])
    passed = {i for i, e in records.items() if e.passed}
    if isinstance(raw, dict) and cast("dict[str, Any]", raw).get("steps") == []:
        return PlanDraft(steps=[])
    draft = parse_draft(
        raw, tools=parts.registry.names(), max_steps=state["limits"].max_plan_steps, known=passed, taken=steps
    )
    problems = [
        f"step {s.id!r} replaces {s.replaces!r}, which is not a step that failed"
        for s in draft.steps
        if s.replaces is not None and (s.replaces not in steps or s.replaces in passed)
    ]
    problems += repeated_work(draft.steps, [steps[i] for i in passed if i in steps])
    left = tool_budget_left(state["limits"], state["usage"])
    if left == 0 and all(s.tools != [] and s.tool_budget > 0 for s in draft.steps):
        problems.append("no tool runs are left: plan steps with tools [] only")
    if not problems:
        try:
            next_version(draft.steps, plan, state)
        except ValidationError as error:
            problems = validation_lines(error)
    if problems:
        raise PlanInvalid(problems)
    return draft


def repeated_work(new: Sequence[Step], passed: Sequence[Step]) -> list[str]:
    """Return one line for each new step whose task is that of a passed one."""
    tasks = {" ".join(step.task.casefold().split()): step.id for step in passed}
    found = [(s.id, tasks.get(" ".join(s.task.casefold().split()))) for s in new]
    return [f"step {i!r} repeats the passed step {old!r}" for i, old in found if old is not None]


def next_version(new: Sequence[Step], plan: Plan, state: TaskState) -> Plan:
    """Return the next version: passed steps, skipped ones that can run again, and the new ones."""
    records = latest(state["evidence"])
    kept = [step for step in plan.steps if step.id in records and records[step.id].passed]
    carried = carried_steps(new, plan, records, {step.id for step in kept})
    gaps = [step.id for step, _ in open_failures(state["plans"], state["evidence"])]
    return Plan(
        goal=plan.goal,
        assumptions=plan.assumptions,
        steps=[*kept, *new, *carried],
        version=len(state["plans"]) + 1,
        parent_version=plan.version,
        created_by="replanner",
        reason="gaps in: " + ", ".join(gaps) if gaps else "gaps named by the reviewer",
    )


def carried_steps(
    new: Sequence[Step], plan: Plan, records: dict[str, Evidence], kept: set[str]
) -> list[Step]:
    """Return the skipped steps that nothing replaces, the replaced dependency renamed, while all they need is there."""
    stand_ins: dict[str, list[str]] = {}
    for step in new:
        if step.replaces is not None:
            stand_ins.setdefault(step.replaces, []).append(step.id)
    available = (
        kept | {step.id for step in new} | {s.id for s in plan.steps if s.optional and s.id in records}
    )
    carried: list[Step] = []
    pending = [
        s for s in plan.steps if s.id in records and records[s.id].skipped_because and s.id not in stand_ins
    ]
    progress = True
    while progress:
        progress = False
        for step in list(pending):
            needs = [n for d in step.depends_on for n in stand_ins.get(d, [d])]
            if all(need in available for need in needs):
                carried.append(
                    step.model_copy(
                        update={"depends_on": [n for n in dict.fromkeys(needs) if n in available]}
                    )
                )
                available.add(step.id)
                pending.remove(step)
                progress = True
    return carried

"""replan: plan only the gaps. What passed is kept and never runs again; ids are never used twice."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langgraph.runtime import Runtime
from pydantic import ValidationError

from nodes.briefs import replanner_brief, request
from nodes.parts import Node, Parts, emitter
from nodes.plan import lint_of, plan_ready
from nodes.readiness import seconds_left, tokens_left, tool_budget_left, wants_tools
from nodes.roles import ask_role, plan_schema
from nodes.schedule import current_plan
from nodes.verdict import all_steps, open_failures
from schemas.context import RunContext
from schemas.errors import PlanInvalid
from schemas.evidence import Evidence
from schemas.plan import Plan, PlanDraft, Step, parse_draft, raw_steps, validation_lines
from schemas.plan_repair import parsed_with_repairs
from schemas.state import TaskState, latest

LEAST_ROOM, ROOM_FOR_STEP, ROOM_FOR_OBJECTIVE = 4, 3, 8


def make_replan(parts: Parts) -> Node:
    """Return the node. It counts each call of the replanner; no usable new steps end the run."""

    async def replan(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        plan = current_plan(state)
        names = parts.registry.names(state["choices"].autonomy)
        earlier = list(all_steps(state["plans"]))

        def parse(raw: Any) -> PlanDraft:
            return parsed_with_repairs(
                raw, lambda given: gap_draft(given, plan, state, parts), tools=names, known=earlier
            )

        schema = plan_schema(parse, names, max_steps=most_asked_for(state), repair=True)
        messages = request(
            "replanner", replanner_brief(state, plan, parts.registry), state["limits"].max_request_chars
        )
        left = seconds_left(state["limits"], state["evidence"], state["usage"])
        tokens = tokens_left(state["limits"], state["usage"])
        answer = await ask_role(parts, parts.models.planner, schema, messages, left, tokens)
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


def most_asked_for(state: TaskState) -> int:
    """Return how many steps the replanner's form has room for: small models plan all over again what has passed."""
    gaps = state["review"].gaps if state["review"] else []
    room = sum(ROOM_FOR_STEP if gap.step_id else ROOM_FOR_OBJECTIVE for gap in gaps)
    return min(state["limits"].max_plan_steps, max(LEAST_ROOM, room))


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
    problems: list[str] = []
    draft: PlanDraft | None = None
    try:
        draft = parse_draft(
            raw,
            tools=parts.registry.names(state["choices"].autonomy),
            max_steps=state["limits"].max_plan_steps,
            known=passed,
            taken=steps,
            replaceable=set(records) - passed,
        )
    except PlanInvalid as error:
        problems += error.problems
    problems += repeated_work(raw_steps(raw), [steps[i] for i in passed if i in steps])
    if draft is not None:
        problems += budget_problems(draft.steps, state) or merge_problems(draft.steps, plan, state)
    if problems or draft is None:
        raise PlanInvalid(problems)
    return draft


def budget_problems(new: Sequence[Step], state: TaskState) -> list[str]:
    """Return what is wrong with steps that need tools in a run that has none left."""
    if tool_budget_left(state["limits"], state["usage"]):
        return []
    names = ", ".join(repr(step.id) for step in new if wants_tools(step))
    return [f"no tool runs are left: plan steps with tools [] only, unlike {names}"] if names else []


def merge_problems(new: Sequence[Step], plan: Plan, state: TaskState) -> list[str]:
    """Return what is wrong with the version that new steps would make together with what is kept."""
    most = state["limits"].max_plan_steps
    merged = len(merged_steps(new, plan, state))
    if merged > most:
        return [f"{len(new)} new steps beside {merged - len(new)} kept ones: at most {most} are allowed"]
    try:
        next_version(new, plan, state)
    except ValidationError as error:
        return validation_lines(error)
    return []


def repeated_work(new: Sequence[Mapping[str, Any]], passed: Sequence[Step]) -> list[str]:
    """Return one line for each new step, valid or not, whose task is that of a passed one."""
    tasks = {" ".join(step.task.casefold().split()): step.id for step in passed}
    found = [(s.get("id"), tasks.get(" ".join(str(s.get("task")).casefold().split()))) for s in new]
    return [f"step {i!r} repeats the passed step {old!r}" for i, old in found if old is not None]


def next_version(new: Sequence[Step], plan: Plan, state: TaskState) -> Plan:
    """Return the next version: passed steps, the new ones, and skipped ones that can run again."""
    gaps = [step.id for step, _ in open_failures(state["plans"], state["evidence"])]
    return Plan(
        goal=plan.goal,
        assumptions=plan.assumptions,
        steps=merged_steps(new, plan, state),
        version=len(state["plans"]) + 1,
        parent_version=plan.version,
        created_by="replanner",
        reason="gaps in: " + ", ".join(gaps) if gaps else "gaps named by the reviewer",
    )


def merged_steps(new: Sequence[Step], plan: Plan, state: TaskState) -> list[Step]:
    """Return the steps of the next version. What has passed and is not needed gives way where there is no room."""
    records = latest(state["evidence"])
    steps = all_steps(lineage(plan, state["plans"]))
    rest = [*new, *carried_steps(new, steps, records)]
    kept = [step for i, step in steps.items() if i in records and records[i].passed]
    needed = {need for step in rest for need in step.depends_on}
    over = max(0, len(kept) + len(rest) - state["limits"].max_plan_steps)
    spare = {step.id for step in [s for s in kept if s.id not in needed][:over]}
    return [*within([s for s in kept if s.id not in spare]), *rest]


def lineage(plan: Plan, plans: Sequence[Plan]) -> list[Plan]:
    """Return a version and those it came from, the first one first; versions that a person turned down are not there."""
    versions = {version.version: version for version in plans}
    found = [plan]
    while found[0].parent_version in versions:
        found.insert(0, versions[found[0].parent_version])
    return found


def within(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without their dependencies on others: optional steps that failed, or what has given way."""
    ids = {step.id for step in steps}

    def kept(step: Step) -> Step:
        needs = [need for need in step.depends_on if need in ids]
        return step if needs == step.depends_on else step.model_copy(update={"depends_on": needs})

    return [kept(step) for step in steps]


def stand_ins(steps: Iterable[Step]) -> dict[str, list[str]]:
    """Return, for each step that is replaced, the ids of those that stand in for it."""
    found: dict[str, list[str]] = {}
    for step in steps:
        if step.replaces is not None:
            found.setdefault(step.replaces, []).append(step.id)
    return found


def renamed_needs(step: Step, replaced: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what a step depends on, replaced steps renamed; a stand-in may have been replaced in its turn."""
    needs = list(step.depends_on)
    for _ in range(len(replaced)):
        needs = [new for need in needs for new in replaced.get(need, [need])]
    return list(dict.fromkeys(needs))


def carried_steps(
    new: Sequence[Step], steps: Mapping[str, Step], records: Mapping[str, Evidence]
) -> list[Step]:
    """Return the skipped steps that nothing replaces and that can run now, replaced dependencies renamed.

    Args:
        new: steps of the next version.
        steps: of all versions up to now, by id.
        records: the last one of each step.
    """
    replaced = stand_ins([*(s for i, s in steps.items() if i in records), *new])
    there = {s.id for s in new} | {i for i, e in records.items() if e.passed}
    skipped = [s for i, s in steps.items() if i in records and records[i].skipped_because]
    pending = [step for step in skipped if step.id not in replaced]
    needs = {step.id: renamed_needs(step, replaced) for step in pending}
    failed = {i for i, e in records.items() if i in steps and steps[i].optional and not e.passed}
    may_lack = failed - {step.id for step in pending}
    carried: list[Step] = []
    while pending:
        ready = [s for s in pending if all(need in there or need in may_lack for need in needs[s.id])]
        if not ready:  # an optional step that cannot run holds up nobody
            ready = [step for step in pending if step.optional]
            may_lack |= {step.id for step in ready}
        else:
            for step in ready:
                present = [need for need in needs[step.id] if need in there]
                carried.append(step.model_copy(update={"depends_on": present}))
            there |= {step.id for step in ready}
        if not ready:
            break
        pending = [step for step in pending if step not in ready]
    return carried

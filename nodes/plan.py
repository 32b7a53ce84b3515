"""plan: take up the objective, start clean, and write a valid Plan, or questions for a person."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from nodes.briefs import language_of, planner_brief, request
from nodes.clarify import MAX_ROUNDS
from nodes.execute import worker_parts
from nodes.lint import lint
from nodes.parts import Emit, Node, Parts, can_wait, emitter
from nodes.readiness import seconds_left, tokens_left, tool_budget_left
from nodes.roles import RoleAnswer, ask_role, plan_schema
from nodes.shortcut import shortcut
from nodes.streamed import EarlyWork, early_work, streams
from nodes.verdict import all_steps, choose_max_replans
from schemas.context import RunContext
from schemas.errors import PlanInvalid
from schemas.events import PlanReady, RunStarted
from schemas.evidence import Review, Usage
from schemas.plan import MAX_LINE_CHARS, CreatedBy, Plan, PlanDraft, parse_draft
from schemas.plan_repair import parsed_with_repairs
from schemas.state import TaskState

# A run that is kept nowhere cannot wait for an answer.
ALONE = {"questions": "assume", "on_gaps": "finish"}
UNANSWERED = {"en": "No answer was given to: ", "zh": "没有得到回答："}


def make_plan(parts: Parts) -> Node:
    """Return the node. It resets the state for a new objective; after a person's remark it keeps what was spent."""
    workers = worker_parts(parts)

    async def plan(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        emit = emitter(runtime.stream_writer)
        update: dict[str, Any] = {}
        fresh = state["run_id"] != state.get("planned_run_id")
        if fresh:
            update = fresh_state(state, runtime.context or RunContext())
            emit(RunStarted(objective=state["objective"]))
        now = cast("TaskState", {**state, **{k: plain(v) for k, v in update.items()}})
        draft = shortcut(now, parts.registry.unasked(now["choices"].autonomy))
        if draft is not None:
            return update | accepted(now, parts, draft, "shortcut", emit)
        if streams(now):
            async with early_work(parts, workers, now, runtime) as early:
                found = await planned_early(parts, early, now)
        else:
            answer = await asked(now, lambda state: ask_planner(parts, state, parts.models.planner))
            found = {"answers": now["answers"], "usage": answer.usage} | outcome_of(answer)
            if answer.value is not None and answer.value.steps:
                found |= accepted(now, parts, answer.value, "planner", emit)
        return update | (overwriting(found) if fresh else found)

    return plan


async def planned_early(parts: Parts, early: EarlyWork, state: TaskState) -> dict[str, Any]:
    """Return the update of a planning beside which steps are at work already."""
    if early.kept is not None:
        return await early.carry_on(early.kept)

    def accept(state: TaskState, draft: PlanDraft, emit: Emit) -> dict[str, Any]:
        return accepted(state, parts, draft, "planner", emit)

    answer = await asked(state, lambda now: early.ask(now, partial(ask_planner, parts)))
    if answer.value is not None and answer.value.steps:
        return await early.with_plan(answer, answer.value, accept)
    return {"answers": state["answers"]} | await early.without_plan(answer.usage) | outcome_of(answer)


async def asked(
    state: TaskState, ask: Callable[[TaskState], Awaitable[RoleAnswer[PlanDraft]]]
) -> RoleAnswer[PlanDraft]:
    """Return the planner's answer; where nobody is there to answer its questions, after telling it so in `state`."""
    before = state["usage"]
    answer = await ask(state)
    while answer.value is not None and not answer.value.steps and state["choices"].questions == "assume":
        state["answers"] = [*state["answers"], dict.fromkeys(answer.value.questions, "")]
        spent = answer.usage
        state["usage"] = before + spent
        answer = await ask(state)
        answer = replace(answer, usage=spent + answer.usage)
    return answer


def outcome_of(answer: RoleAnswer[PlanDraft]) -> dict[str, Any]:
    """Return the update for an answer that has no plan in it: questions, or why there is none."""
    if answer.value is None:
        empty = Review(approved=False, gaps=[])
        return {"stop_reason": answer.stop_reason, "review": empty, "problem": answer.detail, "plan": None}
    return {} if answer.value.steps else {"questions": answer.value.questions}


def overwriting(update: dict[str, Any]) -> dict[str, Any]:
    """Return the update of a run's first planning: nothing of an earlier run is added to."""
    added = ("evidence", "sources", "usage")
    return {key: Overwrite(value) if key in added else value for key, value in update.items()}


async def ask_planner(parts: Parts, state: TaskState, model: BaseChatModel) -> RoleAnswer[PlanDraft]:
    """Ask the planner for a plan that this run could carry out, or, in the first rounds, for questions."""
    limits = state["limits"]
    may_ask = len(state["answers"]) < MAX_ROUNDS
    earlier = list(all_steps(state["plans"]))
    names = parts.registry.names(state["choices"].autonomy)
    most = limits.max_plan_steps

    def parse(raw: Any) -> PlanDraft:
        return parsed_with_repairs(
            raw, lambda given: runnable_draft(given, names, most, may_ask, earlier), tools=names
        )

    schema = plan_schema(parse, names, max_steps=most)
    messages = request("planner", planner_brief(state, parts.registry), limits.max_request_chars)
    left = seconds_left(limits, state["evidence"], state["usage"])
    tokens = tokens_left(limits, state["usage"])
    return await ask_role(parts, model, schema, messages, left, tokens)


def plain(value: Any) -> Any:
    """Return what a state key will hold after an update with this value."""
    return value.value if isinstance(value, Overwrite) else value


def fresh_state(state: TaskState, choices: RunContext) -> dict[str, Any]:
    """Return the update that clears what an earlier run of this thread has left."""
    return {
        "planned_run_id": state["run_id"],
        "choices": choices if can_wait() else choices.model_copy(update=ALONE),
        "limits": choices.limits,
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
        "questions": [],
        "answers": [],
        "asked": [],
        "problem": "",
        "status": "running",
        "stop_reason": None,
        "final_answer": "",
    }


def runnable_draft(
    raw: Any, tools: list[str], max_steps: int, may_ask: bool, earlier: Sequence[str]
) -> PlanDraft:
    """Validate a first plan; without steps it must be questions, while they may still be asked."""
    draft = parse_draft(raw, tools=tools, max_steps=max_steps, replaceable=earlier)
    if not draft.steps and not may_ask:
        raise PlanInvalid(["questions: no more can be asked; plan the steps, and state what you assume"])
    return draft


def accepted(
    state: TaskState, parts: Parts, draft: PlanDraft, created_by: CreatedBy, emit: Emit
) -> dict[str, Any]:
    """Return the update for a valid draft: the next version, and the replans it may have."""
    plans = state["plans"]
    plan = Plan(
        **draft.model_dump(exclude={"goal", "assumptions", "questions"}),
        assumptions=[*draft.assumptions, *unanswered(state, draft)][:20],
        goal=draft.goal or state["objective"][:2000],
        version=len(plans) + 1,
        parent_version=plans[-1].version if plans else None,
        created_by=created_by,
        reason=state["feedback"][-1] if state["feedback"] else "",
    )
    emit(plan_ready(plan, lint_of(plan, state, parts)))
    return {"plan": plan, "plans": [*plans, plan], "max_replans": allowed_replans(plan, state)}


def allowed_replans(plan: Plan, state: TaskState) -> int:
    """Return how often a first plan may be repaired: as the caller says, never in mode react, else as derived."""
    limits = state["limits"]
    if limits.max_replans is not None:
        return limits.max_replans
    if state["choices"].mode == "react":
        return 0
    return choose_max_replans(len(plan.steps), limits.total_tool_budget - state["usage"].tool_calls)


def unanswered(state: TaskState, draft: PlanDraft) -> list[str]:
    """Return one assumption for each question that nobody answered, or that came together with the steps."""
    words = UNANSWERED[language_of(state["objective"])]
    asked = [question for answers in state["answers"] for question, text in answers.items() if not text]
    lines = ((words + question)[:MAX_LINE_CHARS] for question in [*asked, *draft.questions])
    return list(dict.fromkeys(lines))


def lint_of(plan: Plan, state: TaskState, parts: Parts) -> list[str]:
    """Return what is allowed in a plan, but probably not meant."""
    registry = parts.registry
    writers = [name for name in registry.names() if registry.spec(name).permission != "read"]
    steps = all_steps(state["plans"])
    passed = {e.step_id: steps[e.step_id].task for e in state["evidence"] if e.passed and e.step_id in steps}
    left = tool_budget_left(state["limits"], state["usage"])
    return lint(plan, state["limits"], writers, passed, left)


def plan_ready(plan: Plan, lint: list[str]) -> PlanReady:
    """Return the event that tells of a new version."""
    return PlanReady(
        version=plan.version,
        created_by=plan.created_by,
        fingerprint=plan.fingerprint,
        reason=plan.reason,
        plan=plan.model_dump(mode="json"),
        lint=lint,
    )

"""What each role is told: one JSON object in a message of its own, bounded, with its trimming visible."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from agents.brief import brief_text
from agents.outline import outline, repair_outline
from agents.prompts import prompt
from nodes.readiness import tool_budget_left
from nodes.verdict import all_steps, is_usable, open_failures
from schemas.evidence import Evidence, Source
from schemas.plan import Plan, Step
from schemas.state import TaskState, latest
from tools.registry import ToolRegistry
from tools.results import cut


def request(role: str, brief: dict[str, Any], max_chars: int) -> list[AnyMessage]:
    """Return a role's request: its prompt, and the brief as JSON of at most about `max_chars` characters.

    See brief_text for what gives way when it is too long.
    """
    system = prompt(role)
    text = brief_text({"role": role, **brief}, max_chars - len(system))
    return [SystemMessage(system), HumanMessage(text)]


def planner_brief(state: TaskState, registry: ToolRegistry) -> dict[str, Any]:
    """Return the planner's view: objective, tools, catalogue, limits, and a person's remarks on the last plan."""
    limits, catalogue = state["limits"], registry.catalogue()
    brief: dict[str, Any] = {
        "objective": state["objective"],
        "tools": registry.describe(state["choices"].autonomy),
        "catalogue": catalogue,
        "limits": {"max_steps": limits.max_plan_steps, "tool_budget": limits.total_tool_budget},
        "feedback": state["feedback"],
    }
    if state["answers"]:
        # An empty answer: nobody was there to give one. The planner then states what it assumes.
        brief["answers"] = [
            {"question": q, "answer": a} for answers in state["answers"] for q, a in answers.items()
        ]
    previous = state["plan"]
    if state["feedback"] and previous is not None:
        brief["previous"] = {
            "goal": previous.goal,
            "steps": [s.model_dump(mode="json") for s in previous.steps],
        }
    elif division := outline(state["objective"], catalogue, limits.max_plan_steps):
        brief["outline"] = division
    return brief


def replanner_brief(state: TaskState, plan: Plan, registry: ToolRegistry) -> dict[str, Any]:
    """Return the replanner's view: what passed (without texts), the gaps, what was tried, what is left."""
    records = latest(state["evidence"])
    steps = all_steps(state["plans"])
    review = state["review"]
    passed = [(steps[i], e) for i, e in records.items() if e.passed and i in steps]
    left = tool_budget_left(state["limits"], state["usage"])
    gaps = review.gaps if review else []
    brief: dict[str, Any] = {
        "objective": state["objective"],
        "goal": plan.goal,
        "passed": [
            {"step_id": s.id, "task": s.task, "summary": cut(e.summary, 400), "source_ids": e.source_ids}
            for s, e in passed
        ],
        "gaps": [gap.model_dump(mode="json") for gap in gaps],
        "tried": [_tried(steps[i], e) for i, e in records.items() if not e.passed and i in steps],
        "taken_ids": list(steps),
        "feedback": state["feedback"],
        "tools": registry.describe(state["choices"].autonomy),
        "catalogue": registry.catalogue(),
        "limits": {"max_steps": max(1, state["limits"].max_plan_steps - len(passed)), "tool_budget": left},
    }
    if division := repair_outline(gaps, steps):
        brief["outline"] = division
    return brief


def _tried(step: Step, record: Evidence) -> dict[str, Any]:
    return {
        "step_id": step.id,
        "task": step.task,
        "success_criteria": step.success_criteria,
        "depends_on": step.depends_on,
        "error_type": record.error_type,
        "detail": record.detail[:400],
        "missing": record.missing,
        "criteria": [c.model_dump(mode="json") for c in record.criteria],
        "queries": record.calls,
    }


def reviewer_brief(state: TaskState, plan: Plan) -> dict[str, Any]:
    """Return the reviewer's view: each step's criteria and evidence."""
    records = latest(state["evidence"])
    passed = [s for i, s in all_steps(state["plans"]).items() if i in records and records[i].passed]
    open_steps = [s for s, _ in open_failures(state["plans"], state["evidence"])]
    steps = {s.id: s for s in [*plan.steps, *passed, *open_steps]}
    return {
        "objective": state["objective"],
        "goal": plan.goal,
        "steps": [_reviewed(s, records[s.id]) for s in steps.values() if s.id in records],
    }


def _reviewed(step: Step, record: Evidence) -> dict[str, Any]:
    return {
        "id": step.id,
        "task": step.task,
        "success_criteria": step.success_criteria,
        "optional": step.optional,
        "passed": record.passed,
        "reasoning": record.reasoning,
        "summary": record.summary,
        "criteria": [c.model_dump(mode="json") for c in record.criteria],
        "missing": record.missing,
        "source_ids": record.source_ids,
        "error_type": record.error_type,
        "detail": record.detail[:400],
    }


def writer_brief(state: TaskState, cited: Sequence[Source], language: str) -> dict[str, Any]:
    """Return the writer's view: usable findings and the numbered sources. No task texts: they are no evidence."""
    numbers = {source.id: n for n, source in enumerate(cited, start=1)}
    review = state["review"]
    return {
        "objective": state["objective"],
        "findings": [
            {
                "step_id": e.step_id,
                "summary": e.summary,
                "reasoning": e.reasoning,
                "cite": [numbers[i] for i in e.source_ids if i in numbers],
            }
            | ({} if e.passed else {"not_found": [c.criterion for c in e.criteria if not c.met]})
            for e in usable(state)
        ],
        "sources": [
            {"n": n, "title": s.title, "locator": s.locator, "excerpt": s.excerpt}
            for n, s in enumerate(cited, start=1)
        ],
        "gaps": [gap.description for gap in review.gaps] if review else [],
        "language": language,
    }


def usable(state: TaskState) -> list[Evidence]:
    """Return the evidence that the answer may be made of, in the order of the plans' steps: see `is_usable`."""
    records = latest(state["evidence"])
    return [records[i] for i in all_steps(state["plans"]) if i in records and is_usable(records[i])]


def cited_sources(state: TaskState) -> list[Source]:
    """Return the sources that usable evidence cites, in that order, each once."""
    known: dict[str, Source] = {}
    for source in state["sources"]:
        known.setdefault(source.id, source)
    ids = dict.fromkeys(i for e in usable(state) for i in e.source_ids)
    return [known[i] for i in ids if i in known]


def language_of(text: str) -> str:
    """Return "zh" for a text with Chinese characters, else "en"."""
    return "zh" if any("\u4e00" <= c <= "\u9fff" for c in text) else "en"

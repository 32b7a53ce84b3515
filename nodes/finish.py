"""finish: write the answer, check its citations, and say what is missing. Every run ends here."""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from nodes.briefs import language_of, usable
from nodes.composing import compose
from nodes.parts import Node, Parts, emitter, thread_id
from nodes.verdict import final_status, next_move
from nodes.writing import written
from schemas.context import RunContext
from schemas.events import AnswerText, RunFinished
from schemas.evidence import Evidence, Gap
from schemas.state import StopReason, TaskState, latest


def make_finish(parts: Parts) -> Node:
    """Return the node. Without a usable writer the answer is made of the findings themselves."""

    async def finish(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        await parts.sweep(thread_id())
        emit = emitter(runtime.stream_writer)
        reason: StopReason = state["stop_reason"] or next_move(state).reason or "no_progress"
        language = language_of(state["objective"])
        checked, usage = await written(parts, state, reason)
        assumptions = state["plan"].assumptions if state["plan"] else []
        reasoned = [record for record in usable(state) if record.reasoning]
        answer = compose(checked, gaps_of(state, reason), assumptions, reasoned, language)
        status = final_status(state, reason)
        total = state["usage"] + usage
        emit(AnswerText(text=answer))
        emit(
            RunFinished(
                status=status, stop_reason=reason, tool_calls=total.tool_calls, model_calls=total.model_calls
            )
        )
        return {
            "status": status,
            "stop_reason": reason,
            "final_answer": answer,
            "messages": [AIMessage(answer, id=f"answer-{state['run_id']}")],
            "usage": usage,
        }

    return finish


def gaps_of(state: TaskState, reason: StopReason) -> list[Gap]:
    """Return the open gaps; where there was no review, the reason itself is the gap."""
    review = state["review"]
    if review is not None and review.gaps:
        records = latest(state["evidence"])
        return [with_reason(gap, records.get(gap.step_id or "")) for gap in review.gaps]
    if reason in ("approved", "plan_rejected", "cancelled"):
        return []
    return [Gap(description=(state.get("problem") or f"stopped: {reason}")[:1000], recoverable=False)]


def with_reason(gap: Gap, record: Evidence | None) -> Gap:
    """Return the gap with the worker's own reason for an unmet criterion: what it looked for, and what it met."""
    if record is None or record.error_type != "criteria_unmet":
        return gap
    reasons = "; ".join(c.reason for c in record.criteria if not c.met and c.reason.strip())
    return gap.model_copy(update={"description": f"{gap.description} ({reasons[:400]})"}) if reasons else gap

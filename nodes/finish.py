"""finish: write the answer, check its citations, and say what is missing. Every run ends here."""

import asyncio
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from agents.failures import one_line
from agents.retrying import with_retries
from agents.structured import UNREADABLE, raise_refusal, usage_of
from nodes.briefs import cited_sources, language_of, request, usable, writer_brief
from nodes.citations import TEXTS, check_citations, compose, plain_answer
from nodes.flags import flag_claims
from nodes.parts import Node, Parts, emitter, thread_id
from nodes.verdict import final_status, next_move
from schemas.context import RunContext
from schemas.events import AnswerText, RunFinished
from schemas.evidence import Evidence, Gap, Source, Usage
from schemas.state import StopReason, TaskState, latest

MIN_SECONDS = 30.0


def make_finish(parts: Parts) -> Node:
    """Return the node. Without a usable writer the answer is made of the findings themselves."""

    async def finish(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        await parts.sweep(thread_id())
        emit = emitter(runtime.stream_writer)
        reason: StopReason = state["stop_reason"] or next_move(state).reason or "no_progress"
        language = language_of(state["objective"])
        known = cited_sources(state)
        text, usage = await draft_text(parts, state, known, language, reason)
        checked = check_citations(text, known)
        flag_claims(checked, known, await full_texts(parts, known), language)
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


async def full_texts(parts: Parts, sources: list[Source]) -> dict[str, str]:
    """Return the whole texts behind sources, by id; where one is gone its excerpt has to do."""
    texts: dict[str, str] = {}
    for source in sources:
        try:
            texts[source.id] = (
                await parts.artifacts.get(source.artifact) if source.artifact else source.excerpt
            )
        except (KeyError, OSError):
            texts[source.id] = source.excerpt
    return texts


async def draft_text(
    parts: Parts, state: TaskState, known: list[Source], language: str, reason: StopReason
) -> tuple[str, Usage]:
    """Return the answer's text, unchecked, and what it cost."""
    texts = TEXTS[language]
    findings = usable(state)
    if not findings and reason in ("cancelled", "plan_rejected"):
        return STOPPED[language], Usage()
    if not findings:
        problem = f"\n\n{state['problem']}" if state.get("problem") else ""
        return texts["nothing"] + problem, Usage()
    messages = request("writer", writer_brief(state, known, language), state["limits"].max_request_chars)
    began = parts.clock()
    usage = Usage()
    try:
        async with asyncio.timeout(MIN_SECONDS * 4):
            message = await with_retries(lambda: parts.models.writer.ainvoke(messages), lambda: MIN_SECONDS)
        usage = usage_of(message)
        raise_refusal(message)
        text = message.text.strip()
        if not text:
            text = plain_answer(findings, known, language)
    except Exception as error:  # noqa: BLE001 - the findings are there, whatever the writer does
        note = (
            one_line(error, 200)
            if not isinstance(error, UNREADABLE)
            else "the writer's answer could not be read"
        )
        text = f"({note})\n\n{plain_answer(findings, known, language)}"
        usage = usage if usage.model_calls else Usage(model_calls=1)
    return text, usage + Usage(seconds=parts.clock() - began)


STOPPED = {
    "en": "The plan was not approved; nothing was run.",
    "zh": "计划未获批准；没有执行任何步骤。",
}


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

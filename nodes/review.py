"""review: judge the evidence. The model's words and the facts are combined by code."""

import asyncio
from typing import Any, cast

from langgraph.runtime import Runtime

from agents.checks import verdict_of
from nodes.briefs import request, reviewer_brief
from nodes.parts import Node, Parts, emitter
from nodes.readiness import seconds_left, tokens_left
from nodes.roles import REVIEW_SCHEMA, ask_role
from nodes.schedule import current_plan
from nodes.verdict import RAISED_SECONDS, next_move, settle
from schemas.context import RunContext
from schemas.events import Reviewed
from schemas.evidence import Gap, Review
from schemas.plan import Plan
from schemas.state import TaskState

MIN_SECONDS = 1.0


def make_review(parts: Parts) -> Node:
    """Return the node. Without a reviewer's answer the review is made of the evidence alone."""

    async def review(state: TaskState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        plan = current_plan(state)
        messages = request("reviewer", reviewer_brief(state, plan), state["limits"].max_request_chars)
        left = seconds_left(state["limits"], state["evidence"], state["usage"])
        tokens = tokens_left(state["limits"], state["usage"])
        answer = await ask_role(parts, parts.models.reviewer, REVIEW_SCHEMA, messages, left, tokens)
        settled = settle(
            answer.value,
            state["plans"],
            state["evidence"],
            time_left=left > RAISED_SECONDS,
            unreviewed=f"The evidence was not reviewed: {answer.detail}",
        )
        if settled.approved and parts.verify_goal is not None:
            settled = await goal_verified(parts, plan, state, settled, left)
        emitter(runtime.stream_writer)(Reviewed(approved=settled.approved, gaps=settled.gaps))
        update = {"review": settled, "usage": answer.usage}
        if answer.value is None and answer.error_type != "model_limit":
            update |= {"problem": answer.detail}
            update |= {"stop_reason": "review_unavailable"} if not settled.approved else {}
        else:
            move = next_move(cast("TaskState", {**state, "review": settled}), before=state["review"])
            update |= {"stop_reason": move.reason}
        return update

    return review


async def goal_verified(parts: Parts, plan: Plan, state: TaskState, review: Review, seconds: float) -> Review:
    """Return the review, with a gap when the application's own verifier does not say True within the seconds."""
    try:
        async with asyncio.timeout(max(MIN_SECONDS, seconds)):
            reason = await verdict_of("verify_goal", parts.verify_goal or bool, plan, list(state["evidence"]))
    except TimeoutError:
        reason = "verify_goal had not ended at the run's deadline"
    if not reason:
        return review
    return Review(
        approved=False, gaps=[Gap(description=f"The goal was not verified: {reason}", recoverable=True)]
    )

"""Runs seen from outside: their events while they happen, and what they end with."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AnyMessage, convert_to_openai_messages
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt, StateSnapshot
from pydantic import BaseModel, ValidationError

from schemas.context import RunContext
from schemas.events import RUN_EVENT, Paused, RunEvent
from schemas.evidence import Evidence, Review, Source, Usage
from schemas.plan import Plan
from schemas.state import Status, StopReason, TaskInput

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True)
class Outcome:
    """What a thread's latest run has come to: the graph's output, and what it waits for.

    Attributes:
        status: "running" also for a run that is paused, or was interrupted.
        questions: the interrupts that wait for a person's answer.
    """

    thread_id: str
    objective: str
    messages: list[AnyMessage]
    status: Status | None
    stop_reason: StopReason | None
    final_answer: str
    evidence: list[Evidence]
    sources: list[Source]
    review: Review | None
    plan: Plan | None
    plans: list[Plan]
    usage: Usage
    questions: list[Paused]

    @property
    def known(self) -> bool:
        """Whether the thread has ever been used."""
        return self.status is not None or bool(self.objective or self.messages)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values; messages are {role, content}."""
        plain = ("thread_id", "objective", "status", "stop_reason", "final_answer")
        models = ("evidence", "sources", "review", "plan", "usage", "questions")
        return {
            **{name: getattr(self, name) for name in plain},
            "messages": convert_to_openai_messages(self.messages),
            **{name: _json(getattr(self, name)) for name in models},
        }


def _json(value: BaseModel | list[BaseModel] | None) -> Any:
    if isinstance(value, list):
        return [item.model_dump(mode="json") for item in value]
    return value.model_dump(mode="json") if value is not None else None


def thread_config(thread_id: str, metadata: Mapping[str, str] | None = None) -> RunnableConfig:
    """Return the config that names a thread; `metadata` is stored with each of the run's checkpoints."""
    return {"configurable": {"thread_id": thread_id}, "metadata": dict(metadata or {})}


async def run_events(
    graph: AnyGraph,
    task: "TaskInput | Command[Any] | None",
    *,
    thread_id: str,
    context: RunContext | None = None,
    metadata: Mapping[str, str] | None = None,
) -> AsyncGenerator[RunEvent]:
    """Run until the end or the next pause, and yield what happens while it happens.

    Closing the generator early stops the run; what has finished is kept, and None as `task` goes on from there.

    Args:
        graph: a graph with a checkpointer.
        task: a new objective; None to go on after a stop; a Command to answer a pause.
        thread_id: the thread to run on.
        context: the run's choices; a run that goes on has its own.
        metadata: stored with each checkpoint of this call.

    Raises:
        PlanweaveError: the run could not start, or the storage failed.
    """
    stream = graph.astream(
        task, thread_config(thread_id, metadata), context=context, stream_mode=["custom", "updates"]
    )
    # LangGraph declares an iterator; it is a generator, and only closing it stops the workers at once.
    chunks = cast("AsyncGenerator[tuple[str, Any]]", stream)
    async with aclosing(chunks):
        async for mode, chunk in chunks:
            for event in _custom(chunk) if mode == "custom" else _pauses(chunk):
                yield event


def _custom(chunk: Any) -> list[RunEvent]:
    try:
        return [RUN_EVENT.validate_python(chunk)]
    except ValidationError:
        # A person's own tool may write to the same stream; that is not ours to show.
        return []


def _pauses(update: Any) -> list[RunEvent]:
    interrupts = (
        cast("Mapping[str, Any]", update).get("__interrupt__") if isinstance(update, Mapping) else None
    )
    return [_paused(interrupt) for interrupt in cast("tuple[Interrupt, ...]", interrupts or ())]


def _paused(interrupt: Interrupt) -> Paused:
    value: Any = interrupt.value
    question = cast("dict[str, Any]", value) if isinstance(value, dict) else {"kind": "other", "value": value}
    return Paused(interrupt_id=interrupt.id, question=question)


async def outcome(graph: AnyGraph, thread_id: str) -> Outcome:
    """Return what the thread's latest run has come to; all fields are empty for a thread that does not exist."""
    return outcome_of(await graph.aget_state(thread_config(thread_id)), thread_id)


def outcome_of(snapshot: StateSnapshot, thread_id: str) -> Outcome:
    """Return what a checkpoint says of its run."""
    values = cast("Mapping[str, Any]", snapshot.values or {})
    return Outcome(
        thread_id=thread_id,
        objective=values.get("objective", ""),
        messages=values.get("messages", []),
        status=values.get("status"),
        stop_reason=values.get("stop_reason"),
        final_answer=values.get("final_answer", ""),
        evidence=values.get("evidence", []),
        sources=values.get("sources", []),
        review=values.get("review"),
        plan=values.get("plan"),
        plans=values.get("plans", []),
        usage=values.get("usage") or Usage(),
        questions=[_paused(interrupt) for interrupt in snapshot.interrupts],
    )

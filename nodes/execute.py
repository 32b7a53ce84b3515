"""execute: run one step in its worker. Whatever happens becomes evidence; one step never costs another its work."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime

from agents.ledger import StepLedger
from agents.worker import Attempt, WorkerParts
from nodes.parts import Parts, StepNode, emitter, ledger_root, thread_id
from schemas.context import RunContext
from schemas.events import StepFinished, StepStarted
from schemas.limits import RunLimits
from schemas.state import StepTask


def make_execute(parts: Parts) -> StepNode:
    """Return the node. At most limits.max_parallel_steps of a thread are at work; the step's clock starts then."""
    shared = WorkerParts(
        parts.models.worker,
        parts.registry,
        parts.artifacts,
        parts.verify_step,
        now=parts.now,
        clock=parts.clock,
    )

    async def execute(state: StepTask, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        task, config, thread = state, get_config(), thread_id()
        emit = emitter(runtime.stream_writer)
        limits = RunLimits.model_validate(task["limits"])
        ledger = StepLedger(
            runtime.store or parts.store,
            (*ledger_root(thread), task_id(config)),
            step_id=task["step"]["id"],
            grant=task["grant"],
            artifacts=parts.artifacts,
            max_result_chars=limits.max_result_chars,
            now=parts.now,
        )
        waiting = parts.clock()
        async with parts.slots.slot(thread, limits.max_parallel_steps) as exclusive:
            await ledger.load()
            # The run's deadline does not wait with the step.
            left = task["seconds_left"] - (parts.clock() - waiting)
            attempt = Attempt(shared, {**task, "seconds_left": left}, ledger, exclusive, emit)
            step = attempt.step
            emit(
                StepStarted(
                    step_id=step.id, task=step.task, grant=ledger.grant, timeout_seconds=attempt.seconds
                )
            )
            outcome = await attempt.run(config)
        emit(finished(outcome.evidence))
        return {"evidence": [outcome.evidence], "sources": outcome.sources, "usage": outcome.usage}

    return execute


def task_id(config: RunnableConfig) -> str:
    """Return the id of this task in its superstep: the same after a crash, another one in a fork."""
    namespace = str(config.get("configurable", {}).get("checkpoint_ns", ""))
    return namespace.rpartition(":")[2] or "task"


def finished(evidence: Any) -> StepFinished:
    """Return the event that tells of a step's evidence."""
    return StepFinished(
        step_id=evidence.step_id,
        passed=evidence.passed,
        error_type=evidence.error_type,
        detail=evidence.detail[:300],
        tool_calls=evidence.tool_calls,
        seconds=round((evidence.finished_at - evidence.started_at).total_seconds(), 3),
    )

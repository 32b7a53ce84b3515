"""Forks: a thread's history up to one of its checkpoints, on a thread of its own, with what a person changes in it.

Only the interface that every checkpointer has is used, so that a fork works on any of them. The original is only read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Overwrite, StateSnapshot
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graph.threads import TaskGraph
from nodes.approve import edited
from schemas.errors import InputError
from schemas.evidence import Evidence
from schemas.plan import Plan, PlanDraft, validation_lines
from schemas.state import TaskState, latest

# In the metadata of the checkpoint that a fork begins with: the thread that it comes from.
FORK_OF = "planweave_fork_of"
PARALLEL_KEYS = ("evidence", "sources", "usage")


class EvidenceEdit(BaseModel):
    """What a person says of a step: what is left out stays as it was recorded."""

    model_config = ConfigDict(extra="forbid")

    step_id: str
    passed: bool | None = None
    summary: str | None = Field(default=None, max_length=8000)
    missing: list[str] | None = Field(default=None, max_length=20)
    source_ids: list[str] | None = Field(default=None, max_length=50)


class Edit(BaseModel):
    """What is changed in a fork.

    Attributes:
        plan: the steps to go on with, as PlanDraft; those that have passed cannot be changed.
        evidence: records to change; the steps behind a changed one run again.
        again: ids of steps to run again, with the steps behind them.
    """

    model_config = ConfigDict(extra="forbid")

    plan: dict[str, Any] | None = None
    evidence: list[EvidenceEdit] = Field(default_factory=list[EvidenceEdit])
    again: list[str] = Field(default_factory=list[str])


@dataclass(frozen=True)
class Forked:
    """A new thread.

    Attributes:
        next: the nodes that run when it is resumed; none where the run had ended.
        kept: ids of steps that have passed and do not run again; open: of those that are still to run.
    """

    thread_id: str
    next: tuple[str, ...]
    kept: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])


def read_edit(raw: Any) -> Edit:
    """Read what a person has written: {"plan": ..., "evidence": [...], "again": [...]}, or a plan alone.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(raw, dict):
        raise InputError(f"an edit is a mapping with plan, evidence or again, not {type(raw).__name__}")
    data = cast("dict[str, Any]", raw)
    try:
        return Edit.model_validate({"plan": data} if "steps" in data else data)
    except ValidationError as error:
        raise InputError("; ".join(validation_lines(error))) from None


async def fork(
    graph: TaskGraph, thread_id: str, checkpoint_id: str, *, to: str, edit: Edit | None = None
) -> Forked:
    """Copy a thread's history up to a checkpoint to a new thread, and change there what `edit` says.

    What was at work at the checkpoint begins anew. At a thread's last checkpoint, the steps that its unfinished
    superstep has finished are kept.

    Args:
        graph: with a checkpointer.
        thread_id: of the original; it is only read.
        checkpoint_id: one of its own checkpoints.
        to: id of the new thread.
        edit: None = nothing is changed.

    Raises:
        InputError: there is no such checkpoint, the new thread exists, or the edit does not fit; nothing is written.
        ThreadBusy: a run is working on the new thread.
    """
    saver = cast("BaseCheckpointSaver[Any]", graph.checkpointer)
    source = await state_at(graph, thread_id, checkpoint_id)
    change = changed(source, edit, graph) if edit is not None else None
    change = change or carried(source, await saver.aget_tuple(place(thread_id, checkpoint_id)))
    async with graph.locks.hold(to):
        if await saver.aget_tuple(place(to)) is not None:
            raise InputError(f"thread {to!r} exists: a fork needs a new one")
        try:
            await copy_history(saver, thread_id, checkpoint_id, to)
            if change is not None:
                terms = {**terms_of(source), FORK_OF: thread_id}
                await graph.aupdate_state(
                    {**place(to), "metadata": terms}, change.update, as_node=change.after
                )
            found = await graph.aget_state(place(to))
        except BaseException:
            await saver.adelete_thread(to)
            raise
        await graph._settle(to)  # pyright: ignore[reportPrivateUsage] - the list of threads is the graph's own
    return forked(found, to)


def place(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    """Return the config that names a thread, or one of its checkpoints."""
    named = {"thread_id": thread_id, "checkpoint_ns": ""}
    return {"configurable": named if checkpoint_id is None else named | {"checkpoint_id": checkpoint_id}}


async def state_at(graph: TaskGraph, thread_id: str, checkpoint_id: str) -> StateSnapshot:
    """Return the state at a checkpoint; at the last one as the thread shows it.

    Raises:
        InputError: there is no such checkpoint.
    """
    head = await graph.aget_state(place(thread_id))
    if head.config.get("configurable", {}).get("checkpoint_id") == checkpoint_id:
        return head
    async for snapshot in graph.aget_state_history(place(thread_id)):
        if snapshot.config.get("configurable", {}).get("checkpoint_id") == checkpoint_id:
            return snapshot
    raise InputError(f"thread {thread_id!r} has no checkpoint {checkpoint_id!r}")


def terms_of(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return what a run is started with, as its checkpoints carry it: folders and choices."""
    metadata = cast("Mapping[str, Any]", snapshot.metadata or {})
    return {key: value for key, value in metadata.items() if key.startswith("planweave_")}


async def copy_history(saver: BaseCheckpointSaver[Any], thread_id: str, checkpoint_id: str, to: str) -> None:
    """Copy a checkpoint and those it came from. The writes after it are not copied: they are what is to run anew."""
    chain: list[CheckpointTuple] = []
    config: RunnableConfig | None = place(thread_id, checkpoint_id)
    while config is not None:
        found = await saver.aget_tuple(config)
        if found is None:  # an older part of the history has been pruned
            break
        chain.append(found)
        config = found.parent_config
    parent: str | None = None
    for found in reversed(chain):
        last = found is chain[0]
        metadata = cast("Any", {**found.metadata, **({FORK_OF: thread_id} if last else {})})
        versions = found.checkpoint["channel_versions"]
        written = await saver.aput(place(to, parent), found.checkpoint, metadata, versions)
        if not last:
            for task_id, writes in writes_by_task(found):
                await saver.aput_writes(written, writes, task_id)
        parent = found.checkpoint["id"]


def writes_by_task(found: CheckpointTuple) -> Sequence[tuple[str, list[tuple[str, Any]]]]:
    """Return the writes that led on from a checkpoint, as they were put."""
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in found.pending_writes or ():
        tasks.setdefault(task_id, []).append((channel, value))
    return list(tasks.items())


@dataclass(frozen=True)
class Change:
    """A state update, and the node as which it is written: the run goes on behind it."""

    update: dict[str, Any]
    after: str


def carried(source: StateSnapshot, stored: CheckpointTuple | None) -> Change | None:
    """Return the update that keeps what an unfinished superstep has finished beyond its checkpoint; None without any."""
    values = cast("Mapping[str, Any]", source.values)
    before: list[Evidence] = stored.checkpoint["channel_values"].get("evidence", []) if stored else []
    if not any(task.name == "execute" for task in source.tasks) or values.get("evidence", []) == before:
        return None
    return Change({key: Overwrite(values[key]) for key in PARALLEL_KEYS}, "execute")


def changed(source: StateSnapshot, edit: Edit, graph: TaskGraph) -> Change | None:
    """Return the update that an edit comes to; None where it changes nothing.

    Raises:
        InputError: it does not fit the state.
    """
    state = cast("TaskState", source.values)
    plan = state.get("plan")
    if plan is None or state.get("run_id") != state.get("planned_run_id"):
        raise InputError("there is no plan at this checkpoint yet: nothing can be changed in it")
    evidence = edited_evidence(state, plan, edit)
    now = cast("TaskState", {**state, "evidence": evidence})
    replanned = edited_plan(now, plan, edit, graph)
    if evidence == state["evidence"] and replanned is None:
        return None
    if replanned is None and state["stop_reason"] == "plan_rejected":
        raise InputError("the plan was turned down, and may not run: give another one")
    update = {key: Overwrite(state[key]) for key in PARALLEL_KEYS} | {"evidence": Overwrite(evidence)}
    update |= {"stop_reason": None, "status": "running", "final_answer": "", "problem": ""}
    # Behind `approve` runs what a person has given; behind `replan` a person is asked where every version is reviewed.
    if replanned is not None:
        return Change(update | replanned, "approve")
    return Change(update, "replan")


def edited_plan(state: TaskState, plan: Plan, edit: Edit, graph: TaskGraph) -> dict[str, Any] | None:
    """Return the update for another plan; None where it is the one in force."""
    if edit.plan is None:
        return None
    update = edited(edit.plan, plan, state, graph.parts)
    if isinstance(update, str):
        raise InputError(update)
    new: Plan = update["plan"]
    same = all(getattr(new, name) == getattr(plan, name) for name in PlanDraft.model_fields)
    return None if same else update


def edited_evidence(state: TaskState, plan: Plan, edit: Edit) -> list[Evidence]:
    """Return the evidence as a person wants it, without the records of the steps that are to run again."""
    records = latest(state["evidence"])
    unknown = [i for i in (*(e.step_id for e in edit.evidence), *edit.again) if i not in records]
    if unknown:
        there = ", ".join(records) or "none"
        raise InputError(f"no evidence of {', '.join(map(repr, unknown))} at this checkpoint (of: {there})")
    known = {source.id for source in state["sources"]}
    new = {item.step_id: overlaid(records[item.step_id], item, known) for item in edit.evidence}
    touched = {i for i, record in new.items() if record != records[i]}
    dropped = behind(plan, touched | set(edit.again)) | set(edit.again)
    kept = [new[e.step_id] if records[e.step_id] is e and e.step_id in new else e for e in state["evidence"]]
    return [e for e in kept if e.step_id not in dropped]


def overlaid(record: Evidence, item: EvidenceEdit, known: set[str]) -> Evidence:
    """Return a record with what a person says of it.

    Raises:
        InputError: it cites a source that the run does not have.
    """
    given = item.model_dump(exclude={"step_id"}, exclude_none=True)
    if all(getattr(record, key) == value for key, value in given.items()):
        return record
    unknown = [i for i in given.get("source_ids", ()) if i not in known]
    if unknown:
        raise InputError(f"step {record.step_id!r} cites unknown sources: {', '.join(map(repr, unknown))}")
    new = record.model_copy(update=given)
    failed = {"error_type": record.error_type or "criteria_unmet", "reasoning": False}
    passed = {"error_type": None, "skipped_because": None, "reasoning": not new.source_ids}
    return new.model_copy(
        update={"detail": "changed by a person in a fork", **(passed if new.passed else failed)}
    )


def behind(plan: Plan, step_ids: set[str]) -> set[str]:
    """Return the ids of all steps that depend on one of these, directly or not."""
    found: set[str] = set()
    while True:
        more = {s.id for s in plan.steps if not (step_ids | found).isdisjoint(s.depends_on)} - found
        if not more:
            return found
        found |= more


def forked(found: StateSnapshot, thread_id: str) -> Forked:
    """Return what a new thread begins with."""
    values = cast("Mapping[str, Any]", found.values)
    plan: Plan | None = values.get("plan")
    passed = {i for i, e in latest(values.get("evidence", [])).items() if e.passed}
    steps = [step.id for step in plan.steps] if plan is not None else []
    return Forked(
        thread_id=thread_id,
        next=found.next,
        kept=[i for i in steps if i in passed],
        open=[i for i in steps if i not in passed],
    )

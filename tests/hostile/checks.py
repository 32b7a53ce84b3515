"""What must hold of every run, computed from what models, tools and callers have seen, not from the program's rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from schemas.evidence import Evidence, Source
from schemas.plan import Plan, Step
from tests.hostile.answer_checks import answer
from tests.hostile.left_checks import events, stored, time_taken
from tests.hostile.run import Run
from tests.hostile.world import INVENTED_FIGURE

STATUS = ("completed", "partial", "failed", "cancelled")
OWN_ID = re.compile(r"[0-9a-f]{7}")


def violations(run: Run) -> list[str]:
    """Return one line for each rule that the run has broken."""
    checks = (
        ending,
        budgets,
        sources,
        passes,
        dependencies,
        versions,
        verdict,
        answer,
        stored,
        events,
        time_taken,
    )
    found = list(run.world.faults)
    for check in checks:
        found += [f"{check.__name__}: {line}" for line in check(run)]
    return found


def plans_of(run: Run) -> dict[int, Plan]:
    return {plan.version: plan for plan in (run.values or {}).get("plans", [])}


def last_records(run: Run) -> dict[str, Evidence]:
    return {record.step_id: record for record in run.out["evidence"]}


def ending(run: Run) -> Iterator[str]:
    out = run.out
    if out.get("status") not in STATUS:
        yield f"status {out.get('status')!r}"
    if not out.get("stop_reason"):
        yield "no stop_reason"
    if not str(out.get("final_answer") or "").strip():
        yield "no final_answer"
    if out["messages"][-1].text != out["final_answer"]:
        yield "the last message is not the answer"


def budgets(run: Run) -> Iterator[str]:
    world, limits, usage = run.world, run.limits, run.out["usage"]
    steps = {s.id: s for plan in plans_of(run).values() for s in plan.steps}
    bodies = Counter(body.step_id for body in world.bodies)
    attempts = Counter(record.step_id for record in run.out["evidence"] if record.skipped_because is None)
    for step_id, count in bodies.items():
        most = steps[step_id].tool_budget * attempts[step_id] if step_id in steps else 0
        if count > most:
            yield f"step {step_id} ran {count} tool bodies, its budget is {most}"
    total = len(world.bodies) + run.reads.started
    if total > limits.total_tool_budget:
        yield f"{total} tool bodies in a run with {limits.total_tool_budget}"
    if usage.tool_calls > limits.total_tool_budget:
        yield f"usage has {usage.tool_calls} tool calls of {limits.total_tool_budget}"
    if usage.tool_calls != total and not (run.cuts and usage.tool_calls > total):
        yield f"usage has {usage.tool_calls} tool calls, {total} bodies were started"
    if usage.tool_calls != sum(record.tool_calls for record in run.out["evidence"]):
        yield "usage.tool_calls is not the sum over the evidence"
    yield from writes(run)
    yield from model_calls(run)


def writes(run: Run) -> Iterator[str]:
    """The write tool runs only with arguments that a person has allowed, once for each yes."""
    world, autonomy = run.world, run.context.autonomy
    made = Counter(body.query for body in world.bodies if body.tool == "send")
    if autonomy == "all" or (world.always and autonomy == "ask"):
        return
    beyond = made - Counter(world.allowed) if autonomy == "ask" else made
    if beyond:
        yield f"written without a yes: {dict(beyond)}"


def model_calls(run: Run) -> Iterator[str]:
    world, limits = run.world, run.limits
    for (role, step_id), count in world.calls.items():
        attempts = sum(r.step_id == step_id and r.skipped_because is None for r in run.out["evidence"])
        most = (limits.max_model_calls_per_step + run.cuts) * attempts
        if role == "worker" and count > most:
            yield f"step {step_id} made {count} model calls of {most}"
    values = run.values or {}
    replans = values.get("replan_count", 0)
    most_replans = values.get("max_replans", 0) + run.revisions
    if replans > most_replans:
        yield f"{replans} replans of {most_replans}"
    asked = world.calls["replanner", ""] - world.raised["replanner", ""]
    if asked > 3 * (replans + run.cuts):
        yield f"{asked} answers of the replanner for {replans} replans"
    made = sum(world.calls.values())
    succeeded = made - sum(world.raised.values())
    usage = run.out["usage"].model_calls
    if usage > made:
        yield f"usage has {usage} model calls, {made} were made"
    if usage < succeeded and not run.cuts and not world.hostility["hang"] and not timed_out(run):
        yield f"usage has {usage} model calls, {succeeded} were answered"


def timed_out(run: Run) -> bool:
    return any(record.error_type in ("timeout", "deadline") for record in run.out["evidence"])


def carried_by(step: Step, records: dict[str, Evidence]) -> set[str]:
    return {i for d in step.depends_on if d in records and records[d].passed for i in records[d].source_ids}


def sources(run: Run) -> Iterator[str]:
    """No evidence cites what no tool of its step returned and no dependency carries."""
    records, plans = last_records(run), plans_of(run)
    own: dict[tuple[str, str], Source] = {(s.step_id, s.id): s for s in run.out["sources"]}
    for record in run.out["evidence"]:
        plan = plans.get(record.plan_version)
        carried = carried_by(plan.step(record.step_id), records) if plan else set[str]()
        for source_id in record.source_ids:
            source = own.get((record.step_id, source_id))
            if source_id not in carried and (source is None or not was_returned(run, source)):
                yield f"step {record.step_id} cites {source_id!r}, which no tool of it returned"
    for source in run.out["sources"]:
        if source.tool != "read_document" and not was_returned(run, source):
            yield f"source {source.id!r} of step {source.step_id} was never returned by {source.tool}"


def was_returned(run: Run, source: Source) -> bool:
    ran = any(b.step_id == source.step_id and b.tool == source.tool for b in run.world.bodies)
    named = source.id in run.world.returned[source.step_id]
    return ran and (named or bool(OWN_ID.fullmatch(source.id)) or "\ufffd" in source.id)


def passes(run: Run) -> Iterator[str]:
    """No step has passed without criteria met and something behind it."""
    plans = plans_of(run)
    for record in run.out["evidence"]:
        if record.passed:
            step = plans[record.plan_version].step(record.step_id)
            for problem in [*unmet(run, step, record), *unsupported(run, step, record)]:
                yield f"step {step.id} passed, and {problem}"


def unmet(run: Run, step: Step, record: Evidence) -> Iterator[str]:
    wanted = [(criterion, True) for criterion in step.success_criteria]
    if [(c.criterion, c.met) for c in record.criteria] != wanted:
        yield "its record has unmet criteria"
    if not any(sum(met) >= len(wanted) for met in run.world.verdicts[step.id]):
        yield "its worker never said that all criteria are met"
    if run.verifier not in ("", "true", "async true"):
        yield f"verify_step answered {run.verifier}"


def unsupported(run: Run, step: Step, record: Evidence) -> Iterator[str]:
    world = run.world
    tools = step.tools != [] and step.tool_budget > 0
    if record.reasoning != (not tools and not record.source_ids):
        yield f"it is{'' if record.reasoning else ' not'} marked as reasoning"
    if not tools:
        return
    if not record.source_ids and not (world.succeeded[step.id] or run.reads.started):
        yield "no tool of it has succeeded"
    tries = sum(r.step_id == step.id and r.model_calls > 0 for r in run.out["evidence"])
    if not record.source_ids and world.filled[step.id] and tries == 1:
        yield "it cites nothing of what its tools returned"
    if INVENTED_FIGURE in record.summary:
        yield "its figure stands nowhere"


def dependencies(run: Run) -> Iterator[str]:
    """What depends on a failure never ran; what has passed never ran again."""
    records, plans = last_records(run), plans_of(run)
    for record in run.out["evidence"]:
        step = plans[record.plan_version].step(record.step_id)
        optional = {s.id for s in plans[record.plan_version].steps if s.optional}
        for need in step.depends_on:
            failed = need not in records or not records[need].passed
            if failed and need not in optional and record.model_calls:
                yield f"step {step.id} ran although {need} did not pass"
    done: set[str] = set()
    for event in run.events:
        if event["type"] == "step_started" and event["step_id"] in done:
            yield f"step {event['step_id']} was started again after it had passed"
        if event["type"] == "step_finished" and event["passed"]:
            done.add(event["step_id"])
    for step_id, count in Counter(r.step_id for r in run.out["evidence"] if r.passed).items():
        if count > 1:
            yield f"step {step_id} has passed {count} times"


def versions(run: Run) -> Iterator[str]:
    """Ids are never used for another step; what passed stays in the plan."""
    seen: dict[str, Step] = {}
    for plan in plans_of(run).values():
        if plan.created_by == "replanner":
            for step in plan.steps:
                if step.id in seen and step.task != seen[step.id].task:
                    yield f"id {step.id} was used for another step"
        seen |= {step.id: step for step in plan.steps}
    plan = run.out["plan"]
    if plan is not None and plan.created_by == "replanner":
        missing = {r.step_id for r in run.out["evidence"] if r.passed} - {s.id for s in plan.steps}
        room = run.limits.max_plan_steps - len(plan.steps)
        if missing and room >= len(missing):
            yield f"passed steps {missing} are gone from the plan"


def verdict(run: Run) -> Iterator[str]:
    """A run is completed only if every step that may not fail has passed, or one that stands in for it has."""
    if run.out["status"] != "completed":
        return
    records, review = last_records(run), run.out["review"]
    if review is None or not review.approved or review.gaps:
        yield f"completed with review {review}"
    if not any(record.passed for record in records.values()):
        yield "completed, and nothing has passed"
    first: dict[str, int] = {}
    steps: dict[str, Step] = {}
    for plan in plans_of(run).values():
        for step in plan.steps:
            first.setdefault(step.id, plan.version)
            steps[step.id] = step
    closed = {i for i, record in records.items() if record.passed}
    for _ in steps:
        stands_in = ((s.replaces, s.id) for s in steps.values() if s.id in closed and s.replaces)
        closed |= {old for old, new in stands_in if old in first and first[old] < first[new]}
    final = {s.id for s in run.out["plan"].steps}
    for step_id in records:
        if step_id not in closed and not steps[step_id].optional:
            yield f"completed, and step {step_id} has failed{'' if step_id in final else ' in an earlier version'}"

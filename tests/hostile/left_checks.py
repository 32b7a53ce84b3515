"""What a run leaves: its state as it is stored, the events it has told, the time it has taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from schemas.events import RUN_EVENT
from schemas.plan import Plan
from tests.hostile.run import Run
from tests.hostile.text import texts_in

MAX_RECORD_CHARS = 60_000


def stored(run: Run) -> Iterator[str]:
    """What the checkpointer gives back is what the caller got, in the same classes, small, and valid text."""
    values = run.values or {}
    for key in ("evidence", "sources", "usage", "plan", "review", "status", "stop_reason", "final_answer"):
        if values.get(key) != run.out.get(key):
            yield f"{key} differs after the round trip"
    kept: list[Any] = [
        *values["evidence"],
        *values["sources"],
        *values["plans"],
        values["usage"],
        values["limits"],
    ]
    for item in kept:
        if not isinstance(item, BaseModel):
            yield f"came back as {type(item).__name__}"
            continue
        try:
            text = item.model_dump_json()
        except ValueError as error:
            yield f"{type(item).__name__} is not valid text: {str(error)[:100]}"
            continue
        if any("\x00" in part for part in texts_in(item.model_dump())):
            yield f"{type(item).__name__} holds NUL"
        if not isinstance(item, Plan) and len(text) > MAX_RECORD_CHARS:
            yield f"{type(item).__name__} of {len(text)} characters in the state"
        if isinstance(item, Plan) and len(text) > 20 * MAX_RECORD_CHARS:
            yield f"a plan of {len(text)} characters in the state"
    final = run.out["final_answer"]
    if "\x00" in final or final.encode("utf-8", "replace").decode() != final:
        yield "the answer is not valid text"


def events(run: Run) -> Iterator[str]:
    kinds: Counter[str] = Counter()
    for event in run.events:
        try:
            kinds[RUN_EVENT.validate_python(event).type] += 1
        except ValidationError as error:
            yield f"no RunEvent: {str(error)[:200]}"
    if kinds["run_finished"] != 1 and not run.cuts:
        yield f"run_finished came {kinds['run_finished']} times"
    finished = {
        event["step_id"] for event in run.events if event["type"] in ("step_finished", "step_skipped")
    }
    untold = {record.step_id for record in run.out["evidence"]} - finished
    if untold:
        yield f"no event told of {sorted(untold)}"


def time_taken(run: Run) -> Iterator[str]:
    """A run ends near its deadline: each role that is still asked has 30 seconds, the writer two minutes."""
    limits = run.limits
    replans = (run.values or {}).get("replan_count", 0)
    most = limits.deadline_seconds + 30 * (3 + 2 * replans + run.revisions) + 150
    if run.seconds > most * (1 + run.cuts) + 1:
        yield f"took {run.seconds:.0f} s, the deadline was {limits.deadline_seconds:.0f} s"

"""Five short documents with prices and reviews: steps end with the right source, the answer invents no number."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.live.driving import LAMPS, LIVE, lamps_in, run, unsupported_numbers, violations

pytestmark = LIVE
OBJECTIVE = "Compare the five desk lamps by price and by reviews"
GATHERING_STEPS, MOST_RUNS = 10, int(os.environ.get("LIVE_LAMP_RUNS", "6"))
# A model of half a billion parameters invents steps and evidence: of it only the invariants are asked.
RIGHT = int(os.environ.get("LIVE_RIGHT", "8"))


def gathering(out: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Return each step of the run that looks things up, and whether it ended with the right source.

    Right is: it passed, and cites the document of each lamp that its task names; one that names no lamp means all five.
    """
    plan = out["plan"] or {"steps": []}
    tasks = {s["id"]: s["task"] for s in plan["steps"] if s["tools"] != [] and s["tool_budget"] > 0}
    places = {source["id"]: source["locator"] for source in out["sources"]}
    found: list[tuple[str, bool]] = []
    for step_id, task in tasks.items():
        record = next(r for r in reversed(out["evidence"]) if r["step_id"] == step_id)
        wanted = {n for n in LAMPS if n.removesuffix(".md") in task.casefold()} or set(LAMPS)
        cited = {places[i].partition("#")[0] for i in record["source_ids"]}
        found.append((f"{step_id}: {task[:60]}", record["passed"] and wanted <= cited))
    return found


def test_gathering_steps_end_with_the_right_source_and_no_number_is_invented(
    tmp_path: Path, tell: Callable[[str], None]
) -> None:
    docs = lamps_in(tmp_path)
    steps: list[tuple[str, bool]] = []
    unmarked: list[str] = []
    for number in range(1, MOST_RUNS + 1):
        out = run(tmp_path, OBJECTIVE, docs, "--max-replans", "1")
        assert violations(out) == []
        wrong, marked = unsupported_numbers(out, OBJECTIVE)
        unmarked += wrong
        steps += gathering(out)
        tell(
            f"\nrun {number}: {out['status']}, {out['stop_reason']}; unsupported numbers: {wrong}, marked: {marked}"
        )
        tell("\n".join(f"  {'right' if right else 'wrong'}  {name}" for name, right in gathering(out)))
        tell(out["final_answer"].partition("\n## ")[0])
        if len(steps) >= GATHERING_STEPS:
            break
    right = sum(ok for _, ok in steps[:GATHERING_STEPS])
    tell(f"\n{right} of {len(steps[:GATHERING_STEPS])} gathering steps ended with the right source")
    assert unmarked == []
    assert len(steps) >= GATHERING_STEPS
    assert right >= RIGHT

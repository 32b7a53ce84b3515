"""Hostile runs whose steps start while the planner writes: the same rules hold of them."""

from __future__ import annotations

import pytest

from tests.hostile.checks import violations
from tests.hostile.run import Run, run_streamed

CHUNK = 20


def began_early(run: Run) -> bool:
    kinds = [event["type"] for event in run.events]
    planned = kinds.index("plan_ready") if "plan_ready" in kinds else len(kinds)
    return "step_started" in kinds[:planned]


@pytest.mark.parametrize("first", range(0, 80, CHUNK))
def test_every_run_ends_in_order_whatever_the_planner_streams(first: int) -> None:
    runs = [run_streamed(seed) for seed in range(first, first + CHUNK)]
    found = {run.seed: lines for run in runs if (lines := violations(run))}
    assert not found
    assert sum(map(began_early, runs)) > CHUNK / 3

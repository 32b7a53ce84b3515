"""The command against a real model: it ends, in order, whatever the model answers.

AGENT_MODEL and OPENAI_BASE_URL name the model, else this is skipped. A small model fails often: what is asserted is
what must hold of every run. Each prints its tally.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.driving import COMPETITORS, LIVE, MODEL, answer_of, lamps_in, planweave, run, violations

pytestmark = LIVE
OBJECTIVE = "Compare these five vendors over their last two releases and recommend how to enter the market"


def test_doctor_ends_well(tmp_path: Path, tell: Callable[[str], None]) -> None:
    done = planweave(tmp_path, "doctor")
    tell(done.stdout)
    assert done.returncode == 0, done.stdout
    assert "json_schema" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "objective",
    ["What does the Birch lamp cost?", "Compare the Alder lamp and the Elm lamp by price and by reviews"],
)
def test_a_run_ends_well(tmp_path: Path, tell: Callable[[str], None], objective: str) -> None:
    out = run(tmp_path, objective, lamps_in(tmp_path), "--max-replans", "1")
    tell(f"\n{objective}: {out['status']}, {out['stop_reason']}\n{out['final_answer']}")
    assert violations(out) == []


def test_the_demo_ends_with_valid_citations(tmp_path: Path, tell: Callable[[str], None]) -> None:
    out = run(tmp_path, OBJECTIVE, COMPETITORS, "--max-replans", "1")
    body, places = answer_of(out)
    passed = sum(record["passed"] for record in out["evidence"])
    tell(f"\n{MODEL}: {out['status']}, {out['stop_reason']}, {passed} of {len(out['evidence'])} steps passed")
    tell(f"{len(places)} sources cited\n{out['final_answer']}")
    assert violations(out) == []
    assert body.strip()

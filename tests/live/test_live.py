"""The command against a real model, whatever it answers: AGENT_MODEL and OPENAI_BASE_URL name it, else this is skipped.

A small model fails often. What is asserted is what must hold of every run: it ends, in order, with an answer that cites
only what was found and states no number that is not there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MODEL, SERVER = os.environ.get("AGENT_MODEL"), os.environ.get("OPENAI_BASE_URL")
pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not (MODEL and SERVER),
        reason="no real model: set AGENT_MODEL and OPENAI_BASE_URL to try the command against one",
    ),
]
LAMPS = {
    "alder.md": "# Alder lamp\n\nPrice: 49 EUR.\n\nReviews: 4.5 of 5 stars, 120 buyers. The cable is short.",
    "birch.md": "# Birch lamp\n\nPrice: 35 EUR.\n\nReviews: 3.8 of 5 stars, 64 buyers. The base is loose.",
    "cedar.md": "# Cedar lamp\n\nPrice: 79 EUR.\n\nReviews: 4.8 of 5 stars, 31 buyers. The dimmer is praised.",
    "delphi.md": "# Delphi lamp\n\nPrice: 22 EUR.\n\nReviews: 2.9 of 5 stars, 210 buyers. The switch breaks.",
    "elm.md": "# Elm lamp\n\nPrice: 58 EUR.\n\nReviews: 4.1 of 5 stars, 87 buyers. It works without a cable.",
}


def planweave(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PLANWEAVE_MAX_OUTPUT_TOKENS": "1000",
        "OPENAI_API_KEY": "not-needed",
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PLANWEAVE_HOME": str(folder / "runs"),
    }
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
        timeout=1700,
    )


def run(folder: Path, objective: str, docs: Path) -> dict[str, Any]:
    done = planweave(folder, "run", objective, "--docs", str(docs), "--json", "--max-replans", "1")
    assert done.returncode in (0, 3, 4), done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def holds(out: dict[str, Any]) -> None:
    """Assert what must hold of every run that has ended."""
    assert out["status"] in ("completed", "partial", "failed")
    assert out["stop_reason"]
    assert out["final_answer"]
    known = {source["id"] for source in out["sources"]}
    for record in out["evidence"]:
        if record["passed"] and not record["reasoning"]:
            assert set(record["source_ids"]) <= known
    assert (out["status"] == "failed") == (not any(record["passed"] for record in out["evidence"]))
    body, _, listed = out["final_answer"].partition("\n## ")
    cited = {int(n) for n in re.findall(r"\[(\d{1,3})\]", body)}
    assert cited <= {int(n) for n in re.findall(r"(?m)^(\d+)\. ", listed)}


def test_doctor_ends_well(tmp_path: Path) -> None:
    done = planweave(tmp_path, "doctor")
    assert done.returncode == 0, done.stdout
    assert "json_schema" in done.stdout


def test_five_short_documents(tmp_path: Path) -> None:
    docs = tmp_path / "lamps"
    docs.mkdir()
    for name, text in LAMPS.items():
        (docs / name).write_text(text)
    out = run(tmp_path, "Compare the five desk lamps by price and by reviews", docs)
    holds(out)
    texts = " ".join(source["excerpt"] for source in out["sources"]) + " ".join(LAMPS.values())
    for line in out["final_answer"].partition("\n## ")[0].splitlines():
        unsupported = [n for n in re.findall(r"\d+(?:\.\d+)?(?= ?(?:EUR|€|stars))", line) if n not in texts]
        assert not unsupported or "⚠" in line, line


def test_the_example(tmp_path: Path) -> None:
    holds(run(tmp_path, "What does the Team plan of Brindlepath cost?", ROOT / "examples" / "competitors"))

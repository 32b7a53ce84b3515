"""Runs against a real model, and what must hold of each, whatever the model answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.claims import number_key, number_keys

ROOT = Path(__file__).parents[2]
COMPETITORS = ROOT / "examples" / "competitors"
MODEL, SERVER = os.environ.get("AGENT_MODEL"), os.environ.get("OPENAI_BASE_URL")
LIVE = [
    pytest.mark.live,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(
        not (MODEL and SERVER),
        reason="no real model: set AGENT_MODEL and OPENAI_BASE_URL to try planweave against one",
    ),
]
# A model on a small machine writes a few words a second, and answers one request at a time.
PATIENT = {
    "PLANWEAVE_MAX_OUTPUT_TOKENS": "800",
    "PLANWEAVE_MODEL_TIMEOUT_SECONDS": "900",
    "PLANWEAVE_MAX_MODEL_CONCURRENCY": "1",
    "OPENAI_API_KEY": "not-needed",
}
SLOWLY = ("--max-parallel", "1", "--min-step-timeout", "900", "--deadline", "6000")
LAMPS = {
    "alder.md": "# Alder lamp\n\nPrice: 49 EUR.\n\nReviews: 4.5 of 5 stars, 120 buyers. The cable is short.",
    "birch.md": "# Birch lamp\n\nPrice: 35 EUR.\n\nReviews: 3.8 of 5 stars, 64 buyers. The base is loose.",
    "cedar.md": "# Cedar lamp\n\nPrice: 79 EUR.\n\nReviews: 4.8 of 5 stars, 31 buyers. The dimmer is praised.",
    "delphi.md": "# Delphi lamp\n\nPrice: 22 EUR.\n\nReviews: 2.9 of 5 stars, 210 buyers. The switch breaks.",
    "elm.md": "# Elm lamp\n\nPrice: 58 EUR.\n\nReviews: 4.1 of 5 stars, 87 buyers. It works without a cable.",
}
_CITED = re.compile(r"\[(\d{1,3})\]")
# Citations, and the numbers of a list's lines.
_NO_CLAIM = re.compile(r"\[\d+\]|^\s*(?:[-*#]+\s+)?\d+[.)]\s")


def lamps_in(folder: Path) -> Path:
    """Write the five documents; return their folder."""
    docs = folder / "lamps"
    docs.mkdir(exist_ok=True)
    for name, text in LAMPS.items():
        (docs / name).write_text(text, encoding="utf-8")
    return docs


def planweave(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with a home of its own."""
    own = {"PYTHONPATH": str(ROOT), "PLANWEAVE_HOME": str(folder / "runs")}
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        capture_output=True,
        text=True,
        env={**PATIENT, **os.environ, **own},
        cwd=folder,
        check=False,
        timeout=7000,
    )


def run(folder: Path, objective: str, docs: Path, *more: str) -> dict[str, Any]:
    """Carry out an objective by the command; return its output."""
    done = planweave(folder, "run", objective, "--docs", str(docs), "--json", *SLOWLY, *more)
    assert done.returncode in (0, 3, 4), done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def violations(out: Mapping[str, Any]) -> list[str]:
    """Return what an output breaks of what holds for every run that has ended."""
    return [*_ending(out), *_steps(out), *_citations(out)]


def _ending(out: Mapping[str, Any]) -> Iterator[str]:
    if out["status"] not in ("completed", "partial", "failed"):
        yield f"status {out['status']!r}"
    if not out["stop_reason"]:
        yield "no stop_reason"
    if not str(out["final_answer"]).strip():
        yield "no final_answer"
    if (out["status"] == "failed") != (not any(record["passed"] for record in out["evidence"])):
        yield f"{out['status']} does not fit the evidence"
    if (out["status"] == "completed") != (out["stop_reason"] == "approved"):
        yield f"{out['status']} as {out['stop_reason']}"


def _steps(out: Mapping[str, Any]) -> Iterator[str]:
    known = {source["id"] for source in out["sources"]}
    for record in out["evidence"]:
        name = record["step_id"]
        if record["passed"] and not all(c["met"] for c in record["criteria"]):
            yield f"{name} passed with an unmet criterion"
        if not known.issuperset(record["source_ids"]):
            yield f"{name} cites what is no source"
        if record["passed"] and not record["reasoning"] and not record["source_ids"] and not record["calls"]:
            yield f"{name} passed without anything behind it"
    if out["usage"]["tool_calls"] != sum(record["tool_calls"] for record in out["evidence"]):
        yield "the tool calls do not add up"


def _citations(out: Mapping[str, Any]) -> Iterator[str]:
    body, places = answer_of(out)
    for number in {int(n) for n in _CITED.findall(body)}:
        if not 1 <= number <= len(places):
            yield f"[{number}] points to nothing"
    locators = [" ".join(source["locator"].split()) for source in out["sources"]]
    for place in places:
        if not any(locator in place for locator in locators):
            yield f"listed, but no source: {place[:100]!r}"


def answer_of(out: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the answer's own text, and the lines of its list of sources."""
    body, _, rest = str(out["final_answer"]).partition("\n## ")
    heading, _, listed = rest.partition("\n")
    if heading.strip() not in ("Sources", "来源"):
        return body, []
    return body, re.findall(r"(?m)^\d+\. (.*)$", listed.partition("\n## ")[0])


def unsupported_numbers(
    out: Mapping[str, Any], neutral: str = "", *, cited_only: bool = True
) -> tuple[list[str], list[str]]:
    """Return the numbers of the answer that no cited source's excerpt holds: those without a mark, those with one.

    Every number counts, single digits too. A run without findings has no answer of the writer's: code says why.

    Args:
        out: of a run.
        neutral: text whose numbers state nothing: the objective's.
        cited_only: whether a number must be in a source that the answer cites, or in any that the run has found.
    """
    if out["status"] == "failed":
        return [], []
    body, places = answer_of(out)
    cited = {int(n) for n in _CITED.findall(body)}
    lines = [places[n - 1] for n in cited if 0 < n <= len(places)]
    listed = [s for s in out["sources"] if any(" ".join(s["locator"].split()) in line for line in lines)]
    sources = listed if cited_only else out["sources"]
    held = number_keys("\n".join([neutral, *(f"{s['title']}\n{s['excerpt']}" for s in sources)]))
    open_, marked = list[str](), list[str]()
    for line in body.splitlines():
        said = _NO_CLAIM.sub(" ", line.partition("⚠")[0])
        wrong = [n for n in re.findall(r"\d+(?:[.,]\d+)*", said) if number_key(n) not in held]
        (marked if "⚠" in line else open_).extend(wrong)
    return open_, marked

"""The wiring: every edge is drawn, imports run one way, and one writer stands behind each key of the state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from graph import build_graph
from tests.scripted import models

ROOT = Path(__file__).parents[2]

EDGES = {
    ("__start__", "plan"),
    ("plan", "clarify"),
    ("plan", "approve"),
    ("plan", "schedule"),
    ("plan", "finish"),
    ("clarify", "plan"),
    ("approve", "schedule"),
    ("approve", "plan"),
    ("approve", "replan"),
    ("approve", "finish"),
    ("schedule", "execute"),
    ("schedule", "review"),
    ("execute", "schedule"),
    ("review", "replan"),
    ("review", "escalate"),
    ("review", "finish"),
    ("escalate", "schedule"),
    ("escalate", "replan"),
    ("escalate", "finish"),
    ("replan", "approve"),
    ("replan", "schedule"),
    ("replan", "finish"),
    ("finish", "__end__"),
}
MERMAID = """\
graph TD;
	__start__([<p>__start__</p>]):::first
	plan(plan)
	clarify(clarify)
	approve(approve)
	schedule(schedule)
	execute(execute)
	review(review)
	replan(replan)
	escalate(escalate)
	finish(finish)
	__end__([<p>__end__</p>]):::last
	__start__ --> plan;
	approve -.-> finish;
	approve -.-> plan;
	approve -.-> replan;
	approve -.-> schedule;
	clarify --> plan;
	escalate -.-> finish;
	escalate -.-> replan;
	escalate -.-> schedule;
	execute --> schedule;
	plan -.-> approve;
	plan -.-> clarify;
	plan -.-> finish;
	plan -.-> schedule;
	replan -.-> approve;
	replan -.-> finish;
	replan -.-> schedule;
	review -.-> escalate;
	review -.-> finish;
	review -.-> replan;
	schedule -.-> execute;
	schedule -.-> review;
	finish --> __end__;
"""


def test_the_picture_of_the_graph() -> None:
    text = build_graph(models()).get_graph().draw_mermaid()
    drawn = text[text.index("graph TD") : text.index("\tclassDef")]
    assert drawn == MERMAID


def test_every_edge_is_known_to_the_graph() -> None:
    drawn = {(edge.source, edge.target) for edge in build_graph(models()).get_graph().edges}
    assert drawn == EDGES


def test_the_inputs_form_asks_for_the_objective_alone() -> None:
    schema = build_graph(models()).get_input_jsonschema()
    assert list(schema["properties"]) == ["objective"]


def test_every_choice_of_a_run_is_described() -> None:
    schema = build_graph(models()).get_context_jsonschema()
    assert schema is not None
    for name in ("RunContext", "RunLimits"):
        fields = schema.get("$defs", {}).get(name, schema)["properties"]
        assert all("description" in field for field in fields.values()), name


def test_imports_run_one_way() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_only_the_settings_read_the_environment() -> None:
    for folder in ("schemas", "tools", "agents", "nodes", "graph", "cli"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if path.name != "settings.py":
                assert "os.environ" not in text, path
                assert "getenv" not in text, path


def test_building_opens_nothing_and_needs_no_key() -> None:
    code = "import socket; socket.socket.connect = None; from graph import build_graph; g = build_graph(); build_graph(); print(g.name)"
    env = {k: v for k, v in os.environ.items() if "KEY" not in k and k != "AGENT_MODEL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "planweave", "")

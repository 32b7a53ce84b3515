"""C46: the exported graph is imported with no key and no network, in a running loop, twice, and opens nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import asyncio, importlib, json, os, socket, sys, threading

def refused(*args, **kwargs):
    raise AssertionError("the import opened a connection")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused

def held():
    return sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                  if os.path.exists(f"/proc/self/fd/{fd}")) if os.path.exists("/proc/self/fd") else []

async def main():
    before = held()
    exported = importlib.import_module("graph.exported")
    again = importlib.reload(exported)
    print(json.dumps({
        "opened": [name for name in held() if name not in before],
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "checkpointer": exported.graph.checkpointer is not None,
        "offline": exported.graph.offline,
        "tools": exported.graph.registry.names(),
    }))

asyncio.run(main())
"""


def imported(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_", "OPENAI_", "PLANWEAVE_"))}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT)} | env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_c46_the_exported_graph_is_imported_in_a_running_loop_twice_and_opens_nothing(tmp_path: Path) -> None:
    ended = imported(tmp_path)
    assert ended.stderr == ""
    found = json.loads(ended.stdout)
    tools = found.pop("tools")
    assert found == {"opened": [], "tasks": 1, "threads": 1, "checkpointer": False, "offline": True}
    assert {"search_documents", "read_document"} <= set(tools)
    assert list(tmp_path.iterdir()) == []


def test_c46_folders_from_the_settings_take_the_place_of_the_example(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text("# One\n\ntext\n")
    ended = imported(tmp_path, PLANWEAVE_DOCS="docs", PLANWEAVE_ROOT="docs")
    assert {"search_documents", "list_files"} <= set(json.loads(ended.stdout)["tools"])


def test_c46_langgraph_json_names_the_exported_graph() -> None:
    named = json.loads((ROOT / "langgraph.json").read_text())["graphs"]["planweave"]
    path, _, name = named.partition(":")
    assert (ROOT / path).samefile(ROOT / "graph" / "exported.py")
    assert name == "graph"

"""Studio's view: a real `langgraph dev` on loopback, asked through langgraph_sdk, as Studio and chat front ends ask it."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client

from schemas.context import RunContext
from schemas.events import RUN_EVENT, PlanReady, RunFinished, RunStarted, StepFinished
from schemas.limits import RunLimits

pytestmark = pytest.mark.skipif(
    find_spec("langgraph_api") is None or find_spec("langgraph_cli") is None,
    reason="the [studio] extra is not installed: pip install -e '.[studio]'",
)

ROOT = Path(__file__).parents[2]
OBJECTIVE = "Compare these five vendors over their last two releases and recommend how to enter the market"
WITHOUT_PRICE = "ostrevo"
READY_SECONDS = 60
STOP_SECONDS = 10
# A developer's own model, keys and folders are not what is tested here.
OURS = ("AGENT_", "OPENAI_", "PLANWEAVE_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "NO_PROXY", "ALL_PROXY")
EDGES = {
    ("__start__", "plan", False),
    ("plan", "approve", True),
    ("plan", "schedule", True),
    ("plan", "finish", True),
    ("approve", "schedule", True),
    ("approve", "plan", True),
    ("approve", "replan", True),
    ("approve", "finish", True),
    ("schedule", "execute", True),
    ("schedule", "review", True),
    ("execute", "schedule", False),
    ("review", "replan", True),
    ("review", "finish", True),
    ("replan", "approve", True),
    ("replan", "schedule", True),
    ("replan", "finish", True),
    ("finish", "__end__", False),
}


@dataclass(frozen=True)
class Server:
    """A running dev server.

    Attributes:
        ask: the SDK's client.
        log: file of the server's log, one JSON object per line, with some plain lines at the start.
        proxy: listens where the server is told to send everything that is not on loopback.
    """

    ask: Any
    log: Path
    proxy: socket.socket

    def state(self, thread_id: str) -> dict[str, Any]:
        return self.ask.threads.get_state(thread_id)

    def run(self, thread_id: str, **kwargs: Any) -> dict[str, Any]:
        """Run to the end or to a pause, and return the thread's state."""
        self.ask.runs.wait(thread_id, "planweave", **kwargs)
        return self.state(thread_id)

    def new_thread(self) -> str:
        return self.ask.threads.create()["thread_id"]


@dataclass(frozen=True)
class Demo:
    """The demo objective, run on a thread of its own; `parts` is what the stream brought, in order."""

    thread_id: str
    parts: list[Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # The folder is not the checkout: a .env and the threads of a developer's own Studio lie there.
    folder = tmp_path_factory.mktemp("studio")
    log = folder / "server.log"
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        proxy.settimeout(0)
        port = free_port()
        process = start(folder, log, port, proxy.getsockname()[1])
        stack.callback(stop, process)
        wait_until_ready(process, log, port)
        # The user's own proxy settings would send even loopback elsewhere.
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("NO_PROXY", "127.0.0.1")
        ask = stack.enter_context(get_sync_client(url=f"http://127.0.0.1:{port}", api_key=None, timeout=60))
        yield Server(ask, log, proxy)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def start(folder: Path, log: Path, port: int, proxy_port: int) -> "subprocess.Popen[bytes]":
    """Start the server on the repository's own langgraph.json, with nothing written to the checkout."""
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    config["graphs"] = {name: str(ROOT / path) for name, path in config["graphs"].items()}
    config["disable_persistence"] = True
    config["env"] = config["env"] if isinstance(config.get("env"), dict) else {}
    (folder / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    command = [Path(sys.executable).parent / "langgraph", "dev", "--no-browser", "--no-reload"]
    with log.open("wb") as output:
        return subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment(proxy_port),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def environment(proxy_port: int) -> dict[str, str]:
    proxy = f"http://127.0.0.1:{proxy_port}"
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(OURS)}
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        kept |= {name: proxy, name.lower(): proxy}
    return kept | {
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONPATH": str(ROOT),
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LOG_JSON": "true",
    }


def wait_until_ready(process: "subprocess.Popen[bytes]", log: Path, port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"langgraph dev ended with {process.returncode}:\n{log.read_text()[-3000:]}")
        if is_ready(port):
            return
        time.sleep(0.1)
    pytest.fail(f"langgraph dev was not ready after {READY_SECONDS} s:\n{log.read_text()[-3000:]}")


def is_ready(port: int) -> bool:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/ok")
            return connection.getresponse().status == 200
        except OSError:
            return False


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop the server and whatever it has started, however the tests have ended."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


@pytest.fixture(scope="module")
def assistant(server: Server) -> str:
    (only,) = server.ask.assistants.search()
    assert only["graph_id"] == "planweave"
    return only["assistant_id"]


@pytest.fixture(scope="module")
def demo(server: Server) -> Demo:
    thread_id = server.new_thread()
    parts = server.ask.runs.stream(
        thread_id, "planweave", input={"objective": OBJECTIVE}, stream_mode=["custom", "updates"]
    )
    return Demo(thread_id, list(parts))


def test_studio_draws_every_node_and_edge(server, assistant):
    drawn = server.ask.assistants.get_graph(assistant)
    edges = {(e["source"], e["target"], e.get("conditional", False)) for e in drawn["edges"]}
    assert edges >= EDGES
    # Without path maps a node that routes would be drawn as a dead end.
    nodes = {node["id"] for node in drawn["nodes"]}
    assert nodes - {source for source, _, _ in edges} == {"__end__"}
    assert nodes - {target for _, target, _ in edges} == {"__start__"}


def test_the_input_form_asks_for_one_thing_the_objective(server, assistant):
    schema = server.ask.assistants.get_schemas(assistant)["input_schema"]
    assert list(schema["properties"]) == ["objective"]
    assert schema["properties"]["objective"]["description"]


def test_the_context_form_describes_every_choice(server, assistant):
    schema = server.ask.assistants.get_schemas(assistant)["context_schema"]
    assert (
        set(schema["properties"])
        == set(RunContext.model_fields)
        >= {
            "mode",
            "review_plan",
            "on_gaps",
            "limits",
        }
    )
    limits = schema["$defs"]["RunLimits"]["properties"]
    assert set(limits) == set(RunLimits.model_fields)
    for name, field in {**schema["properties"], **limits}.items():
        assert field.get("description"), f"{name} has no description"


def test_invariant_19_progress_is_visible_while_it_happens(demo):
    assert [part.data for part in demo.parts if part.event == "error"] == []
    events = [RUN_EVENT.validate_python(part.data) for part in demo.parts if part.event == "custom"]
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert any(isinstance(event, PlanReady) for event in events)
    first_done = next(
        n for n, part in enumerate(demo.parts) if part.event == "custom" and is_step_finished(part)
    )
    reviewed = next(
        n for n, part in enumerate(demo.parts) if part.event == "updates" and "review" in part.data
    )
    assert first_done < reviewed


def is_step_finished(part: Any) -> bool:
    return isinstance(RUN_EVENT.validate_python(part.data), StepFinished)


def test_the_demo_ends_with_evidence_and_the_missing_price_named(server, demo):
    state = server.state(demo.thread_id)
    values = state["values"]
    assert state["next"] == []
    assert (values["status"], bool(values["stop_reason"])) == ("partial", True)
    cited = {source_id for record in values["evidence"] for source_id in record["source_ids"]}
    assert cited
    assert cited <= {source["id"] for source in values["sources"]}
    _, _, gaps = values["final_answer"].partition("## Open gaps")
    assert WITHOUT_PRICE in gaps
    assert "pric" in gaps


def test_the_history_has_a_checkpoint_for_each_stage(server, demo):
    history = server.ask.threads.get_history(demo.thread_id, limit=100)
    waiting = [set(checkpoint["next"]) for checkpoint in reversed(history)]
    assert waiting[0] == {"__start__"}
    assert waiting[-1] == set()
    for node in ("plan", "schedule", "execute", "review", "replan", "finish"):
        assert {node} in waiting


def test_a_run_started_with_messages_works_the_same_and_a_second_one_starts_clean(server, demo):
    """Invariant 14, as a chat front end lives it: each message on the thread is a new objective."""
    thread_id = server.new_thread()
    first = server.run(thread_id, input=chat(OBJECTIVE))["values"]
    assert first["final_answer"] == server.state(demo.thread_id)["values"]["final_answer"]
    assert (first["messages"][-1]["type"], first["messages"][-1]["content"]) == ("ai", first["final_answer"])

    second = server.run(thread_id, input=chat("What does tarnwick cost?"))["values"]
    assert [message["type"] for message in second["messages"]] == ["human", "ai", "human", "ai"]
    assert second["objective"] == "What does tarnwick cost?"
    assert second["plans"][0]["version"] == 1
    assert len(second["evidence"]) < len(first["evidence"])


def chat(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def test_a_plan_waits_for_approval_asks_again_on_a_wrong_answer_and_runs_when_approved(server):
    thread_id = server.new_thread()
    paused = server.run(thread_id, input={"objective": OBJECTIVE}, context={"review_plan": "first"})
    question = only_question(paused)
    assert question["error"] is None
    assert paused["values"]["evidence"] == []

    again = server.run(thread_id, command={"resume": {"decision": "perhaps"}})
    asked_again = only_question(again)
    assert asked_again["error"]
    assert asked_again["fingerprint"] == question["fingerprint"]
    assert again["values"]["evidence"] == []

    done = server.run(thread_id, command={"resume": {"decision": "approve"}})
    assert done["interrupts"] == []
    assert done["values"]["status"] == "partial"
    assert done["values"]["plans"][0]["fingerprint"] == question["fingerprint"]


def only_question(state: dict[str, Any]) -> dict[str, Any]:
    assert state["next"] == ["approve"]
    (interrupt,) = state["interrupts"]
    assert interrupt["value"]["kind"] == "approve"
    return interrupt["value"]


def test_invariant_13_a_run_stopped_by_its_person_goes_on_without_repeating_a_step(server):
    thread_id = server.new_thread()
    run_id, finished = "", set[str]()
    for part in server.ask.runs.stream(
        thread_id, "planweave", input={"objective": OBJECTIVE}, stream_mode=["custom"]
    ):
        if part.event == "metadata":
            run_id = part.data["run_id"]
        if part.event == "custom" and is_step_finished(part):
            finished.add(part.data["step_id"])
            if len(finished) == 1:
                server.ask.runs.cancel(thread_id, run_id)
    stopped = server.state(thread_id)["values"]
    assert (stopped["status"], stopped["final_answer"]) == ("running", "")

    parts = list(server.ask.runs.stream(thread_id, "planweave", input=None, stream_mode=["custom"]))
    assert [part.data for part in parts if part.event == "error"] == []
    started = {part.data["step_id"] for part in parts if part.data.get("type") == "step_started"}
    assert started & finished == set()
    values = server.state(thread_id)["values"]
    runs = [(run["run_id"], run["status"]) for run in server.ask.runs.list(thread_id)]
    assert values["status"] == "partial", (runs, run_id, parts[-3:])
    assert len({record["step_id"] for record in values["evidence"]}) == len(values["evidence"])


def test_a_mistake_is_named_to_the_front_end(server):
    parts = list(server.ask.runs.stream(server.new_thread(), "planweave", input=chat("  ")))
    (error,) = [part.data for part in parts if part.event == "error"]
    assert error["error"] == "InputError"
    assert "objective" in error["message"]


def test_invariant_16_the_server_reads_checkpoints_without_a_warning(server, demo):
    """The server brings its own checkpointer; ours is not the one whose serializer knows our classes."""
    lines = server.log.read_text(encoding="utf-8").splitlines()
    said = [json.loads(line) for line in lines if line.startswith("{")]
    troubles = [line for line in said if line["level"] not in ("debug", "info")]
    # A type is warned about once per process, whichever thread comes first.
    ours = [t for t in troubles if t.get("thread_id") == demo.thread_id or "msgpack" in t["event"]]
    assert [trouble["event"] for trouble in ours] == []


def test_the_server_and_the_run_reach_for_nothing_outside(server, demo):
    assert calls(server.proxy) == []


def calls(proxy: socket.socket) -> list[bytes]:
    """Return the first bytes of each connection that came."""
    came: list[bytes] = []
    with contextlib.suppress(BlockingIOError):
        while True:
            connection, _ = proxy.accept()
            with connection:
                connection.settimeout(5)
                came.append(connection.recv(200))
    return came

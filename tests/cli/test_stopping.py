"""SIGTERM and Ctrl-C in a process of its own: running tool calls end, nothing new begins, and a resume repeats nothing."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Here
from tests.cli.endpoint import Brief, Endpoint, Reply, finding_of, step
from tests.cli.holding import SPEC, lines

Process = subprocess.Popen[str]
PLAN = {"goal": "g", "steps": [step(name, *needs, tools=["hold"]) for name, *needs in ("a", "b", "ca")]}
STOPPED = "stopped; what has finished is kept: planweave resume t"


def two_calls(brief: Brief) -> Reply:
    name, turn = brief["step"]["id"], brief["turns"]
    if turn < 2:
        return "hold", {"query": f"{name}{turn + 1}"}
    return finding_of(brief, f"s-{name}1", f"s-{name}2")


class Calls:
    """The tool calls of the run's process, as its log tells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def let_go(self, *queries: str) -> None:
        for query in queries:
            (self.folder / query).touch()

    def wait_for(self, *wanted: str) -> None:
        until(lambda: set(wanted) <= set(lines(self.folder)))

    def counts(self) -> dict[str, int]:
        said = lines(self.folder)
        return {line: said.count(line) for line in sorted(said)}


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(PLAN) as endpoint:
        endpoint.finding = two_calls
        yield endpoint


@pytest.fixture
def calls(tmp_path: Path, env: dict[str, str], endpoint: Endpoint) -> Calls:
    env |= endpoint.environment | {"HOLD_FOLDER": str(tmp_path / "hold"), "PLANWEAVE_TOOLS": SPEC}
    return Calls(tmp_path / "hold")


@contextmanager
def run(env: dict[str, str], cwd: Path) -> Iterator[Process]:
    command = [*COMMAND, "run", "x", "--thread", "t"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, env=env, cwd=cwd, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def resumed(calls: Calls, env: dict[str, str], cwd: Path) -> dict[str, int]:
    calls.let_go("a1", "a2", "b1", "b2", "c1", "c2")
    done = subprocess.run([*COMMAND, "resume", "t"], env=env, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return calls.counts()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_lets_running_tool_calls_end_and_begins_nothing_more(
    number: signal.Signals, code: int, calls: Calls, endpoint: Endpoint, env: dict[str, str], tmp_path: Path
) -> None:
    with run(env, tmp_path) as process:
        calls.wait_for("start a1", "start b1")
        process.send_signal(number)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("stopping: waiting up to 20 s for 2 running tool call")
        calls.let_go("a1", "a2", "b2", "c1", "c2")
        calls.wait_for("end a1")
        # The worker of a asks for its next call, which is held back.
        until(lambda: any(r["role"] == "worker" and r["turns"] == 1 for r in endpoint.requests))
        calls.let_go("b1")
        _, said = process.communicate(timeout=30)
    assert process.returncode == code
    assert said.splitlines() == [STOPPED]
    assert calls.counts() == {"end a1": 1, "end b1": 1, "start a1": 1, "start b1": 1}
    assert set(resumed(calls, env, tmp_path).values()) == {1}


def test_what_does_not_end_in_its_grace_is_cut_off_and_runs_again(
    calls: Calls, env: dict[str, str], tmp_path: Path
) -> None:
    with run(env | {"PLANWEAVE_GRACE_SECONDS": "0.1"}, tmp_path) as process:
        calls.let_go("a1")
        calls.wait_for("end a1", "start a2", "start b1")
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert process.returncode == 143
    assert said.splitlines()[1:] == ["2 tool call(s) did not end in time and were cut off", STOPPED]
    counts = resumed(calls, env, tmp_path)
    # hold only reads: cut off, it is made again. What had ended is not.
    assert (counts["start a1"], counts["start a2"], counts["start b1"]) == (1, 2, 2)
    assert all(count == 1 for line, count in counts.items() if line.startswith("end"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_leaves_at_once(
    number: signal.Signals, calls: Calls, env: dict[str, str], tmp_path: Path, here: Here
) -> None:
    with run(env, tmp_path) as process:
        calls.wait_for("start a1", "start b1")
        process.send_signal(number)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("stopping")
        process.send_signal(number)
        assert process.wait(timeout=10) == -number
    assert "interrupted" in here("threads")[1]
    counts = resumed(calls, env, tmp_path)
    assert all(count == 1 for line, count in counts.items() if line.startswith("end"))


def test_a_run_that_ends_while_it_is_to_stop_has_ended(
    calls: Calls, endpoint: Endpoint, env: dict[str, str], tmp_path: Path
) -> None:
    endpoint.plans = [{"goal": "g", "steps": [step("a", tools=["hold"], timeout_seconds=10)]}]
    with run(env, tmp_path) as process:
        calls.let_go("a1")
        calls.wait_for("start a2")
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.readline().startswith("stopping")
        calls.let_go("a2")
        process.communicate(timeout=30)
    # Whichever was first: the end, or the stop after the last call.
    assert process.returncode in (0, 143)
    assert calls.counts() == {"end a1": 1, "end a2": 1, "start a1": 1, "start a2": 1}

"""The graph of langgraph.json on an Agent Server engine: several servers, one Postgres, one queue, and kill -9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent_server.environment import Unavailable, agent_server_python
from tests.agent_server.served import CALLS
from tests.agent_server.servers import SHORT_LEASES, Cluster, Server, cluster, wait_for

pytestmark = pytest.mark.timeout(900)  # the first time, an environment is made
RUNS = 10
AT_THE_GATE = ("a2", "b2")


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return agent_server_python()
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def two(python: Path, tmp_path: Path) -> Iterator[Cluster]:
    gate = str(tmp_path / "gate")
    with cluster(python, tmp_path, N_JOBS_PER_WORKER="5", PLANWEAVE_TEST_GATE=gate, **SHORT_LEASES) as found:
        found.start()
        found.start()
        yield found


def started(found: Cluster) -> list[tuple[str, int]]:
    return [(call, pid) for word, call, pid in found.bodies() if word == "start"]


def kill_one_at_the_gate(found: Cluster, waiting: int) -> tuple[Server, set[str]]:
    """Wait until so many calls wait at the gate, kill the server with the last of them, and open the gate.

    Returns:
        The server that is left, and the calls that were running on the other one.
    """

    def at_gate() -> list[tuple[str, int]]:
        return [(call, pid) for call, pid in started(found) if call.endswith(AT_THE_GATE)]

    wait_for(lambda: len(at_gate()) == waiting, 60)
    pid = at_gate()[-1][1]
    (victim,) = (server for server in found.servers if server.process.pid == pid)
    (left,) = (server for server in found.servers if server is not victim)
    cut_off = {call for call, owner in at_gate() if owner == pid}
    victim.kill()
    found.open_gate()
    return left, cut_off


def test_ten_runs_complete_when_a_server_is_killed_and_no_finished_call_is_repeated(two: Cluster) -> None:
    first, _ = two.servers
    threads = [first.new_thread() for _ in range(RUNS)]
    runs = [first.submit(thread, input={"objective": f"r{n}"}) for n, thread in enumerate(threads)]
    left, cut_off = kill_one_at_the_gate(two, RUNS * len(AT_THE_GATE))
    assert 0 < len(cut_off) < RUNS * len(AT_THE_GATE), "both servers had work"

    ended = [left.ended(thread, run) for thread, run in zip(threads, runs, strict=True)]
    assert {run["status"] for run in ended} == {"success"}, [run["error_message"] for run in ended]
    starts = Counter(call for call, _ in started(two))
    # Every first call had been recorded as finished: else its step would not have been at the second.
    assert {call for call, times in starts.items() if times > 1} == cut_off
    assert set(starts.values()) == {1, 2}
    ends = Counter(call for word, call, _ in two.bodies() if word == "end")
    assert ends == {f"r{n}/{call}": 1 for n in range(RUNS) for step in CALLS.values() for call in step}
    for number, thread in enumerate(threads):
        values = left.values(thread)
        assert values["status"] == "completed"
        assert [e["step_id"] for e in values["evidence"]] == list(CALLS)
        mine = sum(times for call, times in starts.items() if call.startswith(f"r{number}/"))
        assert values["usage"]["tool_calls"] == mine


def test_a_run_that_goes_on_after_an_answer_survives_the_kill_too(two: Cluster) -> None:
    first, _ = two.servers
    thread = first.new_thread()
    run = first.submit(thread, input={"objective": "r"}, context={"review_plan": "first"})
    assert first.ended(thread, run)["status"] == "interrupted"
    run = first.submit(thread, command={"resume": {"decision": "approve"}})
    left, cut_off = kill_one_at_the_gate(two, len(AT_THE_GATE))
    ended = left.ended(thread, run)
    assert (ended["status"], ended["error_message"]) == ("success", None)
    assert left.values(thread)["status"] == "completed"
    assert {call for call, times in Counter(c for c, _ in started(two)).items() if times > 1} == cut_off


def test_the_graph_of_langgraph_json_runs_as_it_is(python: Path, tmp_path: Path) -> None:
    objective = (
        "Compare these five vendors over their last two releases and recommend how to enter the market"
    )
    with cluster(python, tmp_path) as found:
        server = found.start()
        thread = server.new_thread()
        run = server.submit(thread, "planweave", input={"objective": objective})
        assert server.ended(thread, run)["status"] == "success"
        values = server.values(thread)
    assert values["status"] == "partial"
    assert "## Open gaps" in values["final_answer"]
    assert "msgpack" not in server.log.read_text(), "the server reads its checkpoints without a warning"

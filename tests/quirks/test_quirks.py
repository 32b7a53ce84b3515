"""The table of quirks: each run ends well, over real HTTP, with a bounded number of requests."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from agents.models import Models
from graph import build_graph
from graph.settings import Settings
from tests.conftest import Look
from tests.quirks.rows import ROWS
from tests.quirks.server import QuirkServer, quirky
from tests.running import bench, context, of
from tests.scripted import finding, look, step


def client(server: QuirkServer, **more: Any) -> ChatOpenAI:
    known = {"api_key": "sk-test-123456", "model": "fake", "max_retries": 0, "max_tokens": 500}
    return ChatOpenAI(base_url=server.base_url, **(known | more))


async def run(
    server: QuirkServer, *, structured: str = "auto", client_of: dict[str, Any] | None = None
) -> dict[str, Any]:
    settings = Settings(agent_model=None, structured=structured)
    graph = build_graph(
        Models.single(client(server, **(client_of or {}))), [Look().tool()], settings=settings
    )
    return await graph.ainvoke({"objective": "find it"}, context=context(max_replans=0))


@pytest.mark.parametrize("name", ROWS)
async def test_a_quirk_ends_well_and_costs_no_more_requests_than_it_must(name: str) -> None:
    row = ROWS[name]
    with quirky(row.quirk) as server:
        began = time.monotonic()
        out = await run(server, structured=row.structured, client_of=row.client)
        took = time.monotonic() - began
    assert server.counts() == row.requests
    assert (out["status"], out["stop_reason"]) == (row.status, row.stop_reason), out["final_answer"]
    assert {
        e.step_id: e.error_type for e in out["evidence"] if not e.passed and not e.skipped_because
    } == row.errors
    assert row.says in out["final_answer"]
    assert "think>" not in out["final_answer"]
    assert out["usage"].model_calls == len(server.requests)
    assert took >= row.at_least_seconds
    assert "sk-test-123456" not in out["final_answer"] + str(out["evidence"])


def test_the_table_has_its_rows() -> None:
    assert len(ROWS) >= 25


async def test_what_a_server_refuses_is_asked_once_in_a_process() -> None:
    quirk = ROWS["forced tool_choice refused"].quirk
    with quirky(quirk) as server:
        first, second = await run(server), await run(server)
    assert first["status"] == second["status"] == "completed"
    assert [len([r for r in server.requests if r.forced]), len(server.of("planner"))] == [2, 3 + 1]


async def test_no_refused_request_is_sent_twice() -> None:
    for name in (
        "forced tool_choice refused",
        "tools refused",
        "json_schema refused",
        "auto without a parser refused",
    ):
        with quirky(ROWS[name].quirk) as server:
            await run(server, structured=ROWS[name].structured)
        sent = [json.dumps(r.body, sort_keys=True) for r in server.of("planner")]
        assert len(sent) == len(set(sent))


async def test_lone_surrogates_of_a_model_reach_neither_tools_nor_the_next_request() -> None:
    look = Look()
    with quirky(ROWS["lone surrogates in arguments"].quirk) as server:
        graph = build_graph(Models.single(client(server)), [look.tool()], settings=Settings(agent_model=None))
        out = await graph.ainvoke({"objective": "find it"}, context=context(max_replans=0))
    assert of(out, "a").passed
    assert look.runs[0].encode().decode() == look.runs[0]
    assert "\\ud8" not in json.dumps([r.body for r in server.requests])


async def test_the_requests_of_one_step_share_their_beginning_byte_for_byte() -> None:
    """Providers cache prompts by their prefix; what changes comes last."""
    with quirky() as server:
        await run(server)
    first, second = (json.dumps(r.body["messages"]) for r in server.of("worker")[:2])
    assert second.startswith(first[:-1])
    tools = [json.dumps(r.body["tools"]) for r in server.of("worker")[:2]]
    assert tools[0] == tools[1]


async def test_a_word_of_warning_stands_last_and_changes_nothing_before_it() -> None:
    answers = [look(f"c{n}", f"q{n}") for n in range(4)] + [finding("a", "s1")]
    b = bench(step("a", tool_budget=5), work={"a": answers}, tools=[Look().tool()])
    await b.run()
    requests = [asked.messages for asked in b.worker.asked]
    assert "tool runs are left" in requests[4][-1].text
    assert requests[4][: len(requests[3])] == requests[3]
    assert not any("tool runs are left" in message.text for message in requests[4][:-1])

"""Limits, fallbacks and cost over real HTTP: several models, several servers, parallel steps."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from agents.models import Models
from graph import build_graph
from graph.settings import Settings
from tests.conftest import Look
from tests.quirks.rows import always
from tests.quirks.server import Body, QuirkServer, Reply, Request, a_step, answer_with, error, quirky
from tests.quirks.test_quirks import client
from tests.running import bench, context, of
from tests.scripted import finding, look, step

WIDE = [f"s{n}" for n in range(6)]


def wide_plan(request: Request, message: Body) -> Any:
    if request.role == "planner":
        return answer_with(request, "Plan", {"goal": "g", "steps": [a_step(i) for i in WIDE]})
    return None


def settings(**fields: Any) -> Settings:
    return Settings(**{"agent_model": None, "openai_api_key": None, "openai_base_url": None} | fields)


async def test_parallel_steps_share_the_limit_of_their_endpoint() -> None:
    together = threading.Barrier(2)

    def quirk(request: Request, message: Body) -> Any:
        if request.role == "worker":
            together.wait(20)  # two are here at the same time, again and again: the limit is used, and kept
        return wide_plan(request, message)

    with quirky(quirk) as server:
        graph = build_graph(
            Models.single(client(server)), [Look().tool()], settings=settings(max_model_concurrency=2)
        )
        out = await graph.ainvoke(
            {"objective": "find it"}, context=context(max_replans=0, total_tool_budget=64)
        )
    assert out["status"] == "completed"
    assert len(server.of("worker")) == 12
    assert server.peak == 2


def named(server: QuirkServer, other: QuirkServer, **more: Any) -> Settings:
    return settings(
        agent_model="openai:first",
        openai_base_url=server.base_url,
        openai_api_key=SecretStr("sk-first-123456"),
        fallback_base_url=other.base_url,
        **{"fallback_model": "openai:second"} | more,
    )


LOCKED = always("planner", lambda r, m: error(401, "wrong key"))
FAULTS: dict[str, tuple[Any, int]] = {
    "locked": (lambda r, m: error(401, "wrong key"), 1),
    "gone": (lambda r, m: error(404, "model 'first' not found"), 1),
    "overloaded": (lambda r, m: error(503, "busy"), 3),
    "reset": (lambda r, m: Reply(end="reset"), 3),
    "for an hour": (lambda r, m: error(429, "quota", **{"retry-after": "3600"}), 1),
}


@pytest.mark.parametrize("role", ["planner", "worker", "reviewer", "writer"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_fallback_takes_over_for_a_role_that_cannot_be_reached(fault: str, role: str) -> None:
    bent, tries = FAULTS[fault]
    with quirky(always(role, bent)) as server, quirky() as other:
        graph = build_graph(tools=[Look().tool()], settings=named(server, other))
        out = await graph.ainvoke({"objective": "find it"}, context=context(max_replans=0))
    assert out["status"] == "completed"
    assert other.of(role)
    # Each of the two steps finds out for itself that a server is busy; that it is closed is known from then on.
    closed = fault in ("locked", "gone")
    assert len(server.of(role)) == tries * (2 if role == "worker" and not closed else 1)
    models = out["usage"].by_role[role]
    assert models["second"].model_calls == len(other.of(role))


async def test_a_role_may_have_a_fallback_of_its_own() -> None:
    with quirky(LOCKED) as server, quirky() as other:
        own = named(server, other, fallback_model=None, planner_fallback_model="openai:second")
        graph = build_graph(tools=[Look().tool()], settings=own)
        out = await graph.ainvoke({"objective": "find it"}, context=context(max_replans=0))
    assert out["status"] == "completed"
    assert other.counts() == {"planner": 1}


async def test_the_first_servers_key_is_not_sent_to_the_fallbacks_server() -> None:
    resolved = Models("a", "a", "a", "a", fallbacks={"planner": "b"}).resolve(
        _model_settings(
            base_url="http://127.0.0.1:1/v1",
            api_key="sk-first-123456",
            fallback_base_url="http://127.0.0.1:2/v1",
        )
    )
    fallback = resolved.role("planner").fallback
    assert isinstance(fallback, ChatOpenAI)
    assert isinstance(fallback.openai_api_key, SecretStr)
    assert fallback.openai_api_key.get_secret_value() != "sk-first-123456"


def _model_settings(**fields: Any) -> Any:
    from agents.models import ModelSettings

    return ModelSettings(**fields)


async def test_tokens_are_counted_by_role_and_model_and_by_step() -> None:
    with quirky() as server:
        graph = build_graph(Models.single(client(server)), [Look().tool()], settings=settings())
        out = await graph.ainvoke({"objective": "find it"}, context=context(max_replans=0))
    usage = out["usage"]
    calls = {role: models["fake"].model_calls for role, models in usage.by_role.items()}
    assert calls == {"planner": 1, "worker": 3, "reviewer": 1, "writer": 1}
    assert usage.by_role["worker"]["fake"].input_tokens == 21
    assert [of(out, i).tokens for i in "ab"] == [24, 12]
    assert usage.tokens == 6 * 12


def spending(message: AIMessage, tokens: int) -> AIMessage:
    metadata = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return message.model_copy(update={"usage_metadata": metadata})


async def test_once_the_tokens_are_spent_only_the_concluding_call_is_made() -> None:
    work = {"a": [spending(look("c1"), 60), spending(look("c2", "r"), 60), spending(finding("a", "s1"), 60)]}
    b = bench(step("a"), work=work, tools=[Look().tool()])
    out = await b.run(max_tokens=100)
    assert of(out, "a").passed
    assert [asked.tools for asked in b.worker.asked][-1] == ["Finding"]
    assert len(b.worker.asked) == 3


async def test_a_concluding_call_that_gives_no_finding_is_not_made_again() -> None:
    useless = spending(AIMessage("Let me think."), 60)
    b = bench(
        step("a"),
        work={"a": [spending(look("c1"), 60), spending(look("c2", "r"), 60), useless]},
        tools=[Look().tool()],
    )
    out = await b.run(max_tokens=100)
    assert len(b.worker.asked) == 3
    assert (of(out, "a").passed, of(out, "a").error_type) == (False, "model_limit")
    assert of(out, "a").source_ids == ["s1"]

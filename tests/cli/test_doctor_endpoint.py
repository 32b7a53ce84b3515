"""doctor against servers with quirks: what they can do, and what to set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.quirks.server import Body, QuirkServer, Request, call, error, quirky

Here = Callable[..., tuple[int, str, str]]
ANIMAL = {"name": "Mia", "age": 3}


def able(*ways: str, parallel: int = 2) -> Callable[[Request, Body], Any]:
    """A server that takes these ways to ask, refuses "no tools" and "no schema", and ignores the rest."""

    def quirk(request: Request, message: Body) -> Any:
        body = request.body
        if "tools" in body and "tools" not in ways:
            return error(400, "tools are not supported")
        if "weather" in request.tools:
            one = call("weather", {"city": "Rome"})
            return (
                one | {"tool_calls": [one["tool_calls"][0] | {"id": f"c{n}"} for n in range(parallel)]}
                if parallel
                else None
            )
        if "tools" in body:
            return call("Animal", ANIMAL)
        if "response_format" in body:
            return (
                {"content": json.dumps(ANIMAL)}
                if "json_schema" in ways
                else error(400, "response_format is unavailable")
            )
        if "JSON schema" in str(body["messages"][0]["content"]):
            return {"content": json.dumps(ANIMAL)} if "text" in ways else {"content": "Meow."}
        return None

    return quirk


def environment(server: QuirkServer, **more: str) -> dict[str, str]:
    return {
        "AGENT_MODEL": "openai:m",
        "OPENAI_API_KEY": "sk-test-123456",
        "OPENAI_BASE_URL": server.base_url,
    } | more


@pytest.mark.parametrize(
    ("ways", "advice"),
    [
        (("tools", "json_schema", "text"), "PLANWEAVE_STRUCTURED=auto fits"),
        (("tools",), "PLANWEAVE_STRUCTURED=auto fits"),
        (("json_schema", "text"), "PLANWEAVE_STRUCTURED=json_schema (now auto)"),
        (("text",), "PLANWEAVE_STRUCTURED=prompt (now auto)"),
        ((), "in any way"),
    ],
)
def test_it_says_what_to_set(here: Here, ways: tuple[str, ...], advice: str) -> None:
    with quirky(able(*ways)) as server:
        code, out, _ = here("doctor", **environment(server))
    assert code == 0
    assert advice in out
    assert ("calls no tools" in out) == ("tools" not in ways)
    assert len(server.requests) == 7


def test_a_setting_that_fits_needs_nothing(here: Here) -> None:
    with quirky(able("json_schema", "text")) as server:
        _, out, _ = here("doctor", **environment(server, PLANWEAVE_STRUCTURED="json_schema"))
    assert "nothing; PLANWEAVE_STRUCTURED=json_schema fits" in out


def test_the_table_says_what_each_way_came_to(here: Here) -> None:
    with quirky(able("json_schema", "text")) as server:
        _, out, _ = here("doctor", **environment(server))
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in out.splitlines() if "\t" in line}
    assert rows["json_schema (response_format)"][0] == "works"
    assert rows["tool call, forced by name"][0] == "refused"
    assert "tools are not supported" in rows["tool call, forced by name"][2]
    assert rows["JSON in text (prompt)"][0] == "works"


@pytest.mark.parametrize(("came", "parallel"), [("2 came", 2), ("1 came", 1)])
def test_it_counts_parallel_tool_calls(here: Here, came: str, parallel: int) -> None:
    with quirky(able("tools", parallel=parallel)) as server:
        _, out, _ = here("doctor", **environment(server))
    assert came in out


@pytest.mark.parametrize(("status", "word"), [(401, "401"), (404, "404"), (500, "500")])
def test_an_endpoint_that_does_not_answer_fails_after_one_request_and_shows_no_key(
    here: Here, status: int, word: str
) -> None:
    with quirky(lambda r, m: error(status, "no: sk-test-123456")) as server:
        code, out, _ = here("doctor", **environment(server))
    assert code == 4
    assert word in out
    assert "sk-test-123456" not in out
    assert len(server.requests) == 1


def test_a_fallback_is_looked_at_too(here: Here) -> None:
    with quirky(able("tools")) as server, quirky(lambda r, m: error(401, "no")) as other:
        code, out, _ = here(
            "doctor",
            **environment(
                server, PLANWEAVE_FALLBACK_MODEL="openai:spare", PLANWEAVE_FALLBACK_BASE_URL=other.base_url
            ),
        )
    assert code == 4
    assert "openai:spare" in out


def test_a_file_of_prices_that_is_none_fails_and_one_without_the_model_is_noted(
    here: Here, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    with quirky(able("tools")) as server:
        assert here("doctor", **environment(server, PLANWEAVE_PRICES=str(prices)))[0] == 4
        prices.write_text("models: {other: {input: 1, output: 1}}")
        code, out, _ = here("doctor", **environment(server, PLANWEAVE_PRICES=str(prices)))
    assert code == 0
    assert "no price for openai:m" in out


def test_a_run_and_show_say_what_it_has_cost(here: Here, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("models: {m: {input: 1000, output: 1000}}")
    steps: Body = {"goal": "g", "steps": [{"id": "a", "task": "t", "success_criteria": ["c"], "tools": []}]}
    with quirky(lambda r, m: call("Plan", steps) if r.role == "planner" else None) as server:
        _, out, _ = here("run", "why?", "--thread", "t1", **environment(server, PLANWEAVE_PRICES=str(prices)))
        _, shown, _ = here("show", "t1")
    assert "0.0480 USD" in out  # four calls of 12 tokens
    assert "0.0480 USD" in shown
    assert "worker: model calls 1, tokens 12" in shown


@pytest.mark.parametrize(("given", "waits"), [({}, 20), ({"PLANWEAVE_MODEL_TIMEOUT_SECONDS": "300"}, 300)])
def test_it_waits_for_a_slow_model_as_long_as_the_settings_say(
    here: Here, given: dict[str, str], waits: float
) -> None:
    with quirky(able("tools")) as server:
        here("doctor", **environment(server, **given))
    assert {*server.patience} == {waits}

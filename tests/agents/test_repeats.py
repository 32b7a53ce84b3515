"""A worker that goes in circles: its tools end, and what it has seen is not sent again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agents.middleware.notices import NOTHING_NEW, named_sources
from agents.middleware.repeats import SAME_ABOVE
from schemas.evidence import Source
from tests.conftest import Look
from tests.running import Bench, bench, of
from tests.scripted import finding, look, step


def working(*queries: str, tool: Look | None = None, budget: int = 10, **limits: Any) -> Bench:
    rounds = [look(f"c{n}", query) for n, query in enumerate(queries)]
    tool = tool or Look(idempotent=True)
    return bench(
        step("a", tool_budget=budget), work={"a": [*rounds, finding("a", "s1")]}, tools=[tool.tool()]
    )


async def test_two_queries_in_turn_are_repeats_like_one() -> None:
    b = working("q", "r", "q", "r")
    out = await b.run()
    assert b.worker.asked[-1].tools == ["Finding"]
    told = b.worker.asked[-1].messages[-1].text
    assert "You repeat yourself" in told
    assert f"for your step alone, from the texts above: {step('a')['task']}\nSources: [s" in told
    assert (of(out, "a").passed, of(out, "a").tool_calls) == (True, 2)


def test_the_sources_that_fit_the_task_are_named_first() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    known = [
        Source(id=i, step_id="a", tool="look", locator=f"{i}.md", title=title, retrieved_at=now)
        for i, title in (("x1", "Delphi lamp"), ("x2", "Elm lamp"), ("x3", ""))
    ]
    assert named_sources("Find out for elm: price", known) == "[x2] Elm lamp; [x1] Delphi lamp; [x3] x3.md"
    assert named_sources("Find out", []) == ""


async def test_one_repeat_is_a_slip() -> None:
    b = working("q", "q", "r")
    await b.run()
    assert "look" in b.worker.asked[-1].tools


async def test_a_repeated_call_does_not_send_its_result_again() -> None:
    b = working("q", "q")
    await b.run()
    assert b.worker.asked[-1].messages[-1].text == SAME_ABOVE


async def test_a_result_that_may_have_been_cut_since_is_sent_again() -> None:
    tool = Look(idempotent=True)
    tool.before = lambda query: [{"source_id": f"s-{query}", "text": f"{query} " * 700}]
    b = bench(
        step("a", tool_budget=10),
        work={"a": [look("c1", "q"), look("c2", "r"), look("c3", "q"), finding("a", "s-q")]},
        tools=[tool.tool()],
    )
    await b.run(max_request_chars=4000)
    last = b.worker.asked[-1].messages[-1].text
    assert last.startswith("(the same call as before, with the same result)")


async def test_tools_that_may_answer_otherwise_may_be_asked_in_turn() -> None:
    b = working("q", "r", "q", "r", tool=Look())
    out = await b.run()
    assert "look" in b.worker.asked[-1].tools
    assert of(out, "a").tool_calls == 4


@pytest.mark.parametrize(("same", "told"), [(True, True), (False, False)])
async def test_results_that_hold_nothing_new_are_called_that(same: bool, told: bool) -> None:
    tool = Look(idempotent=True)
    tool.before = lambda query: [{"source_id": "s1", "text": "the text" if same else f"about {query}"}]
    b = working("q", "r", tool=tool)
    await b.run()
    assert (b.worker.asked[-1].messages[-1].text == NOTHING_NEW) == told

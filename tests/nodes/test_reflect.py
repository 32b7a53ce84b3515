"""Mode reflect: a critic reads the answer; revisions are bounded, and never add what no source says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.conftest import Look
from tests.running import Bench, bench
from tests.scripted import Asked, finding, look, review, step

REMARK = {"description": "say what it is about", "step_id": None, "recoverable": True}
CONTENT = review()


def reflecting(*texts: Any, critic: list[Any], **build: Any) -> Bench:
    """The writer answers `texts` in turn; the reviewer approves the evidence, then criticises."""
    build.setdefault("work", {"a": [look(), finding("a", "s1")]})
    b = bench(step("a"), tools=[Look().tool()], reviewer=[review(), *critic], **build)
    b.writer.always = None
    b.writer.answers = [text if isinstance(text, Exception) else AIMessage(text) for text in texts]
    return b


async def run(b: Bench, **choices: Any) -> str:
    out = await b.run("find it", mode="reflect", **choices)
    assert out["status"] == "completed"
    return out["final_answer"]


def critics(b: Bench) -> list[dict[str, Any]]:
    return [asked.brief for asked in b.reviewer.asked if asked.brief["role"] == "critic"]


async def test_remarks_lead_to_a_revision_that_sees_them_and_the_first_text() -> None:
    b = reflecting("It is a text [1].", "It is a text about q [1].", critic=[review(False, REMARK), CONTENT])
    assert (await run(b)).startswith("It is a text about q [1].")
    (first, second) = [asked.brief for asked in b.writer.asked]
    assert "remarks" not in first
    assert (second["remarks"], second["previous"]) == (["say what it is about"], "It is a text [1].")
    critic = critics(b)[0]
    assert critic["objective"] == "find it"
    assert [f["summary"] for f in critic["findings"]] == ["a found"]


async def test_a_content_critic_leaves_the_answer_as_it_is() -> None:
    b = reflecting("It is a text [1].", critic=[CONTENT])
    assert (await run(b)).startswith("It is a text [1].")
    assert (len(b.writer.asked), len(critics(b))) == (1, 1)


async def test_there_are_two_revisions_at_most_and_every_call_is_counted() -> None:
    b = reflecting("One [1].", "Two [1].", "Three [1].", critic=[review(False, REMARK)] * 9)
    out = await b.run("find it", mode="reflect")
    assert out["final_answer"].startswith("Three [1].")
    assert (len(b.writer.asked), len(critics(b))) == (3, 2)
    assert out["usage"].model_calls == 1 + 2 + 1 + 3 + 2  # plan, worker, review, writer, critic


@pytest.mark.parametrize(
    "worse",
    [
        "About q [1], and more [2].",
        "About q [1], see https://nowhere.test/x.",
        "About q [1]. It costs 4711 euros [1].",
        "About q [ghost].",
    ],
)
async def test_a_revision_that_adds_what_no_source_says_is_not_taken(worse: str) -> None:
    b = reflecting("It is a text [1].", worse, worse, critic=[review(False, REMARK)] * 2)
    text = await run(b)
    assert text.startswith("It is a text [1].")
    assert "removed" not in text
    assert "4711" not in text


async def test_a_revision_that_trades_one_unsupported_claim_for_another_is_not_taken() -> None:
    b = reflecting(
        "It costs 815 euros [1].",
        "It costs 4711 euros [1].",
        "It is a text [1].",
        critic=[review(False, REMARK)] * 2,
    )
    assert (await run(b)).startswith("It is a text [1].")
    assert b.writer.asked[2].brief["previous"] == "It costs 815 euros [1]."


@pytest.mark.parametrize(
    "broken", [ValueError("boom"), AIMessage("no idea"), AIMessage("", additional_kwargs={"refusal": "no"})]
)
async def test_a_critic_that_fails_leaves_the_answer_as_it_is(broken: Any) -> None:
    b = reflecting("It is a text [1].", critic=[broken] * 3)
    assert (await run(b)).startswith("It is a text [1].")


@pytest.mark.parametrize("broken", [ValueError("boom"), "", "  \n"])
async def test_a_writer_that_fails_at_the_revision_takes_nothing_away(broken: Any) -> None:
    b = reflecting("It is a text about q [1].", broken, broken, critic=[review(False, REMARK)] * 2)
    assert (await run(b)).startswith("It is a text about q [1].")


async def test_the_critic_sees_citations_numbered_like_the_sources_beside_them() -> None:
    tools = [Look("one", "s1").tool(), Look("two", "s2").tool()]
    work = {"a": [look(tool="one"), look("c2", tool="two"), finding("a", "s1", "s2")]}
    b = bench(
        step("a"), tools=tools, reviewer=[review(), CONTENT], work=work, writer=AIMessage("B [2]. A [1].")
    )
    out = await b.run("find it", mode="reflect")
    assert out["final_answer"].startswith("B [1]. A [2].")
    critic = critics(b)[0]
    assert critic["answer"] == "B [2]. A [1]."
    assert [source["n"] for source in critic["sources"]] == [1, 2]


async def test_without_anything_found_there_is_nothing_to_criticise() -> None:
    b = bench(step("a"), work={"a": [finding("a", met=False)]}, reviewer=[review()])
    out = await b.run("find it", mode="reflect", max_replans=0)
    assert out["status"] == "failed"
    assert critics(b) == []


async def test_past_the_deadline_the_answer_is_not_looked_at_again() -> None:
    seconds = [0.0]
    b = reflecting("It is a text [1].", critic=[review(False, REMARK)], parts={"clock": lambda: seconds[0]})
    b.writer.answers = [spend(seconds, 100, "It is a text [1].")]
    assert (await run(b, deadline_seconds=50)).startswith("It is a text [1].")
    assert critics(b) == []


def spend(seconds: list[float], more: float, text: str) -> Callable[[Asked], AIMessage]:
    def written(asked: Asked) -> AIMessage:
        seconds[0] += more
        return AIMessage(text)

    return written


@pytest.mark.parametrize("mode", ["auto", "plan", "react"])
async def test_no_other_mode_has_a_critic(mode: str) -> None:
    work = {
        i: [look(), finding(i, "s1", criteria=[{"criterion": "x", "met": True, "reason": ""}])]
        for i in ("a", "answer")
    }
    b = bench(step("a", success_criteria=["x"]), tools=[Look().tool()], work=work)
    await b.run("find it", mode=mode)
    assert critics(b) == []

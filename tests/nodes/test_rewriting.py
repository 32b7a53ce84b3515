"""A sentence that no source bears out: the writer is asked once more, and the better text stays."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult

from graph import build_graph
from tests.conftest import Look
from tests.running import Bench, bench, context
from tests.scripted import ScriptedModel, finding, look, models, step

GOOD = "It is a text about q [1]."
DOUBTED = "It costs 4711 euros [1]."
WITHOUT = "It costs […] euros [1]. ⚠ (not in the cited sources: figures left out: 1)"


def writing(*texts: Any, **build: Any) -> Bench:
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()], **build)
    b.writer.always = None
    b.writer.answers = [text if isinstance(text, Exception) else AIMessage(text) for text in texts]
    return b


async def test_the_writer_is_asked_again_with_the_doubted_lines() -> None:
    b = writing(f"{GOOD}\n\n{DOUBTED}", GOOD)
    out = await b.run()
    assert out["final_answer"].startswith(GOOD)
    assert "4711" not in out["final_answer"]
    brief = b.writer.asked[1].brief
    assert brief["previous"] == f"{GOOD}\n\n{DOUBTED}"
    assert [("4711" in line, "⚠" in line) for line in brief["remarks"][1:]] == [(True, True)]
    assert out["usage"].by_role["writer"]["ScriptedModel"].model_calls == 2


@pytest.mark.parametrize(
    "worse",
    [
        DOUBTED,
        f"{DOUBTED} It costs 4712 euros [1].",
        "It is a text about q [1], and more [7].",
        "",
        "[1]",
        f"It costs 4713 euros [1]. ⚠ {GOOD}",
        ValueError("down"),
    ],
)
async def test_what_is_no_better_leaves_the_first_text(worse: Any) -> None:
    b = writing(f"{GOOD} {DOUBTED}", worse)
    text = (await b.run())["final_answer"]
    assert text.startswith(f"{GOOD} {WITHOUT}")
    assert text.count("⚠") == 1
    assert b.writer.done()


async def test_an_answer_without_doubts_is_written_once() -> None:
    b = writing(GOOD)
    await b.run()
    assert len(b.writer.asked) == 1


async def test_it_is_asked_once_however_many_doubts_stay() -> None:
    b = writing(f"{DOUBTED} It costs 4712 euros [1].", DOUBTED, GOOD)
    text = (await b.run())["final_answer"]
    assert text.count("⚠") == 1
    assert len(b.writer.asked) == 2


async def test_a_run_without_tokens_left_is_not_asked_again() -> None:
    b = writing()
    spent = {"input_tokens": 60, "output_tokens": 0, "total_tokens": 60}
    b.writer.answers = [AIMessage(DOUBTED, usage_metadata=spent)]
    text = (await b.run(max_tokens=50))["final_answer"]
    assert text.startswith(WITHOUT)
    assert len(b.writer.asked) == 1


async def test_a_rewrite_ends_with_the_runs_deadline() -> None:
    class Slow(ScriptedModel):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
            if self.asked:
                self.asked.append(self.asked[0])
                await asyncio.Event().wait()  # never answers
            return self._generate(*args, **kwargs)

    b = writing()
    slow = Slow(answers=[AIMessage(DOUBTED)])
    graph = build_graph(models(b.planner, b.worker, b.reviewer, slow), [Look().tool()])
    began = time.monotonic()
    out = await graph.ainvoke({"objective": "find it"}, {}, context=context(deadline_seconds=3))
    assert out["final_answer"].startswith(WITHOUT)
    assert len(slow.asked) == 2
    assert time.monotonic() - began < 20


async def test_what_code_says_of_a_run_without_findings_is_no_claim_to_be_held_against_sources() -> None:
    b = bench(planner=[ValueError("the server holds 4711 tokens at most")])
    out = await b.run()
    assert out["status"] == "failed"
    (line,) = [line for line in out["final_answer"].split("\n") if "4711" in line and line.startswith("⚠ ")]
    assert "not in the cited sources" not in line

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool

from agents.long_texts import LONG_CHARS, read_beside
from agents.pass_rule import Support, judge
from agents.passages import BLOCK, SourceText, plain
from schemas.evidence import CriterionResult, Finding
from schemas.plan import Step
from tests.running import bench, of
from tests.scripted import finding, look, step

SUMMARY = "Pelloway has 99999 seats; “none of them is free of charge”."
PAGE = "".join(f"Row {n} of Pelloway has {n % 977} seats in {n % 89} rooms.\n" for n in range(40_000))


def pages() -> BaseTool:
    async def look(query: str) -> list[dict[str, str]]:
        """Fetch a long page."""
        return [{"source_id": "s1", "text": PAGE}]

    return StructuredTool.from_function(coroutine=look, name="look")


@asynccontextmanager
async def longest_stretch() -> AsyncGenerator[list[float]]:
    """Give a list that holds, at the end, the most CPU seconds that the event loop spent at one stretch."""
    found, last = [0.0], time.thread_time()

    async def tick() -> None:
        nonlocal last
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            found[0], last = max(found[0], now - last), now

    task = asyncio.create_task(tick())
    try:
        yield found
    finally:
        task.cancel()


async def test_short_texts_are_read_at_once_and_long_ones_in_a_thread() -> None:
    assert await read_beside(threading.get_ident, ["short"]) == threading.get_ident()
    assert await read_beside(threading.get_ident, ["x" * LONG_CHARS]) != threading.get_ident()


@pytest.mark.parametrize("text", ["short", "x" * LONG_CHARS], ids=["short", "long"])
async def test_what_the_work_raises_is_raised(text: str) -> None:
    with pytest.raises(ValueError, match="none"):
        await read_beside(partial(int, "none"), [text])


async def test_a_page_of_megabytes_holds_up_no_other_step() -> None:
    wanted = Step(id="a", task="do a", success_criteria=["a is known"])
    met = CriterionResult(criterion="a is known", met=True, reason="r")
    texts = [SourceText("", "", PAGE, "s1")]
    began = time.thread_time()
    judge(wanted, Finding(summary=SUMMARY, source_ids=["s1"], criteria=[met]), Support(["s1"], [], 1, texts))
    at_once = time.thread_time() - began

    work = {"a": [look(), finding("a", "s1", summary=SUMMARY)]}
    b = bench(step("a"), work=work, tools=[pages()], writer=AIMessage(SUMMARY + " [1]"))
    async with longest_stretch() as stretch:
        out = await b.run()
    assert of(out, "a").error_type == "unsupported_claim"
    assert "99999" in of(out, "a").detail
    assert stretch[0] < at_once / 2


def test_a_text_in_blocks_is_the_same_text() -> None:
    line = "Forty-one days, 四十一天, ﬁne print.\n"
    text = line * (3 * BLOCK // len(line)) + "twelve"
    assert plain(text) == "".join(plain(part) for part in text.splitlines(keepends=True))
    assert plain(text).count("41 days, 41天, fine print.") == text.count("Forty")
    assert plain(text).endswith("12")

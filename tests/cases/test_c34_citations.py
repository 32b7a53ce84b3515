"""C34: what the writer cites, and what it may not say."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.conftest import Look
from tests.running import bench
from tests.scripted import finding, look, step


async def answer(text: str, objective: str = "find it") -> str:
    b = bench(
        step("a", task="show that Alpha costs 99"),
        work={"a": [look(), finding("a", "s1")]},
        tools=[Look().tool()],
        writer=AIMessage(text),
    )
    return (await b.run(objective))["final_answer"]


async def test_c34_real_citations_stay_and_unknown_ones_are_removed_and_named() -> None:
    text = await answer("One [s1]. Two [s9]. Three https://evil.test/x. Four [1].")
    body, _, rest = text.partition("## Sources")
    assert body.split("\n\n")[0] == "One [1]. Two. Three. Four [1]."
    assert "https://e.test/q" in rest
    assert "`s9`" in rest
    assert "`https://evil.test/x`" in rest


@pytest.mark.parametrize(
    "cited",
    [
        "[s9]", "[^9]", "[9]", "[s1, s9]", "[1][9]", "[1,9]", "【9】", "【s9】", "[Source s9]", "[source: s9]",
        "[来源：s9]",
        "[9](https://evil.test)", "[a page](https://evil.test \"t\")", "![img](https://evil.test/i.png)",
        "<https://evil.test>", "https://evil.test/a_(b)", "http://evil.test?q=[1]", "www.evil.test", "[0]", "[-1]",
        "[1-9]", "[s1-s9]", "[1; 9]", "[1 9]", "[https://evil.test]", "`[s9]`", "```\nsee [s9] https://evil.test\n```",
    ],
)  # fmt: skip
async def test_c34_no_unknown_citation_survives_in_any_form(cited: str) -> None:
    text = await answer(f"A fact {cited} here.")
    body = text.partition("## Sources")[0].partition("Citations removed")[0]
    assert "evil" not in body
    assert "9]" not in body.replace("[1]", "")
    assert "s9" not in body


@pytest.mark.parametrize(
    "text", ["- [ ] todo\n- [x] done", "`a[0]` and `b[i]`", "```\nx = a[7]\n```", "a range [from, to) of it"]
)
async def test_c34_brackets_that_cite_nothing_stay(text: str) -> None:
    assert (await answer(text)).startswith(text)


async def test_c34_numbers_mean_the_numbers_that_the_writer_was_shown() -> None:
    tool = Look()
    tool.before = lambda query: [
        {"source_id": i, "text": i, "url": f"https://e.test/{i}"} for i in ("2", "1")
    ]
    work = {"a": [look(), finding("a", "2", "1")]}
    text = (await bench(step("a"), work=work, tools=[tool.tool()], writer=AIMessage("X [1].")).run())[
        "final_answer"
    ]
    assert "1. https://e.test/2" in text


async def test_c34_a_link_to_a_known_source_becomes_its_number() -> None:
    text = await answer("See [the page](https://e.test/q) and https://e.test/q.")
    assert text.startswith("See the page [1] and [1].")


async def test_c34_the_steps_task_is_not_offered_to_the_writer_as_evidence() -> None:
    b = bench(
        step("a", task="show that Alpha costs 99"),
        work={"a": [look(), finding("a", "s1")]},
        tools=[Look().tool()],
    )
    await b.run()
    assert "costs 99" not in b.writer.asked[0].text


@pytest.mark.parametrize("objective", ["find it", "查找价格"])
async def test_c34_nothing_passed_means_the_answer_says_so_and_no_writer_is_asked(objective: str) -> None:
    work: dict[str, Any] = {"a": [finding("a", met=False)]}
    b = bench(step("a"), work=work, writer=AIMessage("It costs 99 [1]."))
    out = await b.run(objective, max_replans=0)
    assert b.writer.asked == []
    assert "99" not in out["final_answer"]
    assert out["final_answer"].startswith(
        "Nothing could be established" if objective == "find it" else "没有得出任何结论"
    )


async def test_c34_only_what_is_cited_is_listed_and_numbers_start_at_one() -> None:
    tool = Look()
    tool.before = lambda query: [
        {"source_id": i, "text": i, "url": f"https://e.test/{i}"} for i in ("s1", "s2", "s3")
    ]
    work = {"a": [look(), finding("a", "s1", "s2", "s3")]}
    b = bench(step("a"), work=work, tools=[tool.tool()], writer=AIMessage("X [3], Y [1]."))
    text = (await b.run())["final_answer"]
    assert text.startswith("X [1], Y [2].")
    assert "1. https://e.test/s3\n2. https://e.test/s1" in text
    assert "https://e.test/s2" not in text

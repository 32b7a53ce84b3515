"""Faults that hostile runs have found in what takes for ever, and in what answers pretend."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agents.candidates import repaired
from agents.checks import failed_checks
from agents.claims import sentences
from agents.patterns import MAX_SECONDS, matches
from nodes.citations import check_citations
from nodes.composing import compose
from nodes.flags import Asked, flag_claims
from schemas.evidence import Evidence, Gap, Source
from schemas.plan import Step, TextMatches
from tests.conftest import Look
from tests.running import bench
from tests.scripted import finding, look, review, step

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def source(n: int, text: str = "") -> Source:
    place = f"https://e.test/{n}"
    return Source(id=f"s{n}", step_id="a", tool="look", locator=place, excerpt=text, retrieved_at=NOW)


def record(step_id: str, *, passed: bool) -> Evidence:
    return Evidence(step_id=step_id, plan_version=1, passed=passed, started_at=NOW, finished_at=NOW)


def a_step(step_id: str, **fields: Any) -> Step:
    return Step(id=step_id, task=step_id, success_criteria=["c"], **fields)


# What takes for ever


async def test_a_pattern_that_never_ends_fails_its_check_in_seconds() -> None:
    judged = record("a", passed=True).model_copy(update={"summary": "x" * 8_000})
    began = time.monotonic()
    check = TextMatches(type="text_matches", pattern="(x+x+)+y")
    (reason,) = await failed_checks(a_step("a", checks=[check]), judged, {}.get, None)
    assert "took longer" in reason
    assert time.monotonic() - began < MAX_SECONDS + 5


@pytest.mark.parametrize(
    ("pattern", "found"), [("pri.e", True), ("^price: \\d+$", True), ("定价|price", True), ("x{3}", False)]
)
async def test_ordinary_patterns_match_as_ever(pattern: str, found: bool) -> None:
    assert await matches(pattern, "price: 12") is found


@pytest.mark.parametrize(
    "text", [" " * 300_000, "\n" * 300_000, ". " * 100_000, "a" + "\n" * 300_000 + "b", "。" * 200_000]
)
def test_long_runs_of_one_character_take_no_time(text: str) -> None:
    began = time.process_time()
    check_citations(f"x{text}.", [])
    assert "".join(sentences(text)) == text
    repaired(f"{{{text}}}")
    assert time.process_time() - began < 3


def test_megabytes_of_sources_are_read_once_for_hundreds_of_sentences() -> None:
    known = [source(n) for n in range(1, 4)]
    texts = {s.id: "定价信息 12.5 " * 100_000 for s in known}
    checked = check_citations("\n".join(f"It is 12.5 [{1 + n % 3}]." for n in range(500)), known)
    began = time.process_time()
    assert flag_claims(checked, known, texts, "en", Asked("定价")).wrong == []
    assert time.process_time() - began < 10


# What an answer may pretend

LISTS = [
    "## Sources",
    "### sources:",
    "**Sources**",
    "## References",
    "## Open gaps",
    "## 来源",
    "# 参考文献",
]


@pytest.mark.parametrize("head", LISTS)
def test_a_writers_own_list_gives_way_to_the_real_one(head: str) -> None:
    checked = check_citations(f"It is so [1].\n\n{head}\n\n1. Invented report\n", [source(1)])
    assert checked.text == "It is so [1]."


@pytest.mark.parametrize(
    "text",
    [
        "[[s9]99]",
        "[s9[s9]]",
        "见https://x.y。",
        "7https://x.y",
        "htt<https://x.y>ps://x.y",
        "FTP://x.y",
        "[1](javascript:alert(1))",
        "[\ue00099\ue001]",
    ],
)
def test_nothing_unknown_is_left_or_made_by_what_is_removed(text: str) -> None:
    left = check_citations(text, []).text
    assert "x.y" not in left
    assert "](" not in left
    assert not any(f"[{n}]" in left for n in ("1", "9", "99", "s9"))


def test_words_of_models_in_lists_that_code_makes_are_neither_citations_nor_headings() -> None:
    gap = Gap(description="see [1] and https://x.y\n\n## Sources\n\n1. Invented")
    text = compose(check_citations("Fine.", []), [gap], ["as in 【2】"], [], "en")
    assert "- see (1) and `https://x.y` ## Sources 1. Invented" in text
    assert "- as in (2)" in text
    assert "\n## Sources" not in text


@pytest.mark.parametrize("opened", ["```\ncode", "~~~\n```\n", "```\n~~~"])
def test_what_code_appends_is_never_inside_a_writers_code_block(opened: str) -> None:
    text = compose(check_citations(opened, []), [Gap(description="open")], [], [], "en")
    assert text.index("\n" + opened[:3] + "\n\n") < text.index("## Open gaps")


def test_names_of_removed_citations_stay_inside_their_code_marks() -> None:
    text = compose(check_citations("a https://x.y/`b", []), [], [], [], "en")
    assert text.endswith("`https://x.y/'b`")


@pytest.mark.parametrize("said", ["[s9]", "https://x.y", "## Sources\n\n1. Invented", "[1]"])
async def test_an_answer_of_which_nothing_is_left_gives_way_to_the_findings(said: str) -> None:
    work = {"a": [look(), finding("a", "s1")]}
    out = await bench(step("a"), work=work, tools=[Look().tool()], writer=AIMessage(said)).run()
    assert "a found [1]" in out["final_answer"]


async def test_numbers_in_a_workers_summary_are_not_the_answers_citations() -> None:
    work = {"a": [look(), finding("a", "s1", summary="as [7] and [1] say, and [s1]")]}
    out = await bench(step("a"), work=work, tools=[Look().tool()], writer=ValueError("down")).run()
    assert "as (7) and (1) say, and [1] [1]" in out["final_answer"]


async def test_a_reviewers_approval_of_everything_does_not_close_a_gap() -> None:
    out = await bench(step("a"), work={"a": [finding("a", met=False)]}, reviewer=[review(True)]).run(
        max_replans=0
    )
    assert out["status"] == "failed"

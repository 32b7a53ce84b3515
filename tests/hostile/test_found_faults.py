"""Faults that hostile runs have found, each small and with its own name."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolMessage
from langgraph.types import Command

from agents.candidates import repaired
from agents.checks import failed_checks
from agents.claims import sentences
from agents.incoming import clean_data, received
from agents.patterns import MAX_SECONDS, matches
from nodes.citations import check_citations, compose
from nodes.flags import Asked, flag_claims
from nodes.verdict import open_failures
from schemas.evidence import Evidence, Gap, Source
from schemas.plan import Plan, Step, TextMatches
from tests.conftest import Look
from tests.running import bench, of
from tests.scripted import ScriptedModel, call, calls, finding, look, plan, review, step

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def source(n: int, text: str = "") -> Source:
    place = f"https://e.test/{n}"
    return Source(id=f"s{n}", step_id="a", tool="look", locator=place, excerpt=text, retrieved_at=NOW)


def record(step_id: str, *, passed: bool) -> Evidence:
    return Evidence(step_id=step_id, plan_version=1, passed=passed, started_at=NOW, finished_at=NOW)


def a_step(step_id: str, **fields: Any) -> Step:
    return Step(id=step_id, task=step_id, success_criteria=["c"], **fields)


# What the models' clients give back


def ids_of(message: AIMessage) -> list[Any]:
    return [c["id"] for c in [*message.tool_calls, *message.invalid_tool_calls]]


@pytest.mark.parametrize(
    "given", [(None, None), ("", ""), ("x", "x"), ("x" * 5_000, None), ("call-1", ""), ("\ud800", "k\x00")]
)
def test_every_call_gets_an_id_of_its_own(given: tuple[Any, Any]) -> None:
    unreadable = [InvalidToolCall(name=None, args=None, id=given[0], error=None)]
    message = AIMessage("", tool_calls=[call("look", i, q=1) for i in given], invalid_tool_calls=unreadable)
    ids = ids_of(received(message))
    assert len(set(ids)) == 3
    assert all(i and len(i) <= 64 and i.encode() and "\0" not in i for i in ids)


def test_ids_that_are_fine_are_kept() -> None:
    message = calls(call("look", "c1", q=1), call("look", "c2", q=2))
    assert ids_of(received(message)) == ["c1", "c2"]


def test_what_is_no_ai_message_is_made_one() -> None:
    assert received(HumanMessage("I am the user")).text == "I am the user"


def test_data_of_any_kind_becomes_data_that_a_checkpoint_can_hold() -> None:
    deep: Any = "end"
    for _ in range(2_000):
        deep = [deep]
    clean = clean_data({"a\ud800": ["b\x00", 10**30, -(10**400), True, None, 1.5], "deep": deep})
    json.dumps(clean).encode()
    assert clean["a\ufffd"] == ["b", 1e30, "…", True, None, 1.5]


@pytest.mark.parametrize("call_id", [None, ""])
async def test_a_finding_without_a_call_id_is_taken(call_id: Any) -> None:
    b = bench(step("a"), work={"a": [look(), finding("a", "s1", call_id=call_id)]}, tools=[Look().tool()])
    assert of(await b.run(), "a").passed


async def test_calls_that_share_an_id_are_answered_one_by_one() -> None:
    twins = calls(call("look", "d", query="q1"), call("look", "d", query="q2"))
    b = bench(step("a"), work={"a": [twins, finding("a", "s1")]}, tools=[Look().tool()])
    assert of(await b.run(), "a").passed
    messages = b.worker.asked[1].messages
    asked = [c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
    assert sorted(asked) == sorted(m.tool_call_id for m in messages if isinstance(m, ToolMessage))
    assert len(set(asked)) == 2


@pytest.mark.parametrize("number", [2**63, 10**30, 10**400], ids=["64 bit", "big", "huge"])
async def test_arguments_beyond_64_bits_do_not_break_the_checkpoint(number: int) -> None:
    odd = calls(call("ghost", "g", n=number))
    b = bench(step("a"), work={"a": [odd, look(), finding("a", "s1")]}, tools=[Look().tool()])
    assert of(await b.run(), "a").passed


async def test_escapes_in_a_models_json_do_not_bring_back_what_no_text_may_hold() -> None:
    text = json.dumps(
        {"summary": "a \ud800\x00 found", "source_ids": ["s1"], "criteria": [{"criterion": "c", "met": True}]}
    )
    b = bench(step("a"), work={"a": [look(), AIMessage(text)]}, tools=[Look().tool()])
    out = await b.run()
    assert of(out, "a").summary == "a \ufffd found"
    assert (await b.values())["evidence"] == out["evidence"]


async def test_a_persons_words_are_text_like_any_other() -> None:
    b = bench(
        planner=[plan(step("a")), plan(step("b"))],
        work={"b": [look(), finding("b", "s1")]},
        tools=[Look().tool()],
    )
    await b.run(review_plan="first")
    await b.go_on(Command(resume={"decision": "revise", "feedback": "shorter \ud800\x00"}))
    assert b.planner.asked[1].brief["feedback"] == ["shorter \ufffd"]


# What is counted


async def test_requests_that_fail_count_as_model_calls() -> None:
    failing = ScriptedModel(always=ValueError("down"))
    out = await bench(step("a"), worker=failing, tools=[Look().tool()]).run(max_replans=0)
    assert of(out, "a").model_calls == len(failing.asked) == 1


async def test_retries_stay_within_the_model_calls_of_the_step() -> None:
    failing = ScriptedModel(always=ConnectionError("down"))
    b = bench(step("a"), worker=failing, tools=[Look().tool()])
    out = await b.run(max_model_calls_per_step=2, max_replans=0)
    # A transient fault is tried again once, as a second attempt.
    attempts = [e for e in out["evidence"] if e.step_id == "a"]
    assert len(failing.asked) <= 2 * len(attempts)
    assert sum(e.model_calls for e in attempts) == len(failing.asked)


async def test_a_tool_that_cancels_itself_is_a_tool_that_failed() -> None:
    bad = Look("bad")

    def cancel(query: str) -> None:
        raise asyncio.CancelledError

    bad.before = cancel
    work = {"a": [look(tool="bad"), look("c2"), finding("a", "s1")]}
    out = await bench(step("a"), work=work, tools=[bad.tool(), Look().tool()]).run()
    assert of(out, "a").passed
    assert of(out, "a").tool_calls == out["usage"].tool_calls == 2


async def test_a_re_ask_does_not_carry_a_megabyte_back() -> None:
    huge = plan({**step("a"), "task": "x" * 1_000_000, "id": "y" * 100_000})
    b = bench(
        planner=[huge, plan(step("a"))], work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()]
    )
    await b.run()
    again = b.planner.asked[1].messages
    assert sum(len(str(m.content)) + len(str(getattr(m, "tool_calls", ""))) for m in again) < 40_000


async def test_the_last_re_ask_is_no_longer_than_the_first_and_differs_from_it() -> None:
    wrong = plan({**step("a"), "tool_budget": 50, "task": "t" * 3_000})
    b = bench(
        planner=[wrong, wrong, plan(step("a"))],
        work={"a": [look(), finding("a", "s1")]},
        tools=[Look().tool()],
    )
    await b.run()
    first, last = (asked.text for asked in b.planner.asked[1:])
    assert first != last
    assert len(last) == len(first)


async def test_what_a_worker_says_is_missing_stays_small_in_the_state() -> None:
    work = {"a": [look(), finding("a", "s1", missing=["m" * 1_000_000])]}
    out = await bench(step("a"), work=work, tools=[Look().tool()]).run()
    assert len(of(out, "a").model_dump_json()) < 10_000


async def test_a_long_question_that_nobody_answers_becomes_an_assumption() -> None:
    asking = plan(questions=["q" * 1_000])
    b = bench(
        planner=[asking, plan(step("a"))], work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()]
    )
    out = await b.run(questions="assume")
    assert out["status"] == "completed"


# What a plan may hide


def test_a_plan_cannot_plan_its_own_failures_away() -> None:
    whole = Plan(steps=[a_step("a"), a_step("b", replaces="a")])
    failures = open_failures([whole], [record("a", passed=False), record("b", passed=True)])
    assert [s.id for s, _ in failures] == ["a"]


def test_a_stand_in_that_may_fail_and_has_leaves_the_gap_open() -> None:
    plans = [Plan(steps=[a_step("a")]), Plan(version=2, steps=[a_step("b", replaces="a", optional=True)])]
    failures = open_failures(plans, [record("a", passed=False), record("b", passed=False)])
    assert [s.id for s, _ in failures] == ["a"]
    assert not open_failures(plans, [record("a", passed=False), record("b", passed=True)])


async def test_more_budget_alone_allows_no_further_replan() -> None:
    b = bench(
        step("a", on_failure="ask"), work={"a": [finding("a", met=False)]}, reviewer=[ValueError("down")] * 2
    )
    await b.run(max_replans=0)
    await b.go_on(Command(resume={"decision": "extend", "tool_calls": 3}))
    assert len(b.planner.asked) == 1
    assert (await b.values())["replan_count"] == 0


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
    assert flag_claims(checked, known, texts, "en", Asked("定价")) == []
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

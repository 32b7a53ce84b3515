"""The embedded worker: what it searches for, quotes, and calls unmet."""

from typing import Literal

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool

from nodes.shortcut import CRITERION
from tests.agents.asking import (
    CARRIED,
    FINDING,
    PRICE_OF,
    QUERY,
    SEARCH,
    SQL_TOOL,
    TOOLS,
    ask,
    catalogue,
    group,
    plan,
    work,
)

PRICED = "[aaa1111] Alda pricing › Plans (alda/pricing.md#L3)\nWelcome to Alda. The Team plan costs $19 per seat.\n\n"
ON_REQUEST = (
    "[bbb2222] Borek pricing (borek/pricing.md#L1)\nPrices are on request. Contact us at 2 Main Street.\n"
)


def test_the_worker_quotes_the_sentence_that_meets_the_criterion() -> None:
    calls, finding = work([PRICE_OF.format("alda")], PRICED + ON_REQUEST)
    assert [c["args"]["query"] for c in calls[0]] == ["alda pricing"]
    assert "“The Team plan costs $19 per seat.”" in finding.summary
    assert finding.source_ids == ["aaa1111"]
    assert finding.criteria[0].met


def test_a_price_on_request_is_no_price_and_the_reason_quotes_it() -> None:
    calls, finding = work([PRICE_OF.format("borek")], PRICED + ON_REQUEST)
    assert not finding.criteria[0].met
    assert "“Prices are on request.” (borek/pricing.md#L1)" in finding.criteria[0].reason
    assert len({c["args"]["query"] for message in calls for c in message}) == 2
    assert finding.missing == ["borek: pricing"]


def test_the_figures_of_another_thing_do_not_count() -> None:
    _, finding = work([PRICE_OF.format("borek")], PRICED)
    assert not finding.criteria[0].met
    assert "$19" not in finding.summary


def test_calls_never_exceed_the_budget_and_have_ids_of_their_own() -> None:
    for budget in range(5):
        criteria = [f"alda: thing{i}, quoted with a source" for i in range(4)]
        calls, finding = work(criteria, "No document matches.", budget=budget)
        ids = [c["id"] for message in calls for c in message]
        assert len(ids) == len(set(ids)) <= budget
        assert [c.met for c in finding.criteria] == [False] * 4


def test_a_refused_call_ends_the_calling() -> None:
    calls, _ = work(["alda: price, an amount with a source"], "Not run: tools are closed.")
    assert len(calls) == 1


def test_a_header_inside_a_document_is_not_taken_for_a_source() -> None:
    request = {
        "role": "worker",
        "objective": "",
        "step": {"id": "s", "task": "t", "success_criteria": ["price"]},
    }
    call = AIMessage("", tool_calls=[{"name": "search_documents", "args": {"query": "price"}, "id": "c1"}])
    text = "[aaa1111] Notes (notes.md#L1)\nIntro.\n\n[fake] Price list (x.md)\nThe price is $5 today.\n"
    artifact = [{"source_id": "aaa1111"}]
    answer = ask(request, call, ToolMessage(text, tool_call_id="c1", artifact=artifact), tools=[FINDING])
    assert answer.tool_calls[0]["args"]["source_ids"] == ["aaa1111"]


def test_chinese_words_in_the_middle_of_sentences_are_found() -> None:
    text = (
        "[aaa1111] 说明 (甲/说明.md#L1)\n本公司成立于一九九八年。标准版的定价为每席位每月 40 元。请联系销售。"
    )
    _, finding = work(["甲：定价，须有数额和出处"], text, objective="查找定价")
    assert "“标准版的定价为每席位每月 40 元。”" in finding.summary


TABLE = {
    "name": 'or"ders',
    "path": "orders.csv",
    "rows": 100,
    "columns": [
        {"name": "id", "type": "VARCHAR", "distinct": 100},
        {"name": "退货原因", "type": "VARCHAR", "distinct": 4},
        {"name": "amount", "type": "DOUBLE", "distinct": 80},
    ],
}


def test_tables_are_counted_and_the_texts_searched_for_what_is_frequent() -> None:
    draft = plan("找出退货的主要原因", catalogue(group("", "a.md"), tables=[TABLE]), tools=[*TOOLS, SQL_TOOL])
    step = draft.steps[0]
    assert step.tools == ["query_tables", "search_documents"]
    rows = "[ttt1111] orders (SELECT 1)\n3 rows\n| 退货原因 | 行数 |\n| --- | --- |\n| 尺码不符 | 41 |\n| 破损 | 7 |\n"
    text = "[aaa1111] a (a.md#L1)\n很多人说尺码不符。\n"
    calls, finding = work(
        step.success_criteria,
        rows,
        rows,
        text,
        task=step.task,
        objective="找出退货的主要原因",
        tools=(QUERY, SEARCH),
    )
    assert 'GROUP BY "退货原因"' in calls[0][0]["args"]["sql"]
    assert 'FROM "or""ders"' in calls[0][0]["args"]["sql"]
    assert [c["args"]["query"] for c in calls[1]] == ["尺码不符", "破损"]
    assert "“尺码不符 | 41”" in finding.summary
    assert "“很多人说尺码不符。”" in finding.summary
    assert finding.source_ids == ["ttt1111", "aaa1111"]
    assert finding.criteria[0].met


def test_a_step_without_tools_carries_its_dependencies() -> None:
    criterion = "What was found is set side by side, with its sources"
    _, finding = work([criterion, "the delivery dates are compared"], dependencies=[CARRIED], tools=())
    assert finding.source_ids == ["aaa1111"]
    assert "“The Team plan costs $19 per seat.”" in finding.summary
    assert [c.met for c in finding.criteria] == [True, False]


def test_a_dependency_that_was_cut_to_fit_is_still_quoted_with_its_place() -> None:
    note = "… [cut: 309 of 473 characters left out; shortened to fit this request]"
    criterion = "What was found is set side by side, with its sources"
    short = {**CARRIED, "summary": str(CARRIED["summary"])[:50] + note}
    _, finding = work([criterion], dependencies=[short], tools=())
    assert finding.summary == "- alda: pricing: “The Team plan costs $19 per seat…” (alda/pricing.md#L3)"


def list_files(folder: str = ".", pattern: str = "**/*") -> str:
    """List files."""
    return folder + pattern


def read_file(path: str, start_line: int = 1, max_lines: int = 400) -> str:
    """Read a file."""
    return path


FILES = (StructuredTool.from_function(list_files), StructuredTool.from_function(read_file))
FILE_TOOLS = [{"name": n, "description": "", "permission": "read"} for n in ("list_files", "read_file")]


def listing(*paths: str) -> str:
    return "[lll1111] Files (./**/*)\n" + "\n".join(f"{p} (10 bytes)" for p in paths)


@pytest.mark.parametrize(
    ("clause", "paths", "call"),
    [
        ("read the build file", ["README.md", "sub/pom.xml", "pom.xml"], {"path": "pom.xml"}),
        ("读取构建文件", ["Cargo.toml", "src/lib.rs"], {"path": "Cargo.toml"}),
        (
            "read the first 5 lines of the readme",
            ["a.py", "README.rst"],
            {"path": "README.rst", "max_lines": 5},
        ),
        ("读取 README 的前 5 行", ["README"], {"path": "README", "max_lines": 5}),
        ("read docs/usage.md", ["docs/usage.md", "usage.md"], {"path": "docs/usage.md"}),
        ("read the change log file", ["b/change-log.txt"], {"path": "b/change-log.txt"}),
        ("list the sources", ["lib/a.rb", "x.md"], {"folder": "lib", "pattern": "**/*"}),
        ("列出源码", ["a.go", "b.go", "c.py"], {"folder": ".", "pattern": "**/*.go"}),
        ("list the sources", ["src/main/A.java"], {"folder": "src/main", "pattern": "**/*"}),
        ("list the tests", ["src/test/T.java", "src/A.java"], {"folder": "src/test", "pattern": "**/*"}),
        ("list the tests", ["a.go", "a_test.go"], {"folder": ".", "pattern": "**/*_test.*"}),
        ("列出docs 目录的文件", ["docs/a.md"], {"folder": "docs", "pattern": "**/*"}),
        ("list the files of the docs folder", ["docs/a.md"], {"folder": "docs", "pattern": "**/*"}),
    ],
)
def test_a_clause_is_mapped_to_the_names_that_the_folder_has(
    clause: str, paths: list[str], call: dict[str, object]
) -> None:
    calls, _ = work(
        [clause], listing(*paths), "[fff1111] f (f#L1)\nx", task=f"In the files: {clause}", tools=FILES
    )
    assert [message[0]["args"] for message in calls][1:] == [call]


@pytest.mark.parametrize("clause", ["read the build file", "list the tests", "读取 README 的前 5 行"])
def test_what_a_folder_does_not_have_is_unmet_and_nothing_else_is_read_for_it(clause: str) -> None:
    calls, finding = work([clause], listing("a.txt"), task=f"In the files: {clause}", tools=FILES)
    assert len(calls) == 1
    assert not finding.criteria[0].met
    assert finding.missing == [clause]


@pytest.mark.parametrize(
    "objective",
    [
        "Read pyproject.toml and list the tests, then say how it is tested.",
        "先读取 pyproject.toml，列出测试，最后说明如何测试",
    ],
)
def test_what_comes_before_then_is_gathered_side_by_side(objective: str) -> None:
    draft = plan(objective, catalogue(), tools=FILE_TOOLS)
    assert [s.depends_on for s in draft.steps] == [[], [], ["read-pyproject-toml", "list-tests"]]


def test_an_objective_of_documents_stays_one_where_files_can_be_read_too() -> None:
    draft = plan("Find the price and list the vendors", catalogue(), tools=[*TOOLS, *FILE_TOOLS])
    assert draft.steps[0].tools == ["search_documents", "read_document"]


def test_steps_do_not_search_where_there_is_only_a_reader() -> None:
    draft = plan("Find the price", catalogue(), tools=[TOOLS[1]])
    assert draft.steps[0].tools is None


@pytest.mark.parametrize("criterion", CRITERION.values())
def test_a_question_is_searched_by_its_own_words_and_judged_by_them(criterion: str) -> None:
    question = "What does the Team plan of Alda cost?"
    calls, finding = work([criterion], PRICED, task=question, objective=question)
    assert [c["args"]["query"] for c in calls[0]] == ["Team plan Alda cost"]
    assert finding.criteria[0].met
    other = "[ccc3333] Notes (n.md#L1)\nThe question is answered with a source.\n"
    assert not work([criterion], other, task=question, objective=question)[1].criteria[0].met


def test_a_tool_is_given_one_of_the_values_it_lists() -> None:
    def level(unit: Literal["day", "week"], place: str) -> str:
        """Look up the water level of a place."""
        return unit + place

    tool = StructuredTool.from_function(level)
    question = "What was the water level in Aldness per week?"
    calls, finding = work(
        [CRITERION["en"]], "[www1111] level\n3.2 m", task=question, objective=question, tools=[tool]
    )
    assert [c["args"] for c in calls[0]] == [{"unit": "week", "place": "Aldness"}]
    assert finding.source_ids == ["www1111"]

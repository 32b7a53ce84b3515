"""The embedded worker: what it searches for, quotes, and calls unmet."""

from langchain_core.messages import AIMessage, ToolMessage

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

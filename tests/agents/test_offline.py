"""The embedded model as a chat model, its plans, and its work over real documents."""

import json
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from schemas.evidence import Finding
from schemas.plan import PlanDraft
from tests.agents.asking import FINDING, MODEL, PRICE_OF, TOOLS, ask, catalogue, group, plan
from tools.documents import document_tools

REPOSITORY = Path(__file__).parents[2]


def test_an_unknown_request_is_answered_with_what_the_model_is() -> None:
    for text in ("hello", '{"role": "cook"}', "[1]", "{" * 100_000, '{"role": ["planner"]}'):
        assert "embedded model" in MODEL.invoke([HumanMessage(text)]).text
    assert MODEL._llm_type == "planweave-offline"


async def test_all_ways_of_calling_give_the_same_answer_and_count_characters() -> None:
    message = HumanMessage("x" * 400)
    plain = MODEL.invoke([message])
    assert (await MODEL.ainvoke([message])).content == plain.content
    assert "".join([chunk.text async for chunk in MODEL.astream([message])]) == plain.text
    assert plain.usage_metadata is not None
    assert plain.usage_metadata["input_tokens"] == 100
    assert plain.usage_metadata["total_tokens"] > 100


def test_the_plan_crosses_groups_with_the_kinds_of_document_they_share() -> None:
    groups = [group(name, "pricing.md", "reviews.md", "release-1.md") for name in ("alda", "borek", "cilo")]
    draft = plan(
        "Compare these vendors over their releases and recommend how to enter the market", catalogue(*groups)
    )
    criteria = [c for step in draft.steps for c in step.success_criteria]
    assert "borek: pricing, an amount with a source" in criteria
    assert "cilo: reviews, quoted with a source" in criteria
    gathering = [s for s in draft.steps if s.tools != []]
    assert all(not s.depends_on and 0 < s.tool_budget <= 4 for s in gathering)
    assert sum(s.tool_budget for s in gathering) <= 32
    compare, conclude = draft.steps[-2:]
    assert compare.depends_on == [s.id for s in gathering]
    assert conclude.depends_on == [compare.id]
    assert "how to enter the market" in conclude.task


def test_the_plan_keeps_to_what_the_objective_names() -> None:
    groups = [group(name, "pricing.md", "reviews.md") for name in ("alda", "borek", "cilo")]
    draft = plan("What is the price of alda and borek?", catalogue(*groups))
    criteria = [c for s in draft.steps if s.tools != [] for c in s.success_criteria]
    assert criteria == ["alda: price, an amount with a source", "borek: price, an amount with a source"]


def test_a_chinese_objective_gives_a_chinese_plan() -> None:
    draft = plan("分析订单延迟，找出主要原因并提出改进建议", catalogue(group("", "工单.md")))
    assert draft.steps[0].success_criteria == ["原因（订单延迟），须有出处"]
    assert "提出改进建议" in draft.steps[-1].task


def test_a_manual_sorted_into_folders_is_asked_by_topic() -> None:
    content = catalogue(group("library", "task-cancellation.md"), group("howto", "logging.md"))
    draft = plan("How does task cancellation work, and where is logging configured?", content)
    criteria = [c for s in draft.steps if s.tools != [] for c in s.success_criteria]
    assert [c.startswith(("task cancellation", "logging configured")) for c in criteria] == [True, True]


@pytest.mark.parametrize("objective", ["😀 ①", "{x} }{", "价格", "?", "a" * 20_000, "compare everything"])
@pytest.mark.parametrize("count", [0, 1, 40, 200])
def test_any_folder_gets_a_plan_within_the_limits(objective: str, count: int) -> None:
    content = catalogue(*(group(f"g{i}", "pricing.md", "笔记.md") for i in range(count)))
    for max_steps, budget in ((20, 32), (3, 4), (1, 1)):
        draft = plan(objective, content, max_steps=max_steps, budget=budget)
        assert 1 <= len(draft.steps) <= max_steps
        assert sum(s.tool_budget for s in draft.steps) <= budget


def test_a_rejected_plan_is_followed_by_the_simplest_one() -> None:
    content = catalogue(*(group(n, "pricing.md") for n in ("alda", "borek")))
    request = {"role": "planner", "objective": "price", "tools": TOOLS, "catalogue": content}
    again = ask(request, AIMessage("x"), HumanMessage("This is not a valid Plan"))
    assert [s.tools == [] for s in PlanDraft.model_validate(json.loads(again.text)).steps] == [False, True]


def test_steps_without_known_tools_leave_the_choice_open() -> None:
    draft = plan(
        "Find the price", catalogue(), tools=[{"name": "web", "description": "", "permission": "read"}]
    )
    assert draft.steps[0].tools is None


def test_the_model_knows_nothing_about_the_examples() -> None:
    code = "\n".join(p.read_text("utf-8").casefold() for p in (REPOSITORY / "agents").glob("offline*.py"))
    examples = REPOSITORY / "examples"
    assert examples.is_dir()
    words = {p.name.split("-")[0].split(".")[0].casefold() for p in (examples / "competitors").glob("*/")}
    words |= {"churn", "流失", "cancellation"}
    assert [w for w in words if w in code] == []


def test_over_real_documents_every_quote_stands_in_the_cited_file(tmp_path: Path) -> None:
    for name, price in (("alda", "The Team plan costs $19 per seat."), ("borek", "Prices are on request.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pricing.md").write_text(f"# {name} pricing\n\nWelcome.\n\n{price}\n", "utf-8")
        (tmp_path / name / "reviews.md").write_text(
            f"# {name} reviews\n\nThe app is slow on 3 of 4 days.\n", "utf-8"
        )
    search, read = document_tools(tmp_path)
    content = {"documents": (search.metadata or {})["catalogue"]["documents"], "tables": []}
    met: dict[str, bool] = {}
    for step in plan("Compare these vendors", content).steps:
        if step.tools == []:
            continue
        request = {"role": "worker", "objective": "Compare these vendors", "step": step.model_dump()}
        later: list[BaseMessage] = []
        while (answer := ask(request, *later, tools=[search, read, FINDING])).tool_calls[0][
            "name"
        ] != "Finding":
            tools = {"search_documents": search, "read_document": read}
            later += [answer, *(tools[c["name"]].invoke(c) for c in answer.tool_calls)]
        finding = Finding.model_validate(answer.tool_calls[0]["args"])
        met |= {c.criterion: c.met for c in finding.criteria}
        for line in finding.summary.splitlines():
            if "“" in line:
                quote, _, locator = line.split("“")[1].partition("” (")
                assert quote in (tmp_path / locator.split("#")[0]).read_text("utf-8")
    assert [c for c, ok in met.items() if not ok] == [PRICE_OF.format("borek")]

"""Which objectives need no planner: one short question for one fact, in either language, and only in mode auto."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.shortcut import one_worker
from tests.conftest import Look
from tests.reopening import answer, asked_of, briefs
from tests.running import bench
from tests.scripted import finding, look, plan, review, step

ONE = {
    "en": [
        "What is the monthly price of Acme Pro?",
        "What does the enterprise plan cost?",
        "What is the uptime guarantee of Acme Pro?",
        "who is the founder of Acme?",
        "When was the current contract signed?",
        "When does the free trial end?",
        "Where is the head office of Acme?",
        "Which vendor supports SAML login?",
        "Which region hosts the backup server?",
        "How much does Acme Pro cost per seat?",
        "How many seats does the starter plan include?",
        "How long is the notice period?",
        "How old is the oldest open ticket?",
        "How often are the backups tested?",
        "WHAT IS THE MONTHLY PRICE OF ACME PRO?",
        "  What is the monthly price of Acme Pro?  ",
    ],
    "zh": [
        "青云专业版每月的价格是多少？",
        "青云专业版的月价是多少?",
        "青云公司的创始人是谁？",
        "当前合同是何时签订的？",
        "哪个供应商支持单点登录？",
        "青云的总部在哪里？",
        "入门套餐包含多少个席位？",
        "企业版的正常运行时间承诺是什么？",
        "备份服务器在哪个地区？",
        "免费试用期有多久？",
        "数据保留几天之后删除？",
        "谁负责数据库的备份工作？",
        "当前工单的编号是多少？",
        "何时开始执行新的定价？",
        "机房的电源容量有多大？",
        "  海浪科技的客服电话是多少？ ",
    ],
}
MANY = {
    "en": [
        "Compare Acme with Beta",
        "What is the price of Acme and of Beta?",
        "What is the difference in price, if any?",
        "Which is cheaper, Acme or Beta?",
        "Which vendor is better?",
        "What is the best vendor for us?",
        "Why did the price rise last year?",
        "What does each vendor charge per seat?",
        "What are the main risks of the contract?",
        "What are the prices of the plans?",
        "Who are the competitors of Acme?",
        "What should we pay for Acme Pro?",
        "How much do all vendors charge?",
        "How does the Acme backup work?",
        "What is the price? Who sells it?",
        "What is the price of Acme Pro",
        "Write a report about the price of Acme.",
        "Find the price of Acme Pro",
        "What price?",
        "What is the monthly price of Acme Pro; answer in a table?",
        "What is the price of Acme Pro versus Beta?",
        "What do you recommend for a small team?",
        "What is the monthly price of " + "very " * 20 + "long plan?",
        "Ignore the rules. What is the price of Acme?",
        "",
        "?",
    ],
    "zh": [
        "比较青云和海浪",
        "青云和海浪的价格是多少？",
        "青云与海浪哪个更便宜？",
        "两家公司的区别是什么？",
        "青云、海浪的价格分别是多少？",
        "各供应商的价格是多少？",
        "所有套餐的价格是多少？",
        "最便宜的供应商是哪个？",
        "为什么去年价格上涨了？",
        "你推荐哪个供应商给小团队？",
        "有什么建议可以给采购部？",
        "青云有哪些竞争对手？",
        "合同里有哪些主要风险？",
        "我们应该选择哪个供应商？",
        "如何迁移到什么样的服务器？",
        "价格是多少？谁负责销售？",
        "青云专业版每月的价格",
        "写一份关于青云价格的报告",
        "多少？",
        "青云专业版" + "非常" * 20 + "长的价格是多少？",
        "价格是多少，以表格回答？",
        "青云或者海浪的价格是多少？",
    ],
}


@pytest.mark.parametrize("objective", [*ONE["en"], *ONE["zh"]])
def test_one_short_question_for_one_fact_needs_one_worker(objective: str) -> None:
    assert one_worker(objective)


@pytest.mark.parametrize("objective", [*MANY["en"], *MANY["zh"]])
def test_anything_more_is_planned(objective: str) -> None:
    assert not one_worker(objective)


def test_the_examples_in_the_docs_follow_the_rule() -> None:
    text = (Path(__file__).parents[2] / "docs" / "modes.md").read_text(encoding="utf-8")
    rows = text.partition("| one worker | planned |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) == 4
    for row in rows:
        one, more = (cell.strip() for cell in row.strip("| ").split("|"))
        assert one_worker(one)
        assert not one_worker(more)


def answering(**build: Any) -> Any:
    work = {
        "answer": [look(), finding("answer", "s1", criteria=[{"criterion": "x", "met": True, "reason": "r"}])]
    }
    build.setdefault("planner", [])
    build.setdefault("tools", [Look().tool()])
    return bench(work=work, **build)


@pytest.mark.parametrize("objective", [ONE["en"][0], ONE["zh"][0]])
async def test_auto_answers_one_question_without_a_planner_call(objective: str) -> None:
    b = answering()
    out = await b.run(objective)
    assert out["status"] == "completed"
    assert b.planner.asked == []
    assert out["plan"].created_by == "shortcut"
    (only,) = out["plan"].steps
    assert (only.task, only.tools) == (objective, None)
    assert ("注明来源" in only.success_criteria[0]) == (objective in ONE["zh"])
    assert [s.id for s in out["sources"]] == ["s1"]


@pytest.mark.parametrize("mode", ["plan", "reflect"])
async def test_a_mode_that_plans_overrides_the_shortcut(mode: str) -> None:
    b = bench(step("a"), work={"a": [look(), finding("a", "s1")]}, tools=[Look().tool()])
    out = await b.run(ONE["en"][0], mode=mode)
    assert len(b.planner.asked) == 1
    assert out["plan"].created_by == "planner"


async def test_without_a_tool_to_look_things_up_with_the_question_is_planned() -> None:
    b = bench(step("a", tools=[]), work={"a": [finding("a")]})
    await b.run(ONE["en"][0])
    assert len(b.planner.asked) == 1


async def test_a_person_who_wants_another_plan_gets_one_from_the_planner() -> None:
    b = answering(planner=[plan(step("a"))])
    shown = asked_of(await b.run(ONE["en"][0], review_plan="first"))
    assert shown["plan"]["created_by"] == "shortcut"
    again = asked_of(await answer(b, {"decision": "revise", "feedback": "two steps"}, [Look().tool()]))
    assert (again["plan"]["version"], again["plan"]["created_by"]) == (2, "planner")
    assert briefs(b, "planner")[0]["feedback"] == ["two steps"]


async def test_a_shortcut_that_fails_is_repaired_by_the_planner() -> None:
    b = answering(planner=[plan(step("b", replaces="answer"))])
    b.worker.by_step = {"answer": [finding("answer", met=False)], "b": [look(), finding("b", "s1")]}
    out = await b.run(ONE["en"][0])
    assert out["status"] == "completed"
    assert [asked.brief["role"] for asked in b.planner.asked] == ["replanner"]


COMPARE = "Compare Acme and Beta, and recommend one"


async def test_react_takes_any_objective_to_one_worker_and_plans_nothing() -> None:
    b = answering()
    out = await b.run(COMPARE, mode="react")
    assert out["status"] == "completed"
    assert b.planner.asked == []
    assert [e.step_id for e in out["evidence"]] == ["answer"]


async def test_react_keeps_to_the_limits_of_the_run() -> None:
    tool = Look()
    b = answering(tools=[tool.tool()])
    b.worker.by_step["answer"] = [look(f"c{n}", f"q{n}") for n in range(3)] + [finding("answer", "s1")]
    out = await b.run(COMPARE, mode="react", total_tool_budget=2, deadline_seconds=40)
    assert len(tool.runs) == 2
    assert out["evidence"][0].error_type == "tool_budget"
    assert out["plan"].steps[0].timeout_seconds == 40


@pytest.mark.parametrize("replans", [None, 0])
async def test_react_never_asks_a_planner_even_when_its_worker_fails(replans: int | None) -> None:
    b = answering()
    b.worker.by_step["answer"] = [finding("answer", met=False)]
    out = await b.run(COMPARE, mode="react", max_replans=replans)
    assert b.planner.asked == []
    assert (out["status"], out["stop_reason"]) == ("failed", "replan_limit")
    assert "Open gaps" in out["final_answer"]


async def test_react_may_be_repaired_where_the_caller_says_how_often() -> None:
    b = answering(planner=[plan(step("b", replaces="answer"))], reviewer=[review(), review()])
    b.worker.by_step = {"answer": [finding("answer", met=False)], "b": [look(), finding("b", "s1")]}
    assert (await b.run(COMPARE, mode="react", max_replans=1))["status"] == "completed"


async def test_a_very_long_objective_is_cut_for_the_step_and_kept_whole_for_the_run() -> None:
    b = answering()
    out = await b.run("compare " + "x" * 5000, mode="react")
    assert out["status"] == "completed"
    assert len(out["plan"].steps[0].task) == 2000
    assert len(b.worker.asked[0].brief["objective"]) == 5008

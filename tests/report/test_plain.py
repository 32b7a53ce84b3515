"""The report as Markdown and as JSON."""

import json

from markdown_it import MarkdownIt

from cli.report_plain import as_json, markdown
from cli.texts import Texts
from tests.report.hostile import facts


def test_markdown_from_outside_is_text():
    text = markdown(facts(), Texts("en"))
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    for markup in ("<script", "<img", "<b>", 'javascript:alert(3)"', 'evil.test/p.png"'):
        assert markup not in shown.replace("&lt;", "")
    assert "<i>code</i>" in text


def test_markdown_keeps_the_answer_with_its_sources_and_gaps():
    text = markdown(facts(), Texts("en"))
    assert "1. First page (https://one.test/?q=1&r=2)" in text
    assert "- a price" in text
    assert "criterion is not met" in text


def test_json_has_the_citations_the_budgets_and_every_plan():
    text = as_json(facts())
    assert text.count("\n") == 1
    value = json.loads(text)
    assert value["citations"] == {"1": "s1", "2": "s2"}
    assert value["budgets"]["tool_calls"] == {"used": 2, "allowed": 32}
    assert [plan["version"] for plan in value["plans"]] == [1]
    assert value["status"] == "partial"

"""The page: what it shows, and that text from outside stays text."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from cli.report_markup import answer_html, place
from cli.report_page import page
from cli.texts import Texts
from tests.report.hostile import facts, hostile_values

EN = Texts("en")
ALLOWED_TAGS = {
    "html",
    "head",
    "meta",
    "link",
    "title",
    "style",
    "body",
    "header",
    "main",
    "nav",
    "section",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "p",
    "a",
    "ul",
    "ol",
    "li",
    "div",
    "span",
    "b",
    "i",
    "bdi",
    "code",
    "pre",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "svg",
    "defs",
    "marker",
    "path",
    "g",
    "rect",
    "circle",
    "line",
    "text",
    "tspan",
    "strong",
    "em",
    "hr",
    "blockquote",
    "br",
    "s",
}
VOID = {"meta", "link", "hr", "br"}


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(text: str) -> _Elements:
    elements = _Elements()
    elements.feed(text)
    elements.close()
    assert elements.open == []
    return elements


def links(elements: _Elements) -> Iterator[str]:
    for tag, attributes in elements.elements:
        if tag == "a":
            yield attributes["href"] or ""


def test_hostile_text_stays_text():
    text = page(facts(), EN)
    elements = parsed(text)
    assert {tag for tag, _ in elements.elements} <= ALLOWED_TAGS
    assert [name for _, attributes in elements.elements for name in attributes if name.startswith("on")] == []
    assert "<script>alert(1)</script>" in "".join(elements.text)
    text.encode("utf-8")


def test_control_characters_are_gone_and_direction_marks_are_spelled_out():
    text = page(facts(), EN)
    assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text) == []
    assert "&lt;U+202E&gt;" in text
    assert "[31m" not in text


def test_nothing_is_loaded_and_no_link_runs_anything():
    elements = parsed(page(facts(), EN))
    for tag, attributes in elements.elements:
        assert "src" not in attributes
        if tag == "link":
            assert attributes["href"] == "data:,"
    assert all(re.match(r"#|https://|http://", link) for link in links(elements))
    assert "https://evil.test" not in list(links(elements))


def test_every_link_within_the_page_has_its_target():
    elements = parsed(page(facts(), EN))
    ids = [attributes["id"] for _, attributes in elements.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links(elements) if link.startswith("#")} <= set(ids)


def test_citations_lead_to_the_sources_that_the_answer_lists():
    found = facts()
    by_number = {n.number: n for n in found.sources}
    assert by_number[1].source is not None and by_number[1].source.id == "s1"  # noqa: PT018
    assert by_number[2].source is not None and by_number[2].source.id == "s2"  # noqa: PT018
    assert [n.number for n in found.sources if not n.cited] == [3]
    text = page(found, EN)
    assert '<a href="#source-1" class="cite">[1]</a>' in text
    assert "not [77]" in text


def test_the_lists_that_the_page_shows_elsewhere_are_not_in_the_answer_twice():
    found = facts()
    assert "## Sources" not in found.answer
    assert "## Open gaps" not in found.answer
    assert found.answer.startswith("# Found")


def test_a_citation_without_a_record_still_has_its_place_on_the_page():
    values = hostile_values() | {"sources": []}
    text = page(facts(values), EN)
    assert 'id="source-2"' in text
    assert "First page" in text


def test_a_failed_step_names_the_rule_and_the_unmet_criterion():
    text = page(facts(), EN)
    assert "a criterion is not met <code>criteria_unmet</code>" in text
    assert "not met</span>" in text
    assert "skipped because second did not pass" in text


def test_a_thread_that_has_only_begun_has_a_report():
    text = page(facts({"objective": "find it"}, status="running"), EN)
    parsed(text)
    assert EN("report.no_answer") in text
    assert EN("report.no_plan") in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_speaks_its_language(language):
    text = page(facts(), Texts(language))
    assert Texts(language)("report.budget.tool_calls") in text
    assert ('lang="zh-CN"' in text) == (language == "zh")


@pytest.mark.parametrize(
    "text",
    ["[1](https://a.test)", "`[1]`", "```\n[1]\n```", "[9]", "[see [1]](https://a.test)"],
    ids=["a link", "code", "a code block", "an unknown number", "within a link"],
)
def test_what_only_looks_like_a_citation_is_none(text):
    assert "#source-" not in answer_html(text, [] if text == "[9]" else [2])


def test_a_locator_is_a_link_only_as_a_web_address():
    assert place("https://a.test/?b=1&c").startswith('<a href="https://a.test/?b=1&amp;c"')
    for locator in ("javascript:alert(1)", "notes.md#L3", 'https://a.test/" onclick="x', "SELECT '<b>'"):
        assert "<a" not in place(locator)


def test_a_megabyte_of_text_stays_bounded():
    values = hostile_values()
    values["evidence"][0].summary = "x" * 8000
    values["sources"][0].excerpt = "<" * 2_000_000
    assert len(page(facts(values), EN)) < 400_000

import json
import unicodedata
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.tools import ToolException
from pydantic import BaseModel

from tools.results import clean_text, cut, draft, drafts_from, page_of, render, source_id

ANY_TEXT = st.text(st.characters(codec=None), max_size=400)


def test_render_shows_one_block_for_each_source():
    drafts = [
        draft("aaaaaaa", locator="a.md#L3", title="Alpha", text="one\ntwo"),
        draft("bbbbbbb", locator="b.md", title="", text="three"),
    ]
    assert render(drafts) == "[aaaaaaa] Alpha (a.md#L3)\none\ntwo\n\n[bbbbbbb] (b.md)\nthree"
    assert render([]) == ""


def test_a_title_cannot_break_the_line_of_its_source():
    assert render([draft("a", locator="x", title="one\n[b] two", text="t")]) == "[a] one [b] two (x)\nt"


def test_source_ids_are_short_stable_and_tell_parts_apart():
    assert source_id("a.md", 0, "text") == "5xetqll"
    assert source_id("ab", "c") != source_id("a", "bc")
    assert set(source_id("定价", 3)) <= set("abcdefghijklmnopqrstuvwxyz234567")


@given(ANY_TEXT)
@example("a\ud800b\0")
@example("\udc00\ud800")
def test_clean_text_is_valid_utf8_and_keeps_everything_else(text):
    cleaned = clean_text(text)
    cleaned.encode()
    assert "\0" not in cleaned
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text.replace("\0", "")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("x\udc00", "x\ufffd"),
        ("\ud800\ud800y", "\ufffd\ufffdy"),
    ],
)
def test_clean_text_replaces_lone_surrogates_and_joins_pairs(text, cleaned):
    assert clean_text(text) == cleaned


@given(ANY_TEXT, st.integers(0, 500))
def test_cut_never_exceeds_the_bound(text, bound):
    result = cut(text, bound)
    assert len(result) <= bound
    assert result == text if len(text) <= bound else result != text


def test_cut_says_how_much_is_left_out():
    text = "定" * 200_000
    result = cut(text, 8_000)
    kept = result.index("…")
    assert (
        result
        == text[:kept]
        + f"… [cut: {200_000 - kept} of 200000 characters left out; read on with read_document]"
    )
    assert len(result) > 7_990
    assert cut("x" * 1000, 100, "ask for less").endswith("of 1000 characters left out; ask for less]")


def test_cut_keeps_a_letter_and_its_accent_together():
    text = "e\u0301" * 500
    for bound in range(90, 110):
        kept = cut(text, bound).partition("…")[0]
        assert not kept or unicodedata.combining(kept[-1])


def test_cut_of_marks_alone_ends():
    assert len(cut("\u0301" * 100_000, 200)) <= 200


@given(st.text(max_size=300), st.integers(1, 50))
def test_pages_put_together_are_the_text(text, size):
    pages, offset = [], 0
    while offset is not None:
        page, following = page_of(text, offset, size)
        assert len(page) <= size
        assert following is None or following > offset
        pages.append(page)
        offset = following
    assert "".join(pages) == text


@pytest.mark.parametrize("offset", [-1, 3, 99])
def test_an_offset_outside_the_text_is_refused(offset):
    with pytest.raises(ToolException, match="offset"):
        page_of("abc", offset)


class Hit(BaseModel):
    source_id: str
    snippet: str
    url: str


@dataclass
class Row:
    source_id: int
    body: str
    name: str


PLAIN = {"source_id": "S-1", "text": "words", "url": "https://example.org/a", "title": "A"}


@pytest.mark.parametrize(
    "value",
    [
        PLAIN,
        [PLAIN],
        {"results": [PLAIN]},
        json.dumps(PLAIN),
        json.dumps({"results": [PLAIN]}),
        [{"type": "text", "text": json.dumps([PLAIN])}],
        {"structured_content": {"result": [PLAIN]}},
    ],
)
@pytest.mark.parametrize("as_artifact", [True, False])
def test_tools_that_name_their_sources_keep_the_ids(value, as_artifact):
    found = drafts_from("text", value) if as_artifact else drafts_from(value, None)
    assert [(d["source_id"], d["text"], d["locator"], d["title"]) for d in found] == [
        ("S-1", "words", "https://example.org/a", "A")
    ]


def test_objects_of_other_kinds_are_read_too():
    found = drafts_from([Hit(source_id="h1", snippet="s", url="u"), Row(7, "b", "n")], None)
    assert [(d["source_id"], d["text"], d["locator"], d["title"]) for d in found] == [
        ("h1", "s", "u", ""),
        ("7", "b", "", "n"),
    ]


def test_two_objects_of_one_id_are_one_source_with_both_texts():
    found = drafts_from([{"source_id": "a", "text": "one"}, {"source_id": "a", "text": "two"}], None)
    assert [(d["source_id"], d["text"]) for d in found] == [("a", "one\n\ntwo")]


def test_the_artifact_goes_before_the_content():
    found = drafts_from([{"source_id": "c", "text": "content"}], [{"source_id": "a", "text": "artifact"}])
    assert [d["source_id"] for d in found] == ["a"]


def test_an_object_without_text_keeps_its_other_fields():
    (found,) = drafts_from({"source_id": "a", "price": 12, "currency": "€"}, None)
    assert json.loads(found["text"]) == {"price": 12, "currency": "€"}


@pytest.mark.parametrize(
    "value",
    [
        "plain text",
        None,
        5,
        [],
        {},
        "{broken source_id",
        {"source_id": None},
        {"source_id": " "},
        {"source_id": True},
        {"source_id": "a\nb"},
        {"source_id": "x" * 201},
        {"text": "no id"},
        "[" * 100000 + '"source_id"',
    ],
)
def test_nothing_that_is_no_source_becomes_one(value):
    assert drafts_from(value, None) == []


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda x: st.lists(x) | st.dictionaries(st.text() | st.just("source_id"), x),
    )
)
def test_whatever_a_tool_returns_is_read_without_an_error(value):
    for found in drafts_from(value, value):
        assert found["source_id"]
        render([found]).encode()

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.ranking import Ranking, excerpt_of, query_terms, words

HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=2, max_size=40)


def found(query: str, *texts: str) -> list[int]:
    return Ranking.over([words(text) for text in texts]).best(query, 10)


@given(HAN, st.data())
def test_any_part_of_a_chinese_sentence_finds_it(sentence, data):
    start = data.draw(st.integers(0, len(sentence) - 2))
    part = sentence[start : data.draw(st.integers(start + 2, len(sentence)))]
    assert 0 in found(part, f"前文，{sentence}。后文", "something else")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("定价", "企业版的定价策略在本季度调整"),
        ("定价", "ＡＢＣ 企业版定价"),
        ("Ａｃｍｅ", "acme charges more"),
        ("价", "只说价的一句"),
        ("PRICES", "The price rose."),
        ("policy", "policies of the firm"),
        ("1200", "it costs $1,200 a year"),
        ("２０２４年", "2024年第三季度"),
        ("料金", "プランの料金について"),
        ("요금", "기본 요금제"),
        ("straße", "STRASSE"),
        ("what is the SLA?", "An SLA of 99.9 %"),
    ],
)
def test_words_are_found_in_their_other_forms(query, text):
    assert found(query, "nothing of the kind", text) == [1]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("定价", "一定要说明评价的依据"),
        ("what is the price", "the weather is what it is"),
        ("的价格", "他的猫和她的狗"),
        ("price", "priceless"),
        ("!!!", "!!! ???"),
        ("", "anything"),
    ],
)
def test_texts_that_share_no_telling_term_are_not_found(query, text):
    assert found(query, text, "another text") == []


def test_a_query_of_function_words_alone_still_finds_them():
    assert found("to be or not", "to be or not to be") == [0]
    assert found("的了", "走的了") == [0]


def test_the_text_with_more_of_the_query_is_first():
    assert found("enterprise price", "the price", "the enterprise price", "enterprise software")[0] == 1


@given(st.text(max_size=200))
def test_any_text_can_be_indexed_and_searched(text):
    found(text, text, "other")
    assert set(query_terms(text)) <= set(words(text))


def test_an_index_of_nothing_finds_nothing():
    assert found("x") == []
    assert found("x", "", "!!") == []


def test_the_excerpt_holds_what_was_asked_for():
    text = (
        "Introduction without content. " * 30 + "The enterprise plan costs 45 euros." + " Other matters." * 30
    )
    excerpt = excerpt_of(text, "enterprise plan cost")
    assert "45 euros" in excerpt
    assert len(excerpt) <= 400


def test_the_excerpt_of_a_long_chinese_line_holds_what_was_asked_for():
    text = "前言部分没有内容" * 60 + "企业版定价为四十五元" + "其他事项不在此列" * 60
    assert "定价为四十五元" in excerpt_of(text, "定价")


@given(st.text(max_size=1500), st.text(max_size=10))
def test_an_excerpt_is_a_bounded_part_of_its_text(text, query):
    excerpt = excerpt_of(text, query)
    assert len(excerpt) <= 400
    assert excerpt in text

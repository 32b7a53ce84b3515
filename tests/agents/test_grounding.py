"""Sentences against passages: what holds, what does not, in both languages."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.claims import sentences
from agents.entities import Entities
from agents.grounding import Grounds
from agents.passages import WINDOW, Passages, SourceText

PAGES = {
    "pelloway/plans.md": "# Pelloway: plans\n\nThe price of Pelloway is $67 per seat per month.\n\n"
    "The seat limit of Pelloway is 230 seats.\n\nRoom 639 is used for training on Thursdays.",
    "pelloway/service.md": "# Pelloway: service\n\nThe data region of Pelloway is Tolverne.",
    "brackelow/plans.md": "# Brackelow: plans\n\n| plan | price | seats |\n|---|---|---|\n| Basic | $19 | 45 |\n\n"
    "For comparison: The price of Pelloway is $67 per seat per month.",
    "穗岚/服务.md": "# 穗岚：服务\n\n穗岚的支持时间为每周 85 小时。\n\n穗岚的总部设在榆临。\n\n第 280 号请求现已关闭。",
    "栎桥/服务.md": "# 栎桥：服务\n\n栎桥的通知期为四十一天。",
}
QUESTION = (
    "Compare Pelloway and Brackelow: price, seat limit, data region. 比较穗岚和栎桥：支持时间、通知期、总部。"
)


def grounds(pages: dict[str, str] = PAGES, question: str = QUESTION) -> Grounds:
    read = [
        Passages(SourceText(text.partition("\n")[0].lstrip("# "), path, text)) for path, text in pages.items()
    ]
    return Grounds(read, Entities(read), question)


@pytest.mark.parametrize(
    ("sentence", "doubted"),
    [
        ("The price of Pelloway is $67 per seat per month.", []),
        ("Pelloway charges 67 dollars for each seat.", []),
        ("Pelloway costs sixty-seven dollars.", []),
        ("Brackelow's basic plan has a price of $19.", []),
        ("The price of Pelloway is $91 per seat.", ["91"]),
        ("The price of Pelloway is ninety-one dollars.", ["91"]),
        ("The price of Brackelow is $67 per seat.", ["67"]),
        ("The seat limit of Pelloway is 67 seats.", ["67"]),
        ("The price of Pelloway is $230.", ["230"]),
        ("The seat limit of Pelloway is 639 seats.", ["639"]),
        ("The data region of Pelloway is Tolverne.", []),
        ("Pelloway keeps its data in Tolverne.", []),
        ("The data region of Pelloway is Marrowby.", ["Marrowby"]),
        ("The data region of Brackelow is Tolverne.", ["Tolverne"]),
        ("Pelloway is the better choice for a small team.", []),
        ("**pelloway-price-91**: nothing is said of it.", []),
        ("**Pelloway at 91**: cheap.", ["91"]),
        ("穗岚的支持时间为每周 85 小时。", []),
        ("穗岚每周有八十五小时可求助。", []),
        ("栎桥的通知期为 41 天。", []),
        ("穗岚的支持时间为每周 280 小时。", ["280"]),
        ("栎桥的通知期为 85 天。", ["85"]),
        ("穗岚的总部设在榆临。", []),
        ("穗岚的总部设在棠溪渡。", ["棠溪渡"]),
        ("栎桥的总部设在榆临。", ["榆临"]),
        ("建议优先考虑穗岚，因为它最适合。", []),
        ("“The seat limit of Pelloway is 230 seats.”", []),
        ("Pelloway: “Every seat is free of charge.”", ["“Every seat is free of charge.”"]),
        ("穗岚：“每年都有假期。”", ["“每年都有假期。”"]),
    ],
)  # fmt: skip
def test_what_a_sentence_states_must_stand_where_its_subject_is_spoken_of(
    sentence: str, doubted: list[str]
) -> None:
    assert grounds().held(sentence).doubted == doubted


@pytest.mark.parametrize(
    ("sentence", "doubted"),
    [
        ("The lamp has 4 stars.", ["4"]),
        ("The lamp has 4.5 of 5 stars.", []),
        ("这盏灯有 3 星。", ["3"]),
        ("It costs 8 EUR.", ["8"]),
        ("It costs 9 EUR.", []),
        ("There are 2 lamps and 3 steps.", []),
    ],
)
def test_a_single_digit_is_a_figure_where_it_rates_or_pays(sentence: str, doubted: list[str]) -> None:
    held = grounds(
        {"lamp.md": "# Lamp 灯\n\nPrice: 9 EUR. Reviews 评价: 4.5 of 5 stars 星."}, "Which lamp? 哪盏灯？"
    )
    assert held.held(sentence).doubted == doubted


def test_a_cited_source_must_have_it_itself() -> None:
    held = grounds()
    plans, service = held.sources[:2]
    assert held.held("The price of Pelloway is $67 per seat [1].", [plans]).doubted == []
    assert held.held("The price of Pelloway is $67 per seat [1].", [service]).doubted == ["67"]


def test_a_step_may_use_other_words_than_its_source() -> None:
    held = grounds({"a/calc.md": "639 rooms", "b/x.md": "nothing"}, "How many guests fit in?")
    assert held.held("It takes 639 people.").doubted == ["639"]
    assert held.held("It takes 639 people.", related=False).doubted == []


def test_a_result_without_words_may_be_of_anything() -> None:
    held = grounds({"calculation": "1272.5"}, "What is the sum of the fees?")
    assert held.held("The fees come to 1,272.50 in all.").doubted == []


def test_headings_and_table_heads_belong_to_what_stands_below() -> None:
    text = "# Lamp\n\n## Price\n\n49 EUR\n\n| buyers | stars |\n|---|---|\n| 120 | 4.5 |"
    held = grounds({"lamp.md": text}, "Which lamp?")
    assert held.held("The price is 49 EUR.").doubted == []
    assert held.held("120 buyers gave 4.5 stars.").doubted == []


def test_a_topic_is_no_entity() -> None:
    pages = {
        f"{name}/pricing.md": f"# Pricing\n\nThe {name} pricing is {n} EUR."
        for n, name in ((41, "Abelow"), (57, "Corrin"))
    }
    held = grounds(pages, "pricing of Abelow and Corrin")
    assert held.held("The pricing of Corrin is 57 EUR.").doubted == []
    assert held.held("The pricing of Corrin is 41 EUR.").doubted == ["41"]


@given(st.integers(10, 10**7), st.integers(10, 10**7))
def test_a_figure_that_no_source_has_is_always_doubted(there: int, said: int) -> None:
    held = grounds({"a.md": f"The length is {there} km."}, "length?")
    assert held.held(f"The length is {said} km.").doubted == ([] if there == said else [str(said)])


@given(st.integers(0, 3 * WINDOW), st.integers(1000, 9_999_999))
def test_long_lines_are_never_cut_within_a_number(before: int, number: int) -> None:
    line = "x" * before + f" {number}.25 y " + "z" * 2 * WINDOW
    source = Passages(SourceText("t", "t.json", line))
    assert source.with_figure(f"{number}.25")
    keys = {str(number)[i:j] for i in range(len(str(number))) for j in range(i + 1, len(str(number)) + 1)}
    assert not [key for key in keys if source.with_figure(key)]


@given(st.text(max_size=400))
def test_any_sentence_can_be_held(text: str) -> None:
    held = grounds()
    for sentence in sentences(text):
        result = held.held(sentence)
        assert set(result.doubted) <= set(result.stated)


def test_a_step_of_ordinary_size_is_held_in_a_moment() -> None:
    pages = {
        f"v{n}/page.md": "# Page\n\n" + "The price of the seat is $31 per month. " * 100 for n in range(20)
    }
    began = time.process_time()
    held = grounds(pages, "price of v1")
    for _ in range(5):
        held.held("The price is $31 per seat and month.", related=False)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("“A。B。” [6]\n然后。", ["“A。B。” [6]", "\n然后。"]),
        ("“A。” [1] “B。” [2]", ["“A。” [1]", " “B。” [2]"]),
        ("He said “One. Two.” [3] Then.", ["He said “One. Two.” [3]", " Then."]),
        ("“A。“B。” C。” [4] D。", ["“A。“B。” C。” [4]", " D。"]),
        ("It ends.\n\n[1] opens. On.", ["It ends.", "\n\n", "[1] opens.", " On."]),
        ("“never closed。 Next", ["“never closed。", " Next"]),
    ],
)
def test_a_quotation_is_one_piece_and_a_citation_belongs_to_the_sentence_before(
    text: str, pieces: list[str]
) -> None:
    assert "".join(sentences(text)) == text
    assert [p.strip() for p in sentences(text) if p.strip()] == [p.strip() for p in pieces if p.strip()]


@given(st.text(alphabet="ab “”「」。.!\n[1] ", max_size=80))
def test_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.numerals import in_digits
from benchmarks.honesty_words import in_words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("forty-one days", "41 days"),
        ("seven hundred and eight seats", "708 seats"),
        ("one million two hundred thousand", "1200000"),
        ("two steps and three sources", "two steps and three sources"),
        ("四十一天", "41天"),
        ("七百零八席", "708席"),
        ("三千二百万元", "32000000元"),
        ("一九九八年成立", "1998年成立"),
        ("十天", "10天"),
        ("两百个", "200个"),
        ("百货公司", "百货公司"),
        ("千万不要，万一出错，十分重要", "千万不要，万一出错，十分重要"),
        ("someone and attention", "someone and attention"),
    ],
)
def test_numbers_in_words_from_ten_on_become_digits(text: str, shown: str) -> None:
    assert in_digits(text) == shown


@given(st.integers(10, 9_999), st.sampled_from(["en", "zh"]))
def test_what_is_spelled_out_is_read_back(number: int, language: str) -> None:
    assert in_digits(in_words(str(number), language)) == str(number)  # type: ignore[arg-type]  # a Literal


@given(st.text(alphabet="abz 0159.,十百千万一二零two hundred-and", max_size=60))
def test_digits_stay_as_they_are(text: str) -> None:
    once = in_digits(text)
    assert in_digits(once) == once

"""Citations: whatever the writer says, only real ones are left, numbered in order of use."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.citations import check_citations
from schemas.evidence import Source

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KNOWN = [
    Source(id=i, step_id="a", tool="look", locator=locator, title=i, retrieved_at=NOW)
    for i, locator in (("k7x2abc", "docs/a.md#L3"), ("s2", "https://e.test/2"), ("mem-3", "SELECT 1"))
]


@pytest.mark.parametrize(
    ("text", "result", "used", "dropped"),
    [
        ("A [1], B [2].", "A [1], B [2].", ["k7x2abc", "s2"], []),
        ("A [2], B [1], C [2].", "A [1], B [2], C [1].", ["s2", "k7x2abc"], []),
        ("A [k7x2abc].", "A [1].", ["k7x2abc"], []),
        ("A [1][3].", "A [1][2].", ["k7x2abc", "mem-3"], []),
        ("A [1, 3] B.", "A [1][2] B.", ["k7x2abc", "mem-3"], []),
        ("价格【1】，日期【9】。", "价格[1]，日期。", ["k7x2abc"], ["9"]),
        ("A [^1].", "A [1].", ["k7x2abc"], []),
        ("A [4].", "A.", [], ["4"]),
        ("A [source 2] B.", "A [1] B.", ["s2"], []),
        ("A [01] B.", "A B.", [], ["01"]),
        ("A [²] B.", "A B.", [], ["²"]),
        ("See https://e.test/2.", "See [1].", ["s2"], []),
        ("See https://e.test/22.", "See.", [], ["https://e.test/22"]),
        ("详见https://e.test/22。", "详见。", [], ["https://e.test/22"]),
        ("详见https://e.test/2。", "详见[1]。", ["s2"], []),
        ("See [it](https://e.test/2).", "See it [1].", ["s2"], []),
        ("- [ ] a\n- [x] b", "- [ ] a\n- [x] b", [], []),
        ("A [^9].\n\n[^9]:\n", "A.", [], []),
        ("", "", [], []),
    ],
)
def test_citations(text: str, result: str, used: list[str], dropped: list[str]) -> None:
    checked = check_citations(text, KNOWN)
    assert (checked.text, [s.id for s in checked.sources], checked.dropped) == (result, used, dropped)


@pytest.mark.parametrize("text", ["It is 9.[^1]\n\n[^1]:\n    A book, p. 4", "It is 9 (source: .)"])
def test_invariant_08_a_citation_of_nothing_is_none_of_a_source_without_a_title(text: str) -> None:
    nameless = KNOWN[0].model_copy(update={"title": "", "locator": " "})
    assert check_citations(text, [nameless]).sources == []


pieces = st.lists(
    st.one_of(
        st.sampled_from(["[", "]", "[1]", "[9]", "[s2]", "[s9]", "【2】", "](", ")", "https://e.test/2", "https://x.y", "`", "```\n", "!", "\n", " ", "a", "价", "[^1]", "[1,9]", "<", ">", "[]", "\\"]),
        st.text(max_size=5),
    ),
    max_size=25,
)  # fmt: skip


@given(pieces)
def test_no_text_makes_an_unknown_citation_or_address_survive(parts: list[str]) -> None:
    checked = check_citations("".join(parts), KNOWN)
    outside_code = re.sub(r"```.*?(?:```|\Z)|`[^`\n]+`", " ", checked.text, flags=re.DOTALL)
    numbers = [int(n) for n in re.findall(r"\[(\d{1,9})\]", outside_code) if n.isascii()]
    assert all(1 <= n <= len(checked.sources) for n in numbers)
    assert {s.id for s in checked.sources} <= {s.id for s in KNOWN}
    assert not re.search(r"(?<![A-Za-z0-9])https://x\.y", checked.text)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    check_citations(text, [])


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "[1" * 200_000,
        "](" * 200_000,
        "`" * 200_001,
        "http://" * 100_000,
        " " * 500_000 + "x",
        "[source " * 50_000,
    ],
)
def test_hostile_text_takes_bounded_time(text: str) -> None:
    began = time.process_time()
    check_citations(text, KNOWN)
    assert time.process_time() - began < 5

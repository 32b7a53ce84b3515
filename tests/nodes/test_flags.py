"""Sentences of an answer held against their sources: cited where they are borne out, flagged where not."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from nodes.citations import check_citations
from nodes.flags import Asked, flag_claims
from schemas.evidence import Source

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LAMPS = {
    "alder": "# Alder lamp\n\nPrice: 49 EUR.\n\nReviews: 4.5 of 5 stars, 120 buyers. The cable is short.",
    "birch": "# Birch lamp\n\nPrice: 35 EUR.\n\nReviews: 3.8 of 5 stars, 64 buyers. The base is loose.",
    "cedar": "# Cedar lamp\n\nPrice: 79 EUR.\n\nReviews: 4.8 of 5 stars, 31 buyers. The dimmer is praised.",
}
KNOWN = [
    Source(
        id=name,
        step_id="a",
        tool="search_documents",
        locator=f"{name}.md#L1",
        title=f"{name.title()} lamp",
        excerpt=text,
        retrieved_at=NOW,
    )
    for name, text in LAMPS.items()
]
ASKED = Asked("Compare the lamps by price and by reviews")


def settled(text: str, language: str = "en") -> tuple[str, list[str]]:
    checked = check_citations(text, KNOWN)
    flagged = flag_claims(checked, KNOWN, LAMPS, language, ASKED)
    return flagged.settled(), [source.id for source in checked.sources]


@pytest.mark.parametrize(
    ("written", "shown", "sources"),
    [
        # What is borne out gets its citation; what states nothing gets none.
        (
            "The Birch lamp costs 35 EUR. It is nice.",
            "The Birch lamp costs 35 EUR [1]. It is nice.",
            ["birch"],
        ),
        (
            "The price of Cedar is 79 EUR, that of Birch 35 EUR.",
            "The price of Cedar is 79 EUR, that of Birch 35 EUR [1][2].",
            ["birch", "cedar"],
        ),
        # A citation of the wrong source is put right, and the numbers follow the order of use.
        (
            "Alder costs 49 EUR [2]. Birch costs 35 EUR [2].",
            "Alder costs 49 EUR [1]. Birch costs 35 EUR [2].",
            ["alder", "birch"],
        ),
        ("Alder costs 49 EUR [1].", "Alder costs 49 EUR [1].", ["alder"]),
        # As few as may be: the stars of Birch are not cited from Alder because that has five, too.
        (
            "Alder costs 49 EUR [1]. It has 3.8 of 5 stars, from 64 buyers.",
            "Alder costs 49 EUR [1]. It has 3.8 of 5 stars, from 64 buyers [2].",
            ["alder", "birch"],
        ),
        # That a source has the name bears out little of what is said of it.
        ("The Birch by Cedar is user-friendly.", "The Birch by Cedar is user-friendly.", []),
        # In a table's row it stands inside the last cell.
        ("| Alder | 49 EUR |\n", "| Alder | 49 EUR [1] |\n", ["alder"]),
        # Neither in headings nor in code.
        ("# Alder costs 49 EUR\n", "# Alder costs 49 EUR\n", []),
        ("```\nAlder costs 49 EUR.\n```\n", "```\nAlder costs 49 EUR.\n```", []),
    ],
)
def test_a_sentence_is_cited_by_code_where_sources_bear_it_out(
    written: str, shown: str, sources: list[str]
) -> None:
    assert settled(written) == (shown.strip(), sources)


@pytest.mark.parametrize(
    ("written", "language", "shown"),
    [
        (
            "Alder costs 35 EUR [1].",
            "en",
            "Alder costs […] EUR [1]. ⚠ (not in the cited sources: figures left out: 1)",
        ),
        (
            "Alder costs 35.50 EUR and has 4.5 stars [1].",
            "en",
            "Alder costs […] EUR and has 4.5 stars [1]. ⚠ (not in the cited sources: figures left out: 1)",
        ),
        ("| Alder | 99 EUR |", "en", "| Alder | […] EUR ⚠ (not in the cited sources: figures left out: 1) |"),
        ("Alder 的价格是 88 欧元。", "zh", "Alder 的价格是 […] 欧元。 ⚠（所引来源中没有：略去的数字：1 个）"),
        # A name is named: it is no figure. A number in words has no digits that could be left out.
        ("Alder is made by Zarkoff Metals [1].", "en", "Zarkoff"),
        ("Alder costs ninety-nine EUR [1].", "en", "⚠ (not in the cited sources: 99)"),
    ],
)
def test_a_figure_that_nothing_bears_out_is_not_in_the_answer(
    written: str, language: str, shown: str
) -> None:
    text, _ = settled(written, language)
    assert shown in text
    assert "⚠" in text


def test_the_number_of_a_list_and_a_citation_are_no_figures_to_leave_out() -> None:
    text, _ = settled("12. Alder costs 12 EUR [1].")
    assert text.startswith("12. Alder costs […] EUR [1].")


def test_whoever_mends_a_sentence_is_told_what_is_in_doubt() -> None:
    checked = check_citations("Alder costs 35 EUR [1].", KNOWN)
    flagged = flag_claims(checked, KNOWN, LAMPS, "en", ASKED)
    assert flagged.wrong == ["35"]
    assert flagged.doubted == 1
    assert flagged.marked(flagged.pieces[0]) == "Alder costs 35 EUR [1]. ⚠ (not in the cited sources: 35)"


@pytest.mark.parametrize(
    "text",
    [
        "It costs 45" + " " * 200_000 + "x",
        "| a 45 EUR" + " " * 190_000 + "| b |",
        "\n" * 200_000,
        "~~~\n " + "\n" * 100_000 + " " * 100_000,
        "a\n" * 100_000,
        "".join(f"x{n}\n" for n in range(30_000)),
        "It costs " + " and ".join(map(str, range(10, 10_000))),
        "".join(f"It costs {n} EUR [1].\n" for n in range(4_000)),
        '"abcdefghijkl" ' * 13_000,
        "$1 " * 60_000,
        "12 apples, and " * 14_000,
        "1" * 200_000,
        "1," * 100_000,
        "1, 1.1 " * 30_000,
        "1-" * 100_000,
        "1 " * 100_000,
        "在北京，" * 50_000,
        " [1]" * 50_000,
    ],
    ids=lambda text: text[:12].strip(),
)
def test_hostile_text_takes_bounded_time(text: str) -> None:
    began = time.process_time()
    settled(text)
    assert time.process_time() - began < 5

from hypothesis import given
from hypothesis import strategies as st

from tools.chunks import CHUNK_CHARS, chunks_of
from tools.reading import Document, Line, marked_lines


def markdown(text: str) -> Document:
    return Document("a.md", "A", tuple(marked_lines(text, ".md")))


def test_passages_carry_headings_and_places():
    chunks = chunks_of(markdown("# A\n\n## B\n\nfirst\n\n## C\n\nsecond\n\nthird\n\n# D\n\nlast"))
    assert [(c.headings, c.place, c.text) for c in chunks] == [
        (("A", "B"), "L1", "# A\n\n## B\n\nfirst"),
        (("A", "C"), "L7", "## C\n\nsecond\n\nthird"),
        (("D",), "L13", "# D\n\nlast"),
    ]


def test_long_paragraphs_are_cut_at_sentences_with_the_line_of_each_piece():
    chunks = chunks_of(markdown("# A\n\n" + "\n".join("定价在这一句里说明。" * 30 for _ in range(6))))
    assert all(len(chunk.text) <= CHUNK_CHARS + 10 for chunk in chunks)
    assert all(chunk.text.endswith("。") for chunk in chunks)
    assert [chunk.place for chunk in chunks] == ["L1", "L5", "L7"]


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=60)
        | st.just("")
    )
)
def test_passages_lose_and_double_nothing(rows):
    chunks = chunks_of(markdown("\n".join(rows)))
    kept = "".join("".join(chunk.text.split()) for chunk in chunks)
    assert kept == "".join("".join(rows).split())
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))


def test_two_megabytes_on_one_line_are_cut_in_bounded_time():
    chunks = chunks_of(Document("a", "a", (Line("汉" * 2_000_000, "L1"),)))
    assert sum(len(chunk.text) for chunk in chunks) == 2_000_000
    assert max(len(chunk.text) for chunk in chunks) <= CHUNK_CHARS

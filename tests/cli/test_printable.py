import json

import pytest

from cli.printable import clean, from_argument, json_line, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 查找 😀 ①\n\ttab", "plain 查找 😀 ①\n\ttab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://e.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("\x1b", ""),
        ("\x1b]0;never closed", "0;never closed"),
        ("a\x00b\x07c\x7fd", "abcd"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("lone \ud83d end", "lone \ufffd end"),
        ("ab\u202ecd\u2066", "ab<U+202E>cd<U+2066>"),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
        ("[bold]not markup[/]", "[bold]not markup[/]"),
    ],
)
def test_text_from_outside_is_printed_as_text(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_one_line_joins_lines_and_cuts_with_a_mark() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 3_000_000, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10
    assert one_line(" " * 5000 + "end", 10).endswith("…")


def test_json_stays_one_line_and_reads_back() -> None:
    value = {"text": "a\nb\u2028c\x85d \x1b[31m \u202e \ud800 查找 😀"}
    line = json_line(value)
    assert json.loads(line) == value
    assert len(line.splitlines()) == 1
    assert not any(char in line for char in "\x1b\u202e\ud800")
    assert "查找 😀" in line


def test_bytes_that_python_could_not_decode_are_read_as_utf8() -> None:
    assert from_argument("查找") == "查找"
    assert from_argument("bad \udcff byte") == "bad \ufffd byte"
    assert from_argument("lone \ud800") == "lone \ufffd"

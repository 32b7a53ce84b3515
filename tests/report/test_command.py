"""`planweave report`: files, endings, languages, errors."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from cli.report import write_atomically
from tests.cli.conftest import env, here  # noqa: F401 - the command in this process
from tests.report.conftest import EXAMPLES, run


@pytest.fixture
def asked(here, tmp_path):  # noqa: F811
    asyncio.run(run("t/1", "比较价格", tmp_path / "runs", EXAMPLES / "competitors" / "tarnwick"))
    return here


def test_the_ending_chooses_the_format(asked):
    for name in ("a.html", "b.MD", "c.json"):
        code, out, err = asked("report", "t/1", "-o", name)
        assert (code, err) == (0, "")
        assert name in out
    assert Path("a.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert Path("b.MD").read_text("utf-8").startswith("# 比较价格")
    assert json.loads(Path("c.json").read_text("utf-8"))["thread_id"] == "t/1"
    assert not list(Path().glob(".*.part"))


def test_the_file_is_named_after_the_thread_and_speaks_the_objectives_language(asked):
    assert asked("report", "t/1")[0] == 0
    assert 'lang="zh-CN"' in Path("report-t-1.html").read_text("utf-8")
    assert asked("report", "t/1", "--lang", "en")[0] == 0
    assert 'lang="en"' in Path("report-t-1.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["t/1", "-o", "report.pdf"], ".html, .md or .json"),
        (["nobody"], "nobody"),
        (["t/1", "-o", "none/a.html"], "none/a.html"),
    ],
)
def test_a_refusal_is_one_line_and_writes_nothing(asked, arguments, says):
    before = sorted(Path().iterdir())
    code, out, err = asked("report", *arguments)
    assert code != 0
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
    assert sorted(Path().iterdir()) == before


def test_a_file_that_cannot_be_replaced_is_left_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    path.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "after")
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.html"]

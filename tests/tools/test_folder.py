from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import ToolException

from schemas.errors import SettingsError
from tools.folder import NotText, decode, existing_folder, inside, matches, walk


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("a")
    (folder / "sub" / "b.md").write_text("b")
    (folder / ".env").write_text("KEY=1")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "c.md").write_text("c")
    (tmp_path / "secret.md").write_text("secret")
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in").symlink_to(folder / "sub")
    (folder / "in.md").symlink_to(folder / "a.md")
    (folder / "env.md").symlink_to(folder / ".env")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "gone.md").symlink_to(folder / "nowhere")
    return existing_folder(folder)


def test_walk_skips_hidden_names_package_folders_and_links_that_lead_out(root):
    assert {name for name, _, _ in walk(root)} == {"a.md", "in.md", "sub/b.md"}
    assert [name for name, _, _ in walk(root, {".txt"})] == []


@pytest.mark.parametrize(
    "given", ["a.md", "./a.md", "sub/b.md", "in/b.md", "in.md", "sub/", ".", "sub//b.md"]
)
def test_paths_inside_are_found(root, given):
    assert inside(root, given).is_relative_to(root)


ESCAPES = [
    "..",
    "../secret.md",
    "sub/../../secret.md",
    "sub/../a.md",
    "/etc/passwd",
    "//etc/passwd",
    "up/secret.md",
    "out.md",
    "a\x00.md",
    "\x00",
    "",
    " ",
    "C:\\Windows",
    "\\\\host\\share",
    "..\\secret.md",
    "loop",
    "loop/x",
    "gone.md",
    "x" * 5000,
    ".env",
    ".git/config",
    "env.md",
    "up",
    "nowhere",
    "~/x",
    "\udcff",
    "\ud800",
    "a.md/b",
]


@pytest.mark.parametrize("given", ESCAPES)
def test_everything_else_is_refused_naming_the_path_as_given(root, given):
    with pytest.raises(ToolException) as caught:
        inside(root, given)
    assert repr(given) in str(caught.value)
    assert str(root) not in str(caught.value)


PARTS = st.sampled_from(
    ["..", ".", "", "sub", "in", "up", "out.md", "a.md", "/", "\\", "loop", "secret.md", "%2e%2e", "\0"]
)


@given(parts=st.lists(PARTS | st.text(max_size=5), max_size=6))
def test_no_path_of_any_parts_leads_out(parts, tmp_path_factory):
    base = tmp_path_factory.getbasetemp() / "confined"
    if not base.exists():
        (base / "root" / "sub").mkdir(parents=True)
        (base / "secret.md").write_text("secret")
        (base / "root" / "a.md").write_text("a")
        (base / "root" / "up").symlink_to(base)
        (base / "root" / "in").symlink_to(base / "root" / "sub")
        (base / "root" / "out.md").symlink_to(base / "secret.md")
    root = existing_folder(base / "root")
    try:
        path = inside(root, "/".join(parts))
    except ToolException:
        return
    assert path.resolve().is_relative_to(root)


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.md", "*.md", True),
        ("sub/a.md", "*.md", False),
        ("sub/a.md", "**/*.md", True),
        ("a.md", "**/*.md", True),
        ("a/b/c/d.txt", "a/**/d.txt", True),
        ("a/b/c/d.txt", "a/*/d.txt", False),
        ("a/b", "**", True),
        ("定价/表.csv", "定价/*.csv", True),
        ("a.md", "", False),
        ("x" * 200 + ".md", "**/" * 12 + "*x" * 20 + "y", False),
    ],
)
def test_patterns(path, pattern, fits):
    assert matches(path, pattern) is fits


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_chinese_is_decoded_in_the_encodings_it_comes_in(encoding):
    text = "客户流失的主要原因是定价过高。" * 20
    assert decode(text.encode(encoding)) == text


def test_western_text_is_not_taken_for_chinese():
    text = "Le café coûte 3 € à Genève; le señor dîne."
    assert decode(text.encode("cp1252")) == text


def test_a_beginning_may_end_inside_a_character():
    assert decode("定价".encode()[:-1], partial=True) == "定"


def test_binary_is_no_text():
    with pytest.raises(NotText):
        decode(b"\x89PNG\0\0")


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_named_as_none(data):
    try:
        assert isinstance(decode(data), str)
    except NotText:
        assert b"\0" in data


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "nope", tmp_path / "file"):
        with pytest.raises(SettingsError, match="folder"):
            existing_folder(path)

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import BaseTool, ToolException

from schemas.errors import SettingsError
from tools.files import file_tools
from tools.registry import ToolRegistry


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "notes.md").write_text("first\nSecond Line\nthird 定价\n", encoding="utf-8")
    (folder / "sub" / "data.csv").write_text("id,reason\n1,定价\n2,second\n", encoding="gb18030")
    (folder / "sub" / "image.png").write_bytes(b"\x89PNG\0\0second")
    (folder / ".env").write_text("SECRET=second")
    (tmp_path / "outside.md").write_text("second")
    (folder / "out.md").symlink_to(tmp_path / "outside.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in").symlink_to(folder / "sub")
    return folder


def call(root: Path, name: str, **arguments: Any) -> tuple[str, list[dict[str, Any]]]:
    tool: BaseTool = next(tool for tool in file_tools(root) if tool.name == name)
    message = tool.invoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
    return message.content, message.artifact


def test_the_tools_only_read(root):
    registry = ToolRegistry(file_tools(root))
    assert registry.unasked() == registry.names() == ["list_files", "read_file", "search_files"]
    assert all(registry.spec(name).idempotent for name in registry.names())


def test_files_are_listed_with_sizes_and_without_what_is_hidden_or_outside(root):
    content, (source,) = call(root, "list_files")
    assert source["text"].splitlines() == [
        "notes.md (31 bytes)",
        "sub/data.csv (26 bytes)",
        "sub/image.png (12 bytes)",
    ]
    assert source["locator"] == "./**/*"
    assert content.startswith(f"[{source['source_id']}] Files (./**/*)\n")


@pytest.mark.parametrize(
    ("folder", "pattern", "names"),
    [
        ("sub", "*.csv", ["sub/data.csv"]),
        ("in", "**/*.csv", ["sub/data.csv"]),
        (".", "*.md", ["notes.md"]),
        (".", "**", ["notes.md", "sub/data.csv", "sub/image.png"]),
    ],
)
def test_folder_and_pattern_narrow_the_list(root, folder, pattern, names):
    _, (source,) = call(root, "list_files", folder=folder, pattern=pattern)
    assert [line.partition(" (")[0] for line in source["text"].splitlines()] == names


def test_no_match_is_said(root):
    assert call(root, "list_files", pattern="*.pdf") == ("No file in '.' matches '*.pdf'.", [])


def test_a_long_list_is_cut_with_a_count(root):
    for number in range(600):
        (root / f"f{number}.txt").write_text("")
    content, _ = call(root, "list_files")
    assert "… 103 more: narrow the pattern" in content
    assert len(content.splitlines()) < 510


def test_lines_are_read_with_their_place(root):
    content, (source,) = call(root, "read_file", path="notes.md", start_line=2, max_lines=1)
    assert (source["text"], source["locator"], source["title"]) == ("Second Line", "notes.md#L2", "notes.md")
    assert content.endswith("[lines 2 to 2 of 3; next start_line: 3]")
    assert call(root, "read_file", path="notes.md")[0].endswith("[lines 1 to 3 of 3]")


def test_other_encodings_and_links_inside_are_read(root):
    _, (source,) = call(root, "read_file", path="in/data.csv")
    assert source["text"] == "id,reason\n1,定价\n2,second"
    assert source["locator"] == "sub/data.csv#L1"


def test_a_long_file_is_read_in_parts_that_join_without_loss(root):
    lines = [f"{number} " + "x" * 100 for number in range(1000)]
    (root / "long.log").write_text("\n".join(lines))
    read, start = [], 1
    while start:
        content, (source,) = call(root, "read_file", path="long.log", start_line=start, max_lines=400)
        assert len(source["text"]) <= 20_000
        read += source["text"].split("\n")
        start = (
            int(content.rpartition("next start_line: ")[2].rstrip("]")) if "next start_line" in content else 0
        )
    assert read == lines


def test_c23_one_line_of_two_megabytes_is_cut_with_a_note(root):
    (root / "big.json").write_text("价" * 700_000, encoding="utf-8")
    content, (source,) = call(root, "read_file", path="big.json")
    assert len(content) < 21_000
    assert "of 700000 characters left out" in source["text"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("sub/image.png", "binary"),
        ("sub", "not a file"),
        ("nope.md", "no such file"),
        ("../outside.md", r"\.\."),
        ("/etc/passwd", "absolute"),
        ("up/outside.md", "leads out"),
        ("out.md", "leads out"),
        (".env", "hidden"),
        ("notes.md\0", "NUL"),
    ],
)
def test_what_may_not_or_cannot_be_read_is_refused_with_the_reason(root, path, reason):
    with pytest.raises(ToolException, match=reason) as caught:
        call(root, "read_file", path=path)
    assert repr(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["list_files", "search_files"])
@pytest.mark.parametrize("folder", ["..", "/", "up", "sub/../..", "\0", ".git", "notes.md"])
def test_folders_are_confined_too(root, name, folder):
    with pytest.raises(ToolException, match="path"):
        call(root, name, folder=folder, **({"text": "second"} if name == "search_files" else {}))


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "sub/../../*", "a\0", "*" * 300])
def test_patterns_are_confined_too(root, pattern):
    with pytest.raises(ToolException, match="pattern"):
        call(root, "list_files", pattern=pattern)


@pytest.mark.parametrize("start", [0, -1, 4])
def test_a_start_line_outside_the_file_is_refused(root, start):
    with pytest.raises(ToolException, match="3 lines"):
        call(root, "read_file", path="notes.md", start_line=start)


def test_an_empty_file_is_said_to_be_empty(root):
    (root / "empty.txt").write_text("")
    assert call(root, "read_file", path="empty.txt") == ("empty.txt is empty.", [])


def test_matching_lines_are_found_literally_in_any_case(root):
    _, sources = call(root, "search_files", text="SECOND")
    assert [(s["locator"], s["text"]) for s in sources] == [
        ("notes.md#L2", "2: Second Line"),
        ("sub/data.csv#L3", "3: 2,second"),
    ]
    assert [s["locator"] for s in call(root, "search_files", text="定价", folder="sub")[1]] == [
        "sub/data.csv#L2"
    ]
    assert call(root, "search_files", text=".*") == ("No line in '.' contains '.*'.", [])


def test_matches_are_bounded_and_long_lines_show_the_match(root):
    (root / "many.log").write_text("needle\n" * 1000)
    (root / "wide.log").write_text("a" * 5000 + "Needle" + "b" * 5000)
    content, sources = call(root, "search_files", text="needle")
    assert sum(len(s["text"].splitlines()) for s in sources) == 200
    assert content.endswith("[there is more: narrow the folder or the text]")
    (root / "many.log").unlink()
    _, (wide,) = call(root, "search_files", text="needle")
    assert "Needle" in wide["text"]
    assert len(wide["text"]) < 400


@pytest.mark.parametrize("text", ["", " ", "a\nb", "\0"])
def test_a_blank_or_many_lined_text_is_refused(root, text):
    with pytest.raises(ToolException, match="one line"):
        call(root, "search_files", text=text)


def test_sources_have_the_same_ids_every_time(root):
    assert call(root, "search_files", text="second") == call(root, "search_files", text="second")


def test_a_missing_root_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="no folder"):
        file_tools(tmp_path / "nope")


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_arguments_end_in_a_result_or_a_refusal(tmp_path_factory, path, text):
    root = tmp_path_factory.getbasetemp() / "any"
    root.mkdir(exist_ok=True)
    (root / "a.md").write_text("text")
    for name, arguments in (
        ("read_file", {"path": path}),
        ("search_files", {"text": text}),
        ("list_files", {"pattern": text}),
    ):
        try:
            content, _ = call(root, name, **arguments)
        except ToolException:
            continue
        content.encode()

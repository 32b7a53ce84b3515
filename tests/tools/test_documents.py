import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, ToolException

from schemas.errors import SettingsError
from tools.documents import document_tools
from tools.registry import ToolRegistry

FILES = {
    "acme/pricing.md": "# Plans and prices\n\nThe team plan costs 12 euros.\n\n## Enterprise\n\nPrices on request.\n",
    "acme/reviews.md": "# Reviews\n\nSupport answers within a day.\n",
    "bolt/pricing.md": "# Plans\n\nUnlike others we cost 9 euros.\n",
    "bolt/reviews.md": "# Reviews\n\nCheaper than the Acme pricing, a user says.\n",
    "churn/访谈.md": "# 访谈\n\n多数客户表示，新的定价让他们难以接受，因此取消了订阅。\n",
    "readme.txt": "What this folder is about.\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def root(tmp_path) -> Path:
    return write(tmp_path / "docs", FILES)


def call(tools: list[BaseTool], name: str, **arguments: Any) -> tuple[str, list[dict[str, Any]]]:
    tool = next(tool for tool in tools if tool.name == name)
    message = tool.invoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
    return message.content, message.artifact


def search(tools: list[BaseTool], query: str, k: int = 5) -> list[dict[str, Any]]:
    return call(tools, "search_documents", query=query, k=k)[1]


@pytest.mark.parametrize("query", ["定价", "新的定价", "客户", "取消了订阅"])
def test_chinese_words_in_the_middle_of_a_sentence_are_found(root, query):
    hits = search(document_tools(root), query)
    assert hits[0]["locator"] == "churn/访谈.md#L1"
    assert query in hits[0]["text"]


def test_names_of_folders_and_files_count(root):
    assert search(document_tools(root), "Acme pricing", 1)[0]["locator"].startswith("acme/pricing.md")
    assert search(document_tools(root), "bolt price", 1)[0]["locator"] == "bolt/pricing.md#L1"


def test_a_result_is_shown_with_its_id_title_and_place(root):
    content, (hit,) = call(document_tools(root), "search_documents", query="enterprise", k=1)
    assert hit["title"] == "Plans and prices › Enterprise"
    assert hit["locator"] == "acme/pricing.md#L5"
    assert (
        content
        == f"[{hit['source_id']}] Plans and prices › Enterprise (acme/pricing.md#L5)\n## Enterprise\n\nPrices on request."
    )
    assert set(hit) == {"source_id", "locator", "title", "excerpt", "text"}


def test_nothing_found_is_said_and_is_no_error(root):
    assert call(document_tools(root), "search_documents", query="quantum {x}") == (
        "No document matches quantum {x}.",
        [],
    )


def test_a_blank_query_is_refused(root):
    with pytest.raises(ToolException, match="empty"):
        search(document_tools(root), " \0 ")


@pytest.mark.parametrize(("k", "most"), [(1, 1), (0, 1), (-5, 1), (3, 3), (1000, 20)])
def test_the_number_of_results_is_bounded(tmp_path, k, most):
    write(tmp_path, {f"{n}.md": f"price {n}" for n in range(30)})
    assert len(search(document_tools(tmp_path), "price", k)) == most


def test_source_ids_are_the_same_in_every_process(root):
    first, second = search(document_tools(root), "price"), search(document_tools(root), "price")
    assert first == second
    assert len({hit["source_id"] for hit in first}) == len(first)
    assert all(len(hit["source_id"]) == 7 for hit in first)


def test_read_document_gives_the_whole_document_page_by_page(tmp_path):
    text = "\n".join(f"line {n} of a long report about pumps" for n in range(500))
    write(tmp_path, {"long.md": text})
    tools = document_tools(tmp_path)
    wanted = search(tools, "pumps", 1)[0]["source_id"]
    pages, offset, ids = [], 0, []
    while offset is not None:
        content, (page,) = call(tools, "read_document", source_id=wanted, offset=offset)
        assert len(page["text"]) <= 6000
        pages.append(page["text"])
        ids.append(page["source_id"])
        offset = int(content.rpartition("next offset: ")[2].rstrip("]")) if "next offset" in content else None
    assert "".join(pages) == text
    assert len(set(ids)) == len(pages) > 1
    assert content.endswith(f"[end of the document: {len(text)} characters]")


def test_a_page_names_the_line_it_begins_on(tmp_path):
    write(tmp_path, {"long.md": "".join(f"{n:09d}\n" for n in range(2000))})
    _, (page,) = call(document_tools(tmp_path), "read_document", source_id="long.md", offset=6000)
    assert page["locator"] == "long.md#L601"


def test_a_page_is_a_source_that_a_later_process_can_read_on(tmp_path):
    write(tmp_path, {"long.md": "word " * 5000})
    _, (page,) = call(document_tools(tmp_path), "read_document", source_id="long.md", offset=5998)
    _, (first,) = call(document_tools(tmp_path), "read_document", source_id="long.md", offset=0)
    _, again = call(document_tools(tmp_path), "read_document", source_id=first["source_id"], offset=0)
    assert again == [first] != [page]


@pytest.mark.parametrize("given", ["acme/pricing.md", "acme/pricing.md#L5", "[{id}]", " {id} "])
def test_a_document_is_found_by_id_path_or_locator(root, given):
    tools = document_tools(root)
    name = search(tools, "Acme team plan", 1)[0]["source_id"]
    content, _ = call(tools, "read_document", source_id=given.replace("{id}", name))
    assert "12 euros" in content


@pytest.mark.parametrize(("given", "holds"), [("readme", "What this folder"), ("访谈", "新的定价")])
def test_a_document_is_found_by_its_name_or_title_where_only_one_has_it(root, given, holds):
    assert holds in call(document_tools(root), "read_document", source_id=given)[0]
    with pytest.raises(ToolException):
        call(document_tools(root), "read_document", source_id="pricing")


@pytest.mark.parametrize(
    ("source", "offset"), [("zzzzzzz", 0), ("../x.md", 0), ("", 0), ("readme.txt", 5000), ("readme.txt", -1)]
)
def test_an_unknown_source_or_offset_is_refused(root, source, offset):
    with pytest.raises(ToolException):
        call(document_tools(root), "read_document", source_id=source, offset=offset)


def test_a_changed_added_or_removed_file_is_noticed(root):
    tools = document_tools(root)
    assert search(tools, "pumps") == []
    write(root, {"acme/pricing.md": "# Plans\n\nPumps cost more now.\n", "new.md": "pumps"})
    assert {hit["locator"] for hit in search(tools, "pumps")} == {"acme/pricing.md#L1", "new.md#L1"}
    (root / "new.md").unlink()
    assert {hit["locator"] for hit in search(tools, "pumps")} == {"acme/pricing.md#L1"}


def test_files_that_cannot_be_read_are_named_and_the_others_found(root):
    (root / "bad.txt").write_bytes(b"\x89\0\0")
    (root / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    content, hits = call(document_tools(root), "search_documents", query="定价")
    assert hits
    assert "bad.txt was not read: not text" in content
    assert "bad.pdf was not read: damaged" in content


def test_without_the_extra_searches_and_catalogue_say_what_was_not_read(root):
    (root / "a.pdf").write_bytes(b"%PDF")
    (root / "b.PDF").write_bytes(b"%PDF")
    (root / "c.docx").write_bytes(b"PK")
    tools = document_tools(root, find_converter=lambda: None)
    note = "1 DOCX file and 2 PDF files were not read: install the [docs] extra"
    assert call(tools, "search_documents", query="定价")[0].count(note) == 1
    assert call(tools, "search_documents", query="quantum")[0] == f"No document matches quantum.\n\n{note}"
    assert ToolRegistry(tools).catalogue()["documents"]["not_read"] == [note]


def test_what_lies_outside_or_is_hidden_is_not_searched(root, tmp_path):
    write(tmp_path, {"secret.md": "pumps", "docs/.git/x.md": "pumps", "docs/node_modules/y.md": "pumps"})
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "up").symlink_to(tmp_path)
    assert search(document_tools(root), "pumps") == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_texts_in_other_encodings_are_found(tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes("客户认为新的定价难以接受，因此取消了订阅。".encode(encoding))
    assert search(document_tools(tmp_path), "定价")[0]["text"] == "客户认为新的定价难以接受，因此取消了订阅。"


def test_an_html_page_of_a_declared_encoding_is_found(tmp_path):
    (tmp_path / "a.html").write_bytes(
        '<meta charset="shift_jis"><title>料金表</title><p>新しい料金プラン</p>'.encode("shift_jis")
    )
    assert search(document_tools(tmp_path), "料金プラン")[0]["title"] == "料金表"


def test_c48_odd_characters_in_text_and_query_stay_valid(tmp_path):
    (tmp_path / "a.md").write_bytes("查找 😀 ① pumps {x} </think> \ufffe".encode() + b"\xff\xed\xa0\x80")
    content, hits = call(document_tools(tmp_path), "search_documents", query="pumps 😀 \ud800")
    assert len(hits) == 1
    content.encode()


def test_parallel_first_searches_build_one_index(root):
    tools = document_tools(root)
    barrier = threading.Barrier(8)

    def one(_: int) -> list[dict[str, Any]]:
        barrier.wait()
        return search(tools, "price")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(one, range(8)))
    assert all(result == results[0] for result in results)


def test_an_empty_folder_has_tools_that_find_nothing(tmp_path):
    tools = document_tools(tmp_path)
    assert search(tools, "x") == []
    assert ToolRegistry(tools).catalogue()["documents"] == {"groups": [], "left_out": 0}


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="no folder"):
        document_tools(tmp_path / "nope")


def test_the_catalogue_groups_documents_by_folder(root):
    registry = ToolRegistry(document_tools(root))
    documents = registry.catalogue()["documents"]
    assert [group["name"] for group in documents["groups"]] == ["acme", "bolt", "churn", ""]
    assert documents["groups"][0]["documents"][0] == {
        "path": "acme/pricing.md",
        "title": "Plans and prices",
        "headings": ["Enterprise"],
    }
    assert documents["left_out"] == 0
    assert registry.unasked() == ["search_documents", "read_document"]
    assert all(registry.spec(name).idempotent for name in registry.names())


def test_the_catalogue_of_a_large_folder_is_bounded_and_keeps_every_group(tmp_path):
    files = {
        f"group{g}/doc{n}.md": f"# Title {n}\n" + "\n".join(f"## Heading {h}" for h in range(9))
        for g in range(12)
        for n in range(40)
    }
    write(tmp_path, files)
    documents = ToolRegistry(document_tools(tmp_path)).catalogue()["documents"]
    assert len(json.dumps(documents, ensure_ascii=False)) <= 4000
    assert len(documents["groups"]) == 12
    shown = sum(len(group["documents"]) for group in documents["groups"])
    assert shown + documents["left_out"] == 480


def test_a_thousand_small_files_are_indexed_in_a_few_seconds(tmp_path):
    write(
        tmp_path,
        {
            f"g{n % 10}/{n}.md": f"# Report {n}\n\n" + f"Pump {n} costs {n} euros. 定价{n}。" * 20
            for n in range(1000)
        },
    )
    began = time.monotonic()
    tools = document_tools(tmp_path)
    hits = search(tools, "pump 777")
    assert hits[0]["locator"] == "g7/777.md#L1"
    assert time.monotonic() - began < 15


def test_modification_times_alone_are_noticed_too(root):
    tools = document_tools(root)
    search(tools, "price")
    path = root / "readme.txt"
    size = path.stat().st_size
    path.write_text("pumps".ljust(size, "."), encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert [hit["locator"] for hit in search(tools, "pumps")] == ["readme.txt#L1"]


def test_importing_and_building_the_tools_loads_no_heavy_library(root):
    code = (
        "import sys; from pathlib import Path; from tools.documents import document_tools; import tools.tables, tools.files;"
        f"document_tools(Path({str(root)!r})); print([m for m in ('bm25s', 'bs4', 'duckdb', 'markitdown') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

import contextlib
import json
import re
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import BaseTool, ToolException

from schemas.errors import SettingsError
from tools.registry import ToolRegistry
from tools.tables import table_tools

CUSTOMERS = "客户,套餐,月费\n甲,基础,12.5\n乙,企业,99\n丙,基础,12.5\n"


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "客户.csv").write_text(CUSTOMERS, encoding="utf-8")
    (folder / "sub" / "events.tsv").write_text("id\tkind\n1\tcancel\n2\tstay\n")
    con = duckdb.connect()
    con.execute(
        f"COPY (SELECT range AS n, 'p' || range AS name FROM range(300)) TO '{folder / 'parts.parquet'}'"
    )
    con.close()
    with contextlib.closing(sqlite3.connect(folder / "shop.sqlite")) as db, db:
        db.execute("CREATE TABLE orders (id INTEGER, day DATE, price REAL, note, blob BLOB)")
        db.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
            [
                (1, "2024-01-31", 1.5, "a", b"\1\2"),
                (2, "2024-02-01", 2, 7, None),
                (None, None, None, None, None),
            ],
        )
        db.execute("CREATE VIEW v AS SELECT * FROM orders")
    return folder


def run(tools: list[BaseTool], sql: str) -> tuple[str, list[dict[str, Any]]]:
    message = tools[0].invoke({"type": "tool_call", "id": "1", "name": "query_tables", "args": {"sql": sql}})
    return message.content, message.artifact


def rows(tools: list[BaseTool], sql: str) -> list[list[str]]:
    text = run(tools, sql)[1][0]["text"]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[3:]]


def test_files_of_each_kind_become_tables(root):
    tools = table_tools(root)
    assert rows(tools, "SELECT 套餐, count(*) FROM 客户 GROUP BY ALL ORDER BY 1") == [
        ["企业", "1"],
        ["基础", "2"],
    ]
    assert rows(tools, "SELECT kind FROM events WHERE id = 1") == [["cancel"]]
    assert rows(tools, "SELECT sum(n) FROM parts") == [["44850"]]
    assert rows(tools, "SELECT * FROM shop_orders ORDER BY id NULLS LAST") == [
        ["1", "2024-01-31", "1.5", "a", "2 bytes: 0102"],
        ["2", "2024-02-01", "2.0", "7", "NULL"],
        ["NULL"] * 5,
    ]
    assert rows(tools, "SELECT month(max(day)) FROM shop_orders") == [["2"]]


def test_a_result_is_one_source_whose_place_is_the_query(root):
    content, (source,) = run(table_tools(root), " SELECT 客户 FROM 客户\nWHERE 月费 > 50; ")
    assert source["locator"] == "SELECT 客户 FROM 客户 WHERE 月费 > 50;"
    assert source["title"] == "客户"
    assert source["text"] == "1 row\n| 客户 |\n| --- |\n| 乙 |"
    assert content == f"[{source['source_id']}] 客户 ({source['locator']})\n{source['text']}"
    assert run(table_tools(root), "SELECT 客户 FROM 客户\nWHERE 月费 > 50;")[1] == [source]


def test_a_result_without_rows_is_a_result(root):
    assert run(table_tools(root), "SELECT 客户 FROM 客户 WHERE 月费 > 500")[1][0]["text"].startswith(
        "0 rows\n"
    )


@pytest.mark.parametrize(
    "sql", ["WITH x AS (SELECT 1 AS a) SELECT * FROM x", "DESCRIBE 客户", "SHOW TABLES", "SUMMARIZE 客户"]
)
def test_reading_statements_are_allowed(root, sql):
    assert run(table_tools(root), sql)[1]


def test_at_most_200_rows_are_returned_and_said_to_be_a_part(root):
    tools = table_tools(root)
    assert len(rows(tools, "SELECT * FROM parts")) == 200
    assert run(tools, "SELECT * FROM parts")[1][0]["text"].startswith("The first 200 rows; there are more")
    assert run(tools, "SELECT * FROM parts LIMIT 200")[1][0]["text"].startswith("200 rows\n")


REFUSED = [
    "INSERT INTO parts VALUES (1, 'x')",
    "UPDATE parts SET n = 0",
    "DELETE FROM parts",
    "DROP TABLE parts",
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "WITH x AS (INSERT INTO parts VALUES (1, 'x') RETURNING n) SELECT * FROM x",
    "WITH x AS (DELETE FROM parts RETURNING n) SELECT * FROM x",
    "COPY parts TO '{out}'",
    "EXPLAIN ANALYZE COPY parts TO '{out}'",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}'",
    "ATTACH '{secret}' AS s",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET memory_limit",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE parts",
    "",
    "-- nothing",
    "SELEC",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM read_parquet('{parquet}')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM read_csv('https://example.org/x.csv')",
    "SELECT * FROM sqlite_scan('{secret}', 'x')",
    "SELECT * FROM database",
    "SELECT * FROM statement",
    "SELECT getenv('HOME')",
    "FROM query('CREATE TABLE z(a INT)')",
    "SELECT * FROM nope",
    "SELECT ?",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_everything_else_is_refused_and_changes_nothing(root, tmp_path, sql):
    secret, out = tmp_path / "secret.csv", tmp_path / "out"
    secret.write_text("a\n1\n")
    tools = table_tools(root)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(ToolException) as caught:
        run(tools, sql.format(secret=secret, out=out, parquet=root / "parts.parquet"))
    assert len(str(caught.value).splitlines()) == 1
    assert rows(tools, "SELECT count(*), sum(n) FROM parts") == [["300", "44850"]]
    assert set(tmp_path.rglob("*")) == before


def test_an_error_names_the_tables_there_are(root):
    with pytest.raises(ToolException, match=r"tables: parts, shop_orders, 客户, events"):
        run(table_tools(root), "SELECT * FROM customers")


def test_a_query_that_takes_too_long_is_stopped(root):
    tools = table_tools(root, max_seconds=0.3)
    began = time.monotonic()
    with pytest.raises(ToolException, match=r"more than 0\.3 s"):
        run(
            tools,
            "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = b.range % 11",
        )
    assert time.monotonic() - began < 10
    assert rows(tools, "SELECT count(*) FROM parts") == [["300"]]


def test_a_query_that_needs_too_much_memory_is_an_error(root):
    with pytest.raises(ToolException):
        run(table_tools(root), "SELECT list(range) FROM range(200000000)")


def test_parallel_queries_do_not_disturb_each_other(root):
    tools = table_tools(root)
    barrier = threading.Barrier(6)

    def one(number: int) -> list[list[str]]:
        barrier.wait()
        return rows(tools, f"SELECT name FROM parts WHERE n = {number}")

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(one, range(6))) == [[[f"p{n}"]] for n in range(6)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_csv_of_every_common_encoding_is_loaded(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(CUSTOMERS.encode(encoding))
    assert rows(table_tools(tmp_path), "SELECT 客户 FROM a WHERE 套餐 = '企业'") == [["乙"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1;2,5\n", [["1", "2,5"]]),
        ('a,b\n"x,y","q""r"\n', [["x,y", 'q"r']]),
        ('a,b\n"two\nlines",1\n', [["two lines", "1"]]),
        ("code,n\n007,1\n", [["007", "1"]]),
        ("a,b\n1,2\n3\n", [["1", "2"], ["3", "NULL"]]),
        ("name\nonly column\n", [["only column"]]),
        ("first,second\nx,y\nz,w\n", [["x", "y"], ["z", "w"]]),
        ("a,b\r\n1,2\r\n", [["1", "2"]]),
    ],
)
def test_csv_loses_no_row_and_no_zero(tmp_path, text, expected):
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert rows(table_tools(tmp_path), "SELECT * FROM t") == expected


def test_names_are_made_unique_and_fit_for_sql(tmp_path):
    for name in (
        "a b.csv",
        "a-b.csv",
        "A_B.tsv",
        "2024 sales.csv",
        "select.csv",
        "x[1].csv",
        "客户 名单.csv",
        "!.csv",
        "it's.csv",
    ):
        (tmp_path / name).write_text("v\n1\n")
    tools = table_tools(tmp_path)
    names = [table["name"] for table in ToolRegistry(tools).catalogue()["tables"]]
    assert sorted(names) == sorted(
        ["table_table", "t_2024_sales", "A_B", "a_b_2", "a_b_3", "it_s", "select_table", "x_1", "客户_名单"]
    )
    for name in names:
        assert rows(tools, f"SELECT v FROM {name}") == [["1"]]


def test_damaged_files_are_named_and_the_others_load(root):
    (root / "bad.parquet").write_bytes(b"PAR1 broken PAR1")
    (root / "bad.csv").write_bytes(b"\x89\0\0,\0")
    (root / "empty.csv").write_text("")
    (root / "bad.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 200)
    (root / "none.sqlite3").write_bytes(b"text")
    (root / "other.db").write_bytes(b"not sqlite")
    tools = table_tools(root)
    assert rows(tools, "SELECT count(*) FROM parts") == [["300"]]
    unread = ToolRegistry(tools).catalogue()["tables_not_read"]
    assert {line.partition(":")[0] for line in unread} == {
        "bad.parquet",
        "bad.csv",
        "empty.csv",
        "bad.sqlite",
        "none.sqlite3",
    }
    assert all(str(root) not in line for line in unread)
    assert "Not loaded: bad.parquet" in tools[0].description


def test_a_sqlite_file_in_use_is_read_and_nothing_is_written_beside_it(root):
    path = root / "live.db"
    with contextlib.closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (v)")
        writer.execute("INSERT INTO t VALUES ('written, not yet checkpointed')")
        writer.commit()
        assert rows(table_tools(root), "SELECT v FROM live_t") == [["written, not yet checkpointed"]]
    before = sorted(root.iterdir())
    assert rows(table_tools(root), "SELECT count(*) FROM live_t") == [["1"]]
    assert sorted(root.iterdir()) == before


def test_a_changed_file_is_loaded_again(root):
    tools = table_tools(root)
    (root / "客户.csv").write_text(CUSTOMERS + "丁,企业,99\n", encoding="utf-8")
    (root / "new.csv").write_text("v\n5\n")
    assert rows(tools, "SELECT count(*) FROM 客户") == [["4"]]
    assert rows(tools, "SELECT v FROM new") == [["5"]]


def test_files_outside_are_not_loaded(root, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (root / "secret.csv").symlink_to(tmp_path / "secret.csv")
    assert "secret" not in json.dumps(ToolRegistry(table_tools(root)).catalogue())


def test_the_catalogue_has_rows_types_and_distinct_counts(root):
    tables = {table["name"]: table for table in ToolRegistry(table_tools(root)).catalogue()["tables"]}
    assert tables["客户"] == {
        "name": "客户",
        "path": "客户.csv",
        "rows": 3,
        "columns": [
            {"name": "客户", "type": "VARCHAR", "distinct": 3},
            {"name": "套餐", "type": "VARCHAR", "distinct": 2},
            {"name": "月费", "type": "DOUBLE", "distinct": 2},
        ],
    }
    assert tables["shop_orders"]["path"] == "shop.sqlite"


def test_the_catalogue_and_description_of_many_wide_tables_are_bounded(tmp_path):
    for number in range(30):
        columns = ",".join(f"column_{n}" for n in range(60))
        (tmp_path / f"t{number}.csv").write_text(columns + "\n" + ",".join("1" for _ in range(60)) + "\n")
    (tool,) = table_tools(tmp_path)
    catalogue = ToolRegistry([tool]).catalogue()
    assert len(json.dumps({"tables": catalogue["tables"]})) <= 4000
    assert len(catalogue["tables"]) + catalogue["tables_left_out"] == 30
    assert len(tool.description) < 3500


def test_the_tool_only_reads_and_names_its_columns(root):
    registry = ToolRegistry(table_tools(root))
    spec = registry.spec("query_tables")
    assert (spec.permission, spec.idempotent) == ("read", True)
    assert "客户 (3 rows): 客户 VARCHAR, 套餐 VARCHAR, 月费 DOUBLE" in spec.tool.description
    assert len(spec.description) <= 300


def test_the_description_spells_names_as_sql_needs_them(tmp_path):
    (tmp_path / "t.csv").write_text('id,at,order,"net price",at""x,2024\n1,2,3,4,5,6\n')
    (tool,) = table_tools(tmp_path)
    spelled = re.search(r"^t \(1 rows\): (.*)$", tool.description, re.MULTILINE)
    columns = [column.rpartition(" ")[0] for column in spelled[1].split(", ")]
    assert columns[0] == "id"
    assert rows([tool], f"SELECT {', '.join(f'max({column})' for column in columns)} FROM t") == [
        list("123456")
    ]


def test_a_folder_without_tables_has_no_tool(tmp_path):
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "a.db").write_text("not sqlite")
    assert table_tools(tmp_path) == []


def test_without_the_extra_tables_are_refused_naming_it(root, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SettingsError, match=r"\[tables\] extra"):
        table_tools(root)
    (tmp_path / "empty").mkdir()
    assert table_tools(tmp_path / "empty") == []


def test_cells_cannot_break_the_table(root):
    sql = "SELECT 'a|b' AS x, 'c\nd' AS y, repeat('定', 5000) AS z, [1, 2] AS l, {'k': 'v'} AS s, true AS t"
    (row,) = run(table_tools(root), sql)[1][0]["text"].splitlines()[3:]
    assert row.startswith("| a\\|b | c d | 定定")
    assert "characters left out" in row
    assert row.endswith('| [1, 2] | {"k": "v"} | true |')


@given(st.text(max_size=40))
def test_any_text_as_sql_is_a_result_or_one_line(tmp_path_factory, sql):
    root = tmp_path_factory.getbasetemp() / "sql"
    root.mkdir(exist_ok=True)
    (root / "t.csv").write_text("v\n1\n") if not (root / "t.csv").exists() else None
    try:
        content, _ = run(table_tools(root), sql)
    except ToolException as error:
        content = str(error)
        if len(content.splitlines()) > 1:
            pytest.fail(content)
    content.encode()

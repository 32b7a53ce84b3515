"""Read-only SQL over the CSV, Parquet and SQLite files under a folder; needs the [tables] extra."""

import json
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from tools.folder import Stamp, existing_folder, walk
from tools.results import SourceDraft, clean_text, cut, draft, render, source_id
from tools.table_loading import SUFFIXES, Database, Table, is_table_file, load

if TYPE_CHECKING:
    import duckdb

MAX_ROWS = 200
MAX_SECONDS = 10.0
MAX_CELL_CHARS = 1_000
MAX_RESULT_CHARS = 100_000
CATALOGUE_CHARS = 4_000
_DESCRIPTION_CHARS = 3_000
_ERROR_CHARS = 500


def table_tools(root: Path, *, max_seconds: float = MAX_SECONDS) -> list[BaseTool]:
    """Return query_tables over the table files under a folder; no tool if there is no such file.

    The files are loaded here, and again when one has changed.

    Args:
        root: the folder; nothing outside it is read.
        max_seconds: wall-clock bound on one query.

    Raises:
        SettingsError: there is no such folder, or there are table files and duckdb is not installed.
    """
    tables = Tables(existing_folder(root), max_seconds)
    if not tables.has_files():
        return []
    database = tables.current()

    def query_tables(
        sql: Annotated[str, "One SELECT statement in DuckDB's SQL"],
    ) -> tuple[str, list[SourceDraft]]:
        return tables.query(sql)

    return [
        StructuredTool.from_function(
            query_tables,
            description=_description(database),
            response_format="content_and_artifact",
            metadata={
                "permission": "read",
                "idempotent": True,
                "timeout_seconds": max_seconds + 5,
                "catalogue": table_catalogue(database),
            },
        )
    ]


class Tables:
    """The tables of a folder, loaded at the first use and again when a file has changed. Safe for threads."""

    def __init__(self, root: Path, max_seconds: float = MAX_SECONDS) -> None:
        self._root = root
        self._max_seconds = max_seconds
        self._lock = threading.Lock()
        self._stamps: dict[str, Stamp] = {}
        self._database: Database | None = None

    def has_files(self) -> bool:
        """Return whether the folder has any table file."""
        return next(iter(self._files()), None) is not None

    def current(self) -> Database:
        """Return the database of the files as they are now.

        Raises:
            SettingsError: duckdb is not installed.
        """
        with self._lock:
            files = list(self._files())
            stamps = {name: stamp for name, _, stamp in files}
            if self._database is None or stamps != self._stamps:
                # The old database is left to its running queries; it ends with the last of them.
                self._database = load([(name, path, size) for name, path, (_, size) in files])
                self._stamps = stamps
            return self._database

    def _files(self) -> Iterator[tuple[str, Path, Stamp]]:
        return (item for item in walk(self._root, SUFFIXES) if is_table_file(item[1]))

    def query(self, sql: str) -> tuple[str, list[SourceDraft]]:
        """Run one read-only statement and return the text for the model and the one source.

        Raises:
            ToolException: it is not one SELECT, DuckDB refuses it, or it takes too long.
        """
        sql = clean_text(sql).strip()
        database = self.current()
        columns, rows, used = self.rows(database, sql)
        shown = rows[:MAX_ROWS]
        count = f"{len(shown)} {'row' if len(shown) == 1 else 'rows'}"
        if len(rows) > MAX_ROWS:
            count = f"The first {MAX_ROWS} rows; there are more: aggregate, filter, or use LIMIT and OFFSET"
        text = cut(f"{count}\n{_markdown(columns, shown)}", MAX_RESULT_CHARS, "select fewer columns or rows")
        found = draft(source_id(sql, text), locator=sql, title=", ".join(used) or "query", text=text)
        return render([found]), [found]

    def rows(self, database: Database, sql: str) -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
        """Return column names, at most MAX_ROWS + 1 rows, and the names of the tables used.

        Raises:
            ToolException: as in query.
        """
        import duckdb

        cursor = database.connection.cursor()
        try:
            statement = _only_select(cursor, sql)
            with self._bounded(cursor):
                result = cursor.execute(statement)
                columns = [str(item[0]) for item in result.description or []]
                rows = result.fetchmany(MAX_ROWS + 1)
            named = cursor.get_table_names(sql)
        except duckdb.InterruptException:
            raise ToolException(
                f"the query took more than {self._max_seconds:g} s: filter or aggregate first"
            ) from None
        except (duckdb.Error, ValueError, OverflowError) as error:
            raise ToolException(_problem(error, database)) from None
        finally:
            cursor.close()
        return columns, rows, [table.name for table in database.tables if table.name in named]

    @contextmanager
    def _bounded(self, cursor: "duckdb.DuckDBPyConnection") -> Generator[None]:
        """Allow reading only, for a time: a WITH clause may hold an INSERT, and its statement is still a SELECT."""
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        timer = threading.Timer(self._max_seconds, cursor.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _only_select(cursor: "duckdb.DuckDBPyConnection", sql: str) -> "duckdb.Statement":
    import duckdb

    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        raise ToolException(f"give exactly one SQL statement: there are {len(statements)}")
    # By DuckDB's own parser: DESCRIBE, SHOW and SUMMARIZE are SELECT there, COPY, ATTACH, SET and PRAGMA are not.
    if statements[0].type != duckdb.StatementType.SELECT:
        raise ToolException(
            f"only SELECT, WITH, DESCRIBE, SHOW and SUMMARIZE are allowed, not {statements[0].type.name}"
        )
    return statements[0]


def _problem(error: Exception, database: Database) -> str:
    text = " ".join(clean_text(str(error)).split())
    if "does not exist" in text or "not found" in text:
        text += f" (tables: {', '.join(table.name for table in database.tables) or 'none'})"
    return cut(f"the query failed: {text}", _ERROR_CHARS, "see the tool's description for tables and columns")


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"{len(value)} bytes: {value[:32].hex()}"
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _escaped(cell: str) -> str:
    text = cut(" ".join(clean_text(cell).splitlines()), MAX_CELL_CHARS, "select a part with substr")
    return text.replace("|", "\\|")


def table_catalogue(database: Database) -> dict[str, Any]:
    """Return {"tables": [{"name", "path", "rows", "columns": [{"name", "type", "distinct"}]}]}.

    To stay within CATALOGUE_CHARS of JSON the last columns of wide tables are dropped first, then tables, with
    "tables_left_out" as their count. "tables_not_read" names files that were not loaded, where there are any.
    """
    extra: dict[str, Any] = {"tables_not_read": list(database.not_loaded)} if database.not_loaded else {}
    tables = list(database.tables)
    for most in (40, 20, 10, 5):
        catalogue = {"tables": [_entry(table, most) for table in tables], **extra}
        if _size(catalogue) <= CATALOGUE_CHARS:
            return catalogue
    while tables:
        tables.pop()
        left_out = {"tables_left_out": len(database.tables) - len(tables)}
        catalogue = {"tables": [_entry(table, 5) for table in tables], **left_out, **extra}
        if _size(catalogue) <= CATALOGUE_CHARS:
            break
    return catalogue


def _entry(table: Table, most: int) -> dict[str, Any]:
    columns = [
        {"name": item.name, "type": item.type, "distinct": item.distinct} for item in table.columns[:most]
    ]
    return {"name": table.name, "path": table.path, "rows": table.rows, "columns": columns}


def _size(catalogue: dict[str, Any]) -> int:
    return len(json.dumps(catalogue, ensure_ascii=False))


def _description(database: Database) -> str:
    """Return the tool's description: what it does, then the tables, which a worker is told nowhere else."""
    lines = [
        f"{table.name} ({table.rows} rows): "
        + ", ".join(f"{database.spelled(item.name)} {item.type}" for item in table.columns)
        for table in database.tables
    ]
    tables = (
        cut("\n".join(lines), _DESCRIPTION_CHARS, "SHOW TABLES and DESCRIBE list the rest")
        or "There is no table."
    )
    first = (
        "Run one read-only SQL query (DuckDB) over the tables of the folder; at most 200 rows are returned."
    )
    notes = [f"Not loaded: {line}" for line in database.not_loaded]
    return "\n\n".join([first, tables, *notes[:10]])

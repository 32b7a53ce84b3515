"""SQLite files, read by Python's own sqlite3 and copied into DuckDB: its extension for them would be a download."""

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

SQLITE_MAGIC = b"SQLite format 3\0"
_BLOCK_ROWS = 10_000


def quoted(name: str) -> str:
    """Return an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def open_sqlite(path: Path) -> sqlite3.Connection:
    """Open a SQLite file without writing beside it.

    Raises:
        sqlite3.Error: it is no SQLite file, or damaged.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        header = file.read(20)
    if not header.startswith(SQLITE_MAGIC):
        raise sqlite3.DatabaseError("not a SQLite file")
    # Reading a write-ahead-log database makes files beside it, unless it is declared to stand still; without a log
    # file nobody is writing to it.
    still = header[18:20] == b"\2\2" and not path.with_name(path.name + "-wal").exists()
    source = sqlite3.connect(f"{path.as_uri()}?mode=ro{'&immutable=1' if still else ''}", uri=True)
    source.text_factory = _decoded
    source.execute("PRAGMA trusted_schema = OFF")
    return source


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def sqlite_tables(source: sqlite3.Connection) -> list[str]:
    """Return the names of the tables, without SQLite's own and without views."""
    rows = source.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    return [str(row[0]) for row in rows.fetchall()]


def copy_table(
    source: sqlite3.Connection, table: str, target: "duckdb.DuckDBPyConnection", name: str
) -> None:
    """Copy a table into DuckDB under a new name; types are those of the values, dates those declared as such.

    Raises:
        sqlite3.Error, duckdb.Error: it cannot be read, or does not fit into memory.
    """
    rows = source.execute(f"SELECT * FROM {quoted(table)}")
    columns = [str(item[0]) for item in rows.description]
    kinds = [_kind(source, table, column) for column in columns]
    spelled = ", ".join(f"{quoted(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
    target.execute(f"CREATE TABLE {quoted(name)} ({spelled})")
    # Whole columns as lists: row by row takes a hundred times as long.
    values = ", ".join(f"unnest(${number}::{kind}[])" for number, kind in enumerate(kinds, start=1))
    while block := rows.fetchmany(_BLOCK_ROWS):
        target.execute(f"INSERT INTO {quoted(name)} SELECT {values}", _columns(block, kinds))
    _cast_dates(
        source, table, target, name, {c for c, k in zip(columns, kinds, strict=True) if k == "VARCHAR"}
    )


def _cast_dates(
    source: sqlite3.Connection, table: str, target: "duckdb.DuckDBPyConnection", name: str, texts: set[str]
) -> None:
    import duckdb

    for _, column, declared, *_ in source.execute(f"PRAGMA table_info({quoted(table)})").fetchall():
        moment = {"DATE": "DATE", "DATETIME": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP"}.get(
            str(declared).upper()
        )
        if moment and column in texts:
            # SQLite has no dates, only texts declared as such; those that are none stay texts.
            with contextlib.suppress(duckdb.Error):
                target.execute(f"ALTER TABLE {quoted(name)} ALTER COLUMN {quoted(column)} TYPE {moment}")


def _kind(source: sqlite3.Connection, table: str, column: str) -> str:
    """Return the DuckDB type that holds every value of a SQLite column, whatever was declared."""
    rows = source.execute(f"SELECT DISTINCT typeof({quoted(column)}) FROM {quoted(table)}").fetchall()
    kinds = {str(row[0]) for row in rows} - {"null"}
    if kinds == {"integer"}:
        return "BIGINT"
    if kinds and kinds <= {"integer", "real"}:
        return "DOUBLE"
    return "BLOB" if kinds == {"blob"} else "VARCHAR"


def _as(value: Any, kind: str) -> Any:
    if value is None or kind != "VARCHAR" or isinstance(value, str):
        return value
    return _decoded(value) if isinstance(value, bytes) else str(value)


def _columns(rows: Sequence[Sequence[Any]], kinds: Sequence[str]) -> list[list[Any]]:
    columns = zip(*rows, strict=True)
    return [[_as(value, kind) for value in column] for column, kind in zip(columns, kinds, strict=True)]

"""CSV, Parquet and SQLite files, loaded as tables of an in-memory DuckDB database.

The database is filled first and then shut in: queries can neither reach files nor change its settings.
"""

import codecs
import contextlib
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import SettingsError
from tools.folder import NotText, read_text
from tools.results import clean_text
from tools.sqlite_files import SQLITE_MAGIC, copy_table, open_sqlite, quoted, sqlite_tables

if TYPE_CHECKING:
    import duckdb

SEPARATED = frozenset({".csv", ".tsv"})
PARQUET = frozenset({".parquet"})
SQLITE = frozenset({".sqlite", ".sqlite3", ".db"})
SUFFIXES = SEPARATED | PARQUET | SQLITE
MAX_LOADED_BYTES = 200_000_000
_BARE = re.compile(r"[^\W\d]\w*")
_CONFIG: dict[str, Any] = {
    "memory_limit": "512MB",
    "threads": 2,
    # No spilling: queries may always use the folder for temporary files, so there must be none.
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # Otherwise SELECT * FROM x reads a Python variable named x.
    "python_enable_replacements": False,
}


@dataclass(frozen=True)
class Column:
    """A column: DuckDB's type, and how many different values there are, NULL not counted."""

    name: str
    type: str
    distinct: int


@dataclass(frozen=True)
class Table:
    """A loaded table; `path` is its file, relative to the root."""

    name: str
    path: str
    rows: int
    columns: tuple[Column, ...]


class _Empty(Exception):
    """There is nothing in the file."""


@dataclass(frozen=True)
class Database:
    """A filled, shut-in database.

    Attributes:
        keywords: words that SQL takes for its own unless they are quoted.
        not_loaded: a line for each file that is not in it, with the reason.
    """

    connection: "duckdb.DuckDBPyConnection"
    tables: tuple[Table, ...]
    not_loaded: tuple[str, ...]
    keywords: frozenset[str]

    def spelled(self, name: str) -> str:
        """Return a name as a query must write it: quoted where it has to be."""
        return name if _BARE.fullmatch(name) and name.casefold() not in self.keywords else quoted(name)


def is_table_file(path: Path) -> bool:
    """Return whether a file of a table suffix is one: .db is a common ending of other formats."""
    if path.suffix.lower() != ".db":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False


def load(files: Sequence[tuple[str, Path, int]]) -> Database:
    """Load files into a new database and shut it in.

    Args:
        files: (path relative to the root, file, size in bytes); those beyond MAX_LOADED_BYTES in all are left out.

    Raises:
        SettingsError: duckdb is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise SettingsError(
            "tables need DuckDB: install the [tables] extra, pip install -e '.[tables]'"
        ) from None
    connection = duckdb.connect(":memory:", config=_CONFIG)
    loader = _Loader(connection)
    room = MAX_LOADED_BYTES
    with tempfile.TemporaryDirectory() as scratch:
        for name, path, size in files:
            if size > room:
                loader.not_loaded.append(f"{name}: more than {MAX_LOADED_BYTES // 1_000_000} MB of tables")
                continue
            room -= size
            loader.load(name, path, Path(scratch))
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return Database(connection, tuple(loader.tables), tuple(loader.not_loaded), loader.keywords)


class _Loader:
    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection
        self.keywords = frozenset(
            str(row[0])
            for row in connection.execute(
                "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category != 'unreserved'"
            ).fetchall()
        )
        self._taken: set[str] = set()
        self.tables: list[Table] = []
        self.not_loaded: list[str] = []

    def load(self, name: str, path: Path, scratch: Path) -> None:
        """Load one file; a failure is named in `not_loaded`, and leaves no table."""
        import duckdb

        made: list[str] = []
        try:
            for table in self._made(path, scratch, made):
                self.tables.append(self._described(table, name))
        except (duckdb.Error, sqlite3.Error, OSError, _Empty, NotText) as error:
            self._drop(made)
            self.not_loaded.append(f"{clean_text(name)}: {_reason(error)}")

    def _made(self, path: Path, scratch: Path, made: list[str]) -> Iterator[str]:
        suffix = path.suffix.lower()
        if suffix in SQLITE:
            with contextlib.closing(open_sqlite(path)) as source:
                for table in sqlite_tables(source):
                    made.append(self._name(f"{path.stem}_{table}"))
                    copy_table(source, table, self._connection, made[-1])
                    yield made[-1]
            return
        made.append(self._name(path.stem))
        if suffix in PARQUET:
            self._create(made[-1], "read_parquet(?)", str(_plain_path(path, scratch)))
        else:
            self._load_separated(made[-1], path, scratch)
        yield made[-1]

    def _load_separated(self, table: str, path: Path, scratch: Path) -> None:
        import duckdb

        source = _utf8_path(path, scratch)
        head = _first_line(source)
        if not head.strip():
            raise _Empty("it is empty")
        options = f"header = true, skip = 0, quote = '\"', escape = '\"', delim = '{_delimiter(head, path)}'"
        try:
            self._create(table, f"read_csv(?, {options}, sample_size = -1)", str(source))
        except duckdb.Error:
            # Rows of uneven length: everything as text loses no row, as skipping the bad ones would.
            options += ", all_varchar = true, null_padding = true, strict_mode = false"
            self._create(table, f"read_csv(?, {options})", str(source))

    def _create(self, table: str, source: str, path: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TABLE {quoted(table)} AS FROM {source}", [path])

    def _name(self, stem: str) -> str:
        """Return a free name that SQL accepts without quotes; letters of every script stay."""
        name = re.sub(r"\W+", "_", clean_text(stem)).strip("_") or "table"
        if name[0].isdigit():
            name = f"t_{name}"
        if name.casefold() in self.keywords:
            name = f"{name}_table"
        free, number = name, 2
        while free.casefold() in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free.casefold())
        return free

    def _described(self, table: str, path: str) -> Table:
        import duckdb

        described = self._connection.execute(f"DESCRIBE {quoted(table)}").fetchall()
        columns = [(str(row[0]), str(row[1])) for row in described]
        try:
            counts = self._counts(table, columns, "count(DISTINCT {})")
        except duckdb.OutOfMemoryException:
            counts = self._counts(table, columns, "approx_count_distinct({})")
        rows, *distinct = counts
        found = (Column(name, kind, count) for (name, kind), count in zip(columns, distinct, strict=True))
        return Table(table, clean_text(path), rows, tuple(found))

    def _counts(self, table: str, columns: Sequence[tuple[str, str]], count: str) -> list[int]:
        wanted = ", ".join(["count(*)", *(count.replace("{}", quoted(name)) for name, _ in columns)])
        row = self._connection.execute(f"SELECT {wanted} FROM {quoted(table)}").fetchone()
        return [int(value) for value in row or ()]

    def _drop(self, made: Sequence[str]) -> None:
        for table in made:
            self._connection.execute(f"DROP TABLE IF EXISTS {quoted(table)}")
        self.tables = [table for table in self.tables if table.name not in made]


def _reason(error: Exception) -> str:
    if isinstance(error, NotText):
        return "not text"
    if isinstance(error, OSError):
        return error.strerror or "cannot be read"
    # DuckDB's first line names the fault; the path of a scratch copy in it would mean nothing to a reader.
    return re.sub(r"[\"'](/|[A-Za-z]:\\)[^\"']*[\"']", "it", str(error).split("\n", 1)[0])[:200]


def _plain_path(path: Path, scratch: Path) -> Path:
    """Return a path without the characters that DuckDB takes for a pattern, copying the file if need be."""
    if not set("*?[]{}") & set(str(path)):
        return path
    return Path(shutil.copyfile(path, scratch / f"copy{path.suffix.lower()}"))


def _utf8_path(path: Path, scratch: Path) -> Path:
    """Return the path of a UTF-8 version of a text file: itself, or a copy."""
    if _is_utf8(path):
        return _plain_path(path, scratch)
    copy = scratch / "copy.csv"
    copy.write_text(clean_text(read_text(path)), encoding="utf-8")
    return copy


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while block := file.read(1 << 20):
                if "\0" in decoder.decode(block):
                    return False
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.readline(1 << 16)


def _delimiter(head: str, path: Path) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    bare = re.sub(r'"[^"]*"', "", head)
    return max(",;\t|", key=bare.count)

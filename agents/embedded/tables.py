"""Tables in the embedded model: what a plan says of them, and the queries that a worker makes of that."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.embedded.requests import TableColumn, TableEntry
from agents.embedded.text import Profile, Unit, coverage

MAX_QUERIES = 3
MAX_GROUPS = 30  # distinct values up to which a column is one to group by
_NUMERIC = re.compile(r"(?i)int|double|float|decimal|numeric|real|number")
_TEXT = re.compile(r"(?i)char|text|string|bool|enum")
_COLUMN = re.compile(r'"((?:[^"]|"")+)" ([A-Za-z][\w(),]*) (\d+)')
_TABLE = re.compile(r'(?:table|表) "((?:[^"]|"")+)"')
_ROWS = re.compile(r"(\d+) (?:rows|行)")
_LINK = re.compile(r'(?:joins|关联) "((?:[^"]|"")+)" (?:on|字段) "((?:[^"]|"")+)"')


@dataclass(frozen=True)
class TableTask:
    """What a step's task says of its table. `link` is another table and the column that both have."""

    name: str
    rows: int
    columns: list[TableColumn]
    link: tuple[str, str] | None


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _unquoted(name: str) -> str:
    return name.replace('""', '"')


def table_tasks(
    tables: Sequence[TableEntry], wanted: Sequence[Unit], chinese: bool, most: int
) -> list[tuple[str, str]]:
    """Return (table name, task) for the tables that matter most, in the catalogue's order.

    Args:
        tables: of the catalogue.
        wanted: what the objective asks for; columns that say it come first.
        chinese: language of the task.
        most: how many tables to take.
    """
    usable = [t for t in tables if t.name and t.columns]
    ranked = sorted(usable, key=lambda t: -coverage(wanted, (_profile(t), 1.0)))[:most]
    return [(t.name, _task(t, usable, wanted, chinese)) for t in usable if t in ranked]


def _profile(table: TableEntry) -> Profile:
    return Profile(" ".join([table.name, table.path, *(c.name for c in table.columns)]))


def _task(table: TableEntry, tables: Sequence[TableEntry], wanted: Sequence[Unit], chinese: bool) -> str:
    opening = (
        f"查询表 {quoted(table.name)}（{table.rows} 行）"
        if chinese
        else f"Query the table {quoted(table.name)} ({table.rows} rows)"
    )
    link = _link(table, tables)
    if link:
        other, column = map(quoted, link)
        opening += f"，关联 {other} 字段 {column}" if chinese else f", which joins {other} on {column}"
    opening += "。字段（类型、不同值数）：" if chinese else ". Columns (type, distinct values): "
    columns = sorted(table.columns, key=lambda c: -coverage(wanted, (Profile(c.name), 1.0)))
    text = opening
    for column in columns:
        entry = f"{quoted(_one_line(column.name))} {_type(column)} {max(0, column.distinct)}; "
        if len(text) + len(entry) > 1900:
            break
        text += entry
    return text.rstrip("; ")


def _one_line(text: str) -> str:
    return text if text.isprintable() else ""


def _type(column: TableColumn) -> str:
    return re.sub(r"[^\w]", "", column.type) or "VARCHAR"


def _link(table: TableEntry, tables: Sequence[TableEntry]) -> tuple[str, str] | None:
    """Return a smaller table that names this table's rows, and by which column: each value is there at most once."""
    for other in tables:
        if other is table or not 0 < other.rows < table.rows:
            continue
        shared = {c.name for c in other.columns if c.distinct == other.rows}
        for column in table.columns:
            if column.name in shared and column.distinct == table.rows:
                return other.name, column.name
    return None


def read_task(task: str) -> TableTask | None:
    """Read a table's description out of a task; None if it has none."""
    name, rows = _TABLE.search(task), _ROWS.search(task)
    if not name:
        return None
    link = _LINK.search(task)
    columns = [
        TableColumn(name=_unquoted(m[1]), type=m[2], distinct=int(m[3][:12]))
        for m in _COLUMN.finditer(task, name.end())
    ]
    pair = (_unquoted(link[1]), _unquoted(link[2])) if link else None
    return TableTask(_unquoted(name[1]), int(rows[1][:12]) if rows else 0, columns, pair)


def queries(table: TableTask, wanted: Sequence[Unit], chinese: bool) -> list[str]:
    """Return at most three queries: rows by the columns that matter, and the numbers over all."""
    groups = [c.name for c in _groups(table, wanted)]
    numbers = [c.name for c in table.columns if _NUMERIC.search(c.type) and c.distinct > 1][:4]
    if table.link:
        made = [_linked(table, table.link, name, chinese) for name in groups[:MAX_QUERIES]]
    else:
        made = [_counted(table, name, numbers[:2], chinese) for name in groups[: MAX_QUERIES - 1]]
    return made if len(made) == MAX_QUERIES else [*made, _overall(table, numbers, chinese)]


def _groups(table: TableTask, wanted: Sequence[Unit]) -> list[TableColumn]:
    """Return the columns to group by: those that say what is wanted, then those of few values."""
    usable = [c for c in table.columns if _TEXT.search(c.type) and 1 < c.distinct <= MAX_GROUPS]
    usable = [c for c in usable if c.distinct * 2 <= max(table.rows, 4)]
    # Columns of two values say little more than a total; a handful of groups says most.
    return sorted(
        usable, key=lambda c: (-coverage(wanted, (Profile(c.name), 1.0)), c.distinct < 3, c.distinct)
    )


def asked_group(table: TableTask, wanted: Sequence[Unit]) -> TableColumn | None:
    """Return the column to group by that the objective asks for by name, if there is one."""
    groups = _groups(table, wanted)
    return groups[0] if groups and coverage(wanted, (Profile(groups[0].name), 1.0)) > 0 else None


def _means(numbers: Sequence[str], chinese: bool) -> str:
    mean = "平均" if chinese else "mean "
    return "".join(f", ROUND(AVG({quoted(n)}), 2) AS {quoted(mean + n)}" for n in numbers)


def _count(chinese: bool) -> str:
    return quoted("行数") if chinese else '"rows"'


def _counted(table: TableTask, column: str, numbers: Sequence[str], chinese: bool) -> str:
    return (
        f"SELECT {quoted(column)}, COUNT(*) AS {_count(chinese)}{_means(numbers, chinese)} FROM {quoted(table.name)} "
        f"GROUP BY {quoted(column)} ORDER BY COUNT(*) DESC, {quoted(column)} LIMIT 8"
    )


def _linked(table: TableTask, link: tuple[str, str], column: str, chinese: bool) -> str:
    other, key = link
    matched = f"COUNT(b.{quoted(key)})"
    share = f"ROUND(100.0 * {matched} / COUNT(*), 1)"
    inside, percent = (f"在 {other} 中", "百分比") if chinese else (f"in {other}", "percent")
    return (
        f"SELECT a.{quoted(column)}, COUNT(*) AS {_count(chinese)}, {matched} AS {quoted(inside)}, "
        f"{share} AS {quoted(percent)} FROM {quoted(table.name)} a "
        f"LEFT JOIN {quoted(other)} b ON a.{quoted(key)} = b.{quoted(key)} "
        f"GROUP BY a.{quoted(column)} ORDER BY {share} DESC, a.{quoted(column)} LIMIT 8"
    )


def _overall(table: TableTask, numbers: Sequence[str], chinese: bool) -> str:
    return f"SELECT COUNT(*) AS {_count(chinese)}{_means(numbers, chinese)} FROM {quoted(table.name)}"

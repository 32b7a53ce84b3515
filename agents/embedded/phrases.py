"""The sentences that the embedded model writes into plans and findings, and reads out of them again."""

import re

_QUERIES = ("Queries to try: ", "可用查询：")
_WITH_SOURCE = (", an amount with a source", ", quoted with a source", "，须有数额和出处", "，须有出处")
SIDE_BY_SIDE = ("What was found is set side by side, with its sources", "已有发现并列比较，并注明出处")
TO_BUILD_ON = ("The findings to build on are named, with their sources", "列出可依据的发现，并注明出处")
FILES = ("In the files: ", "在文件中：")
LAYOUT = ("Layout", "目录结构")
ANSWERED = ("The question is answered, with a source", "问题得到回答，并注明来源")
FIGURES_OF = ("the table's figures, from a query", "表中数字，来自查询")
TEMPLATES = frozenset((*SIDE_BY_SIDE, *TO_BUILD_ON))


def said(pair: tuple[str, str], chinese: bool) -> str:
    """Return the sentence in one of the two languages."""
    return pair[1] if chinese else pair[0]


def criterion(entity: str, aspect: str, *, chinese: bool, figure: bool) -> str:
    """Return the criterion that an aspect of an entity is found."""
    if chinese:
        return f"{_prefix(entity, '：')}{aspect or '要点'}{_WITH_SOURCE[2 if figure else 3]}"
    return f"{_prefix(entity, ': ')}{aspect or 'key points'}{_WITH_SOURCE[0 if figure else 1]}"


def table_criterion(table: str, *, chinese: bool) -> str:
    """Return the criterion that a table was queried."""
    return f"{table}{'：' if chinese else ': '}{said(FIGURES_OF, chinese)}"


def is_table_criterion(text: str) -> bool:
    """Return whether a criterion asks for a table's figures."""
    return text.endswith(FIGURES_OF)


def _prefix(entity: str, colon: str) -> str:
    return entity + colon if entity else ""


def label(criterion: str) -> str:
    """Return a criterion without the words that every one has."""
    for ending in _WITH_SOURCE:
        criterion = criterion.removesuffix(ending)
    return criterion


def entity_and_aspect(text: str) -> tuple[str, str]:
    """Split a label at its first colon; the entity is "" if there is none."""
    entity, colon, aspect = re.sub(r"：\s*", ": ", text, count=1).partition(": ")
    if colon and entity.strip() and aspect.strip() and len(entity) <= 80:
        return entity.strip(), aspect.strip()
    return "", text.strip()


def with_queries(task: str, queries: list[str], chinese: bool) -> str:
    """Append queries to a task, for `queries_in` to read."""
    quoted = " | ".join(q.replace("|", " ").replace("\n", " ") for q in queries)
    return f"{task}\n{said(_QUERIES, chinese)}{quoted}"


def queries_in(task: str) -> list[str]:
    """Return the queries that a task carries."""
    for opening in _QUERIES:
        _, found, rest = task.partition(opening)
        if found:
            return [q.strip() for q in rest.splitlines()[0].split("|") if q.strip()] if rest.strip() else []
    return []


def file_clause(task: str) -> str:
    """Return the clause of a task that lists or reads files; "" for any other task."""
    return next((task.removeprefix(opening) for opening in FILES if task.startswith(opening)), "")


def line(name: str, quote: str, locator: str) -> str:
    """Return one line of a summary: what, the words, where."""
    folded = " ".join(locator.split())
    return f"- {' '.join(name.split())}: “{quote}” ({folded})"


def lines_in(summary: str) -> list[tuple[str, str, str]]:
    """Return (label, quote, locator) of each line of a summary that `line` wrote."""
    found: list[tuple[str, str, str]] = []
    for row in summary.splitlines():
        name, opened, rest = row.removeprefix("- ").partition(": “")
        quote, closed, locator = rest.partition("” (")
        if row.startswith("- ") and opened and closed and name and locator.endswith(")"):
            found.append((name, quote, locator[:-1]))
    return found


def cut_line_in(summary: str) -> tuple[str, str] | None:
    """Return (label, beginning of the quote) of a summary's last line, if the summary was cut inside a quote."""
    kept, noted, _ = summary.partition("… [cut: ")
    name, opened, quote = (kept.splitlines() or [""])[-1].removeprefix("- ").partition(": “")
    if not noted or not opened or "” (" in quote or len(quote) < 20:
        return None
    return name, quote.rstrip(" /“”|") + "…"

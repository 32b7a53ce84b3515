"""The embedded worker: which tools to call, and what to conclude from what they returned."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from langchain_core.messages import BaseMessage

from agents.embedded import phrases, reading, tables
from agents.embedded.files import read_clause
from agents.embedded.match import Block, Quote, Wanted, denial_for, quotes_for, read_criterion
from agents.embedded.offered import Offered
from agents.embedded.other import other_calls, result_quotes
from agents.embedded.past import READ, SQL, Call, Past, Toolbox, read_past
from agents.embedded.reason import reasoned
from agents.embedded.requests import WorkerRequest
from agents.embedded.text import concept_words, cut, is_chinese, units

_PASSAGES = 12
_MAX_CALLS = 6  # in one message
_MAX_SUMMARY = 7_500


@dataclass(frozen=True)
class Situation:
    """All that the next move depends on."""

    request: WorkerRequest
    toolbox: Toolbox
    past: Past
    wanted: list[Wanted]
    chinese: bool

    @property
    def left(self) -> int:
        """Tool calls that may still be made."""
        used = max(self.past.answered, len(self.past.calls))
        return 0 if self.past.closed else max(0, min(_MAX_CALLS, self.request.step.tool_budget - used))


def next_move(
    request: WorkerRequest, messages: Sequence[BaseMessage], bound: Mapping[str, Offered]
) -> list[Call] | dict[str, Any]:
    """Return the tool calls to make next, or the Finding as a dict."""
    text = request.objective or request.step.task
    wanted = [read_criterion(c, request.objective) for c in request.step.success_criteria[:20]]
    now = Situation(request, Toolbox.of(bound), read_past(messages), wanted, is_chinese(text))
    files = read_clause(phrases.file_clause(request.step.task))
    if files is not None:
        calls = reading.calls(files, now.past) if now.toolbox.files else []
        fresh = [c for c in calls if c not in now.past.calls][: now.left]
        return fresh or _file_finding(now, reading.lines(files, now.past, request.objective, now.chinese))
    queried = any(SQL in arguments for _, arguments in now.past.calls)
    table = tables.read_task(request.step.task) if now.toolbox.sql or queried else None
    calls = _table_calls(now, table) if table else _search_calls(now) or _tool_calls(now)
    fresh = [c for i, c in enumerate(calls) if c not in now.past.calls and c not in calls[:i]][: now.left]
    return fresh or conclude(now, table)


def _file_finding(now: Situation, lines: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the Finding of a step that lists or reads files: it is met if there was something to list or read."""
    verdicts: list[dict[str, Any]] = [
        {"criterion": c, "met": bool(lines), "reason": _reason(now, w, len(lines), None)}
        for c, w in zip(now.request.step.success_criteria[:20], now.wanted, strict=False)
    ]
    missing = [] if lines else [w.label for w in now.wanted]
    cited = [source for _, source in lines] or [b.id for b in now.past.blocks[:3]]
    return finding([line for line, _ in lines], cited, verdicts, missing, now.chinese)


def _tool_calls(now: Situation) -> list[Call]:
    """Return calls of other tools, and of the search in files, for what nothing has met so far."""
    step = now.request.step
    if now.past.rounds >= 4 or all(_quotes(now, w) for w in now.wanted):
        return []
    answering = any(c in phrases.ANSWERED for c in step.success_criteria)
    text = now.request.objective if answering else f"{step.task.splitlines()[0] if step.task else ''}"
    calls = other_calls(now.toolbox.others, f"{text}", now.left)
    fresh = [c for c in calls if c not in now.past.calls]
    if not fresh and now.toolbox.find and now.toolbox.files:
        return reading.search_calls([u for w in now.wanted for u in w.units], now.past)
    return fresh


def _quotes(now: Situation, wanted: Wanted) -> list[Quote]:
    most = 4 if wanted.aspect and not wanted.entity and wanted.label in _asked(now) else 2
    return quotes_for(wanted, now.past.blocks, most) or result_quotes(wanted, now.past, now.toolbox.others)


def _asked(now: Situation) -> list[str]:
    """Return the labels of criteria that are the objective's question as a whole."""
    pairs = zip(now.request.step.success_criteria, now.wanted, strict=False)
    return [w.label for c, w in pairs if c in phrases.ANSWERED]


def _search_calls(now: Situation) -> list[Call]:
    if now.toolbox.search is None or now.past.rounds >= 2:
        return []
    if now.past.rounds == 0:
        own = phrases.queries_in(now.request.step.task)
        queries = [_query(w, now) for w in now.wanted]
        if own:
            # A task that names queries was made for one thing; the first fills the place of the criterion's own.
            queries = (
                own[: max(1, now.left - 1)]
                if len(now.wanted) <= 1 or len(own) >= len(queries)
                else [*own, *queries]
            )
        return [_search(now, q) for q in _merged(queries, max(1, now.left))]
    unmet = [w for w in now.wanted if not quotes_for(w, now.past.blocks)]
    return [call for w in unmet for call in _another_way(w, now)]


def _search(now: Situation, query: str) -> Call:
    name, parameter = now.toolbox.search or ("", "")
    return name, {parameter: cut(query, 200), **({"k": _PASSAGES} if now.toolbox.counted else {})}


def _query(wanted: Wanted, now: Situation) -> str:
    return f"{wanted.entity} {wanted.aspect} {wanted.scope}".strip() or cut(now.request.step.task, 100)


def _merged(queries: Sequence[str], most: int) -> list[str]:
    """Fit queries into the calls left by joining neighbours."""
    size = -(-len(queries) // most)
    return [" ".join(queries[i : i + size]) for i in range(0, len(queries), size)]


def _another_way(wanted: Wanted, now: Situation) -> list[Call]:
    """Return one more call for a criterion that nothing met: the document that should say it, else other words."""
    if now.toolbox.read and wanted.entity:
        named = [b for b in now.past.blocks if wanted.entity.casefold() in b.path.casefold()]
        for block in named:
            if all(u.key in {k.key for k in units(block.path)} for u in wanted.units):
                return [(now.toolbox.read[0], {now.toolbox.read[1]: block.id})]
    others = other_words(wanted, now.chinese)
    seen = " ".join(block.text[:300] for block in now.past.blocks)
    if not seen or is_chinese(seen) != now.chinese:  # the material may be in the other language
        foreign = [w for u in wanted.units for w in concept_words(u.key, chinese=not now.chinese)]
        others = [*foreign[:3], *others[:2]]
    return [_search(now, f"{wanted.entity} {' '.join(others)}".strip())] if others else []


def other_words(wanted: Wanted, chinese: bool) -> list[str]:
    """Return synonyms of what is wanted, then what else the objective speaks of."""
    said = wanted.aspect.casefold()
    synonyms = [w for u in wanted.units for w in concept_words(u.key, chinese=chinese) if w not in said]
    return [*synonyms[:4], *(u.text for u in wanted.soft[: max(0, 3 - len(synonyms))])]


def _table_calls(now: Situation, table: tables.TableTask | None) -> list[Call]:
    if table is None or now.toolbox.sql is None:
        return []
    asked = units(now.request.objective)
    if now.past.rounds == 0:
        # Two calls stay free: the texts are searched for what the table shows to be frequent.
        room = now.left - 2 if now.toolbox.search and tables.asked_group(table, asked) else now.left
        return [
            (now.toolbox.sql[0], {now.toolbox.sql[1]: sql})
            for sql in tables.queries(table, asked, now.chinese)[: max(1, room)]
        ]
    column = tables.asked_group(table, asked)
    if now.past.rounds > 1 or not now.toolbox.search or not column:
        return []
    return [_search(now, value) for value in _top_values(now, column.name)[: max(1, now.left)][:2]]


def _top_values(now: Situation, column: str) -> list[str]:
    """Return the first cells of the rows that a query by this column gave."""
    for (_, arguments), blocks in now.past.results:
        if blocks and tables.quoted(column) in str(next(iter(arguments.values()), "")):
            return [row.split(" | ")[0] for row in _rows(blocks[0])[1:]]
    return []


def _rows(block: Block) -> list[str]:
    """Return a query result's rows, the header first, cells parted by " | "."""
    rows = [
        r.strip().strip("|").strip()
        for r in block.text.splitlines()
        if r.strip().startswith("|") or " | " in r
    ]
    return [r for r in rows if r and not re.fullmatch(r"[\s|:+-]+", r)]


def conclude(now: Situation, table: tables.TableTask | None) -> dict[str, Any]:
    """Return the Finding that the sources, or the dependencies, allow."""
    if not now.past.results and now.request.dependencies:
        return reasoned(now.request, now.wanted, now.chinese)
    found: list[list[tuple[str, str]]] = []
    denied: list[str] = []
    verdicts: list[dict[str, Any]] = []
    for criterion, wanted in zip(now.request.step.success_criteria[:20], now.wanted, strict=False):
        is_figures = table is not None and phrases.is_table_criterion(criterion)
        lines = _table_lines(now, table) if is_figures and table else _quote_lines(now, wanted)
        denial = None if lines or is_figures else denial_for(wanted, now.past.blocks)
        denied += [denial.block.id] if denial else []
        reason = _reason(now, wanted, len(lines), denial)
        verdicts.append({"criterion": criterion, "met": bool(lines), "reason": reason})
        found.append(lines)
    # The best quote of each criterion first: what reads this may be cut.
    pairs = [pair for row in zip_longest(*found) for pair in row if pair]
    pairs += _passages(now, table) if table else []
    cited = [source for _, source in pairs] + denied
    if not cited:  # what was read and does not say it
        cited = [block.id for block in now.past.blocks[:3]]
    return finding(
        [line for line, _ in pairs],
        cited,
        verdicts,
        [w.label for w, v in zip(now.wanted, verdicts, strict=False) if not v["met"]],
        now.chinese,
    )


def finding(
    lines: Sequence[str],
    cited: Sequence[str],
    verdicts: list[dict[str, Any]],
    missing: Sequence[str],
    chinese: bool,
) -> dict[str, Any]:
    """Return a Finding as a dict, within the schema's bounds."""
    kept: list[str] = []
    for line in dict.fromkeys(lines):
        if sum(map(len, kept)) + len(line) <= _MAX_SUMMARY:
            kept.append(line)
    nothing = "没有找到符合要求的内容。" if chinese else "Nothing was found that meets the criteria."
    return {
        "summary": "\n".join(kept) or nothing,
        "source_ids": list(dict.fromkeys(cited))[:50],
        "criteria": verdicts,
        "missing": [cut(m, 300) for m in missing[:20]],
    }


def _quote_lines(now: Situation, wanted: Wanted) -> list[tuple[str, str]]:
    quotes = _quotes(now, wanted)
    return [(phrases.line(wanted.label, q.text, q.block.locator or q.block.id), q.block.id) for q in quotes]


def _table_lines(now: Situation, table: tables.TableTask) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for (_, arguments), blocks in now.past.results:
        if SQL not in arguments or not blocks:
            continue
        rows = _rows(blocks[0])
        if len(rows) > 1:
            shown = "” / “".join(cut(r, 160) for r in rows[:6])
            sql = str(arguments[SQL])
            single = "总计" if now.chinese else "overall"
            name = rows[0].split(" | ")[0] if len(rows) > 2 else single
            found.append(
                (phrases.line(f"{table.name}: {name}", shown, blocks[0].locator or sql), blocks[0].id)
            )
    return found


def _passages(now: Situation, table: tables.TableTask) -> list[tuple[str, str]]:
    """Return what the texts say about the value that the table shows most often."""
    found: list[tuple[str, str]] = []
    for (_, arguments), blocks in now.past.results:
        if SQL not in arguments:
            value = str(next(iter(arguments.values()), ""))
            wanted = Wanted(f"{table.name}: {value}", "", value, units(value))
            found += [
                (phrases.line(wanted.label, q.text, q.block.locator), q.block.id)
                for q in quotes_for(wanted, blocks, 3)
            ]
    return found


def _reason(now: Situation, wanted: Wanted, count: int, denial: Quote | None) -> str:
    say: Callable[[str, str], str] = lambda en, zh: zh if now.chinese else en  # noqa: E731
    if count:
        return say(f"{count} quoted", f"引用 {count} 处")
    if not now.past.calls:
        return say("no tool could be called", "未能调用工具")
    queries = [
        str(next(iter(arguments.values()), "")) for _, arguments in now.past.calls if READ not in arguments
    ]
    tried = cut("; ".join(queries), 600)
    if denial:
        said = f"“{cut(denial.text, 200)}” ({denial.block.locator})"
        return say(f"searched: {tried}; the text says: {said}", f"已检索：{tried}；资料写道：{said}")
    what = say(" with a figure", "且含数额") if wanted.figures else ""
    return say(f"searched: {tried}; no sentence{what} matches", f"已检索：{tried}；没有匹配{what}的句子")

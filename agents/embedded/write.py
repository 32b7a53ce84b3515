"""The embedded writer: quotes with the numbers of their sources, and what is not known."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.embedded import phrases
from agents.embedded.requests import FindingEntry, WriterRequest
from agents.embedded.text import cut

MAX_CITES = 12
_MAX_BUILD_ON = 8


@dataclass(frozen=True)
class _Statement:
    label: str
    quote: str
    cite: str

    @property
    def text(self) -> str:
        parts = self.quote.split("” / “")
        return f"{' / '.join(map(_shown, parts))} {self.cite}".rstrip()


# Brackets that would read as a citation, and a word that begins with a dot: as code they stay as they are.
_CODE_LIKE = re.compile(r"\[[^\[\]]*[^\d\[\]][^\[\]]*\](?!\()|\s\.(?=\s|\w)")


def _shown(quote: str) -> str:
    return f"`{quote}`" if _CODE_LIKE.search(quote) else f"“{quote}”"


def write(request: WriterRequest) -> str:
    """Return the answer as Markdown; it holds nothing that is not in a summary."""
    chinese = request.language == "zh"
    numbers = {" ".join(s.locator.split()): s.n for s in request.sources if s.locator}
    parts = [_lead(request, chinese)]
    build_on = [f for f in request.findings if _is(f, "conclude")]
    statements: list[_Statement] = []
    others: list[str] = []
    for finding in request.findings:
        lines = phrases.lines_in(finding.summary)
        if finding.reasoning:
            others.append(_reasoning(finding, chinese))
        elif not lines:
            others.append(
                f"**{_plain(finding.step_id)}**: {_plain(finding.summary)} {_cites(finding.cite)}".rstrip()
            )
        elif finding not in build_on and not _is(finding, "compare"):  # that one repeats the others
            statements += [_statement(line, numbers, finding) for line in lines]
    statements = _unsaid(list(dict.fromkeys(statements)), build_on, numbers)
    if build_on:
        parts.append(_build_on(build_on, numbers, chinese))
    parts += _grouped(statements)
    parts += others
    if request.gaps:
        parts.append(_unknown(request.gaps, chinese))
    return "\n\n".join(parts)


def _unsaid(
    statements: list[_Statement], build_on: Sequence[FindingEntry], numbers: dict[str, int]
) -> list[_Statement]:
    """Leave out what the conclusion says already, if that is nearly everything: a short answer needs no second copy."""
    said = {s.quote for f in build_on for s in _rows(f, numbers)[:_MAX_BUILD_ON]}
    rest = [s for s in statements if s.quote not in said]
    return rest if len(rest) * 4 <= len(statements) else statements


def _rows(finding: FindingEntry, numbers: dict[str, int]) -> list[_Statement]:
    return [_statement(line, numbers, finding) for line in phrases.lines_in(finding.summary)]


def _lead(request: WriterRequest, chinese: bool) -> str:
    if not request.findings:
        return "没有任何步骤得到可用的发现。" if chinese else "No step found anything that can be used."
    if chinese:
        return "以下是资料原文的摘录，按用词匹配选出；没有语言模型对其加以判断。"
    return (
        "These are quotations from the material, chosen by their words; no language model has weighed them."
    )


def _is(finding: FindingEntry, step: str) -> bool:
    return re.sub(r"-\d+$", "", finding.step_id) == step and not finding.reasoning


def _statement(line: tuple[str, str, str], numbers: dict[str, int], finding: FindingEntry) -> _Statement:
    label, quote, locator = line
    number = numbers.get(locator)
    cites = f"[{number}]" if number is not None else _cites(finding.cite)
    return _Statement(label, _plain(quote), cites)


def _cites(numbers: Sequence[int]) -> str:
    return "".join(f"[{n}]" for n in list(numbers)[:MAX_CITES])


def _plain(text: str) -> str:
    """Fold a text to one line, and let nothing in it look like a citation or a heading of ours."""
    folded = " ".join(text.split())
    return cut(re.sub(r"\[(\d+)\]", r"(\1)", folded).replace("`", "'"), 1500)


def _build_on(findings: Sequence[FindingEntry], numbers: dict[str, int], chinese: bool) -> str:
    title = "## 结论可依据的要点" if chinese else "## What a conclusion can build on"
    rows = [row for f in findings for row in _rows(f, numbers)]
    return "\n".join([title, "", *(f"- {_plain(s.label)}: {s.text}" for s in rows[:_MAX_BUILD_ON])])


def _grouped(statements: Sequence[_Statement]) -> list[str]:
    """Return sections: by aspect where several things share one, else by the thing itself."""
    split = [(phrases.entity_and_aspect(s.label), s) for s in statements]
    owners: dict[str, set[str]] = {}
    for (entity, aspect), _ in split:
        owners.setdefault(aspect, set()).add(entity)
    sections: dict[str, dict[str, list[_Statement]]] = {}
    for (entity, aspect), statement in split:
        shared = len(owners[aspect]) > 1
        section, row = (aspect, entity) if shared else (entity or aspect, aspect if entity else "")
        sections.setdefault(section, {}).setdefault(row, []).append(statement)
    return [_section(title, rows) for title, rows in sections.items()]


def _section(title: str, rows: dict[str, list[_Statement]]) -> str:
    lines = [f"## {_plain(title)}", ""]
    for name, statements in rows.items():
        head = f"**{_plain(name)}**: " if name else ""
        if head and len(statements) == 1:
            lines.append(f"- {head}{statements[0].text}")
        else:
            lines += [f"- {head.rstrip()}"] if head else []
            lines += [f"{'  ' if head else ''}- {s.text}" for s in statements]
    return "\n".join(lines)


def _reasoning(finding: FindingEntry, chinese: bool) -> str:
    head = "推断（没有出处）" if chinese else "Reasoning, no source"
    return f"**{head}**: {_plain(finding.summary)}"


def _unknown(gaps: Sequence[str], chinese: bool) -> str:
    # What was tried stands in the list of gaps that is added below the answer.
    named = [
        _plain(phrases.label(re.split(r" [(（](?=searched|已检索)", gap)[0])).rstrip("。.")
        for gap in gaps[:20]
    ]
    return f"仍不清楚：{'；'.join(named)}。" if chinese else f"Not known: {'; '.join(named)}."

"""Citations in the answer: code checks each one, numbers them, and removes what no tool returned."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.evidence import Evidence, Gap, Source

_BRACKETS = re.compile(
    r"(?P<image>!?)[\[【](?P<inside>[^\[\]【】\n]{1,300})[\]】](?P<link>\([^()\s]*(?:\s+\"[^\"]*\")?\))?"
)
_URL = re.compile(r"<?\b(?:https?://|www\.)[^\s<>\"'()\[\]{}，。；、）】]+>?")
_LABEL = re.compile(r"(?i)^(?:sources?|refs?|references?|citations?|cite|来源|参考)[\s:：]+(?=\S)")
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)
_INDEXED = re.compile(r"[\w)\]]\Z")
_TOKEN = re.compile(r"\^?[\w][\w.:#/@+-]*")
TEXTS = {
    "en": {
        "sources": "Sources",
        "gaps": "Open gaps",
        "assumptions": "Assumptions",
        "dropped": "Citations removed because no tool returned them",
        "nothing": "Nothing could be established: no step ended with evidence that passed.",
        "reasoning": "reasoning, no source",
        "reasoned": "Reasoning, with no source behind it",
        "finding": "What was found:",
    },
    "zh": {
        "sources": "来源",
        "gaps": "尚未解决的问题",
        "assumptions": "假设",
        "dropped": "已删除的引用（没有任何工具返回过）",
        "nothing": "没有得出任何结论：没有一个步骤留下通过检查的证据。",
        "reasoning": "推断，无来源",
        "reasoned": "仅为推断，无来源支持",
        "finding": "已查明：",
    },
}


@dataclass
class Checked:
    """A text whose citations are all real.

    Attributes:
        text: with citations as [n], n counted from 1 in order of first use.
        sources: the cited ones; sources[n - 1] is [n].
        dropped: what was cited and is unknown.
    """

    text: str
    sources: list[Source] = field(default_factory=list[Source])
    dropped: list[str] = field(default_factory=list[str])


def check_citations(text: str, known: Sequence[Source]) -> Checked:
    """Check each citation of a text against the sources the writer was given.

    Args:
        text: cites [n] (1-based in `known`), source ids, or URLs; also several in one pair of brackets.
        known: the numbered sources.
    """
    checked = Checked(text)
    # Numbers win: they are what the writer was shown, and a tool may have named its sources "1" and "2".
    by_name = {source.id: source for source in known}
    by_name |= {str(n): source for n, source in enumerate(known, start=1)}
    locators = {source.locator: source for source in known}

    def number(source: Source) -> str:
        if source not in checked.sources:
            checked.sources.append(source)
        return f"[{checked.sources.index(source) + 1}]"

    def drop(name: str) -> str:
        if name not in checked.dropped:
            checked.dropped.append(name)
        return ""

    def brackets(match: re.Match[str]) -> str:
        inside, link = match["inside"], (match["link"] or "").strip("()").split(" ")[0]
        if link:
            return f"{inside} {number(locators[link])}" if link in locators else inside + drop(link)
        names = [n.lstrip("^") for n in re.split(r"[,，;；、]\s*|\s+", _LABEL.sub("", inside.strip())) if n]
        if not _is_citation(inside, names, by_name):
            return match[0]
        return "".join(number(by_name[n]) if n in by_name else drop(n) for n in names)

    def url(match: re.Match[str]) -> str:
        address = match[0].strip("<>").rstrip(".,;:!?")
        tail = match[0].strip("<>")[len(address) :]
        return (number(locators[address]) if address in locators else drop(address)) + tail

    def in_code(match: re.Match[str]) -> str:
        return match[0] if _INDEXED.search(match.string[: match.start()]) else brackets(match)

    parts = _CODE.split(text)  # every second part is code, where a[0] is no citation
    parts[::2] = [_tidy(_URL.sub(url, _BRACKETS.sub(brackets, part))) for part in parts[::2]]
    parts[1::2] = [_URL.sub(url, _BRACKETS.sub(in_code, part)) for part in parts[1::2]]
    checked.text = "".join(parts).strip()
    return checked


def _tidy(text: str) -> str:
    text = re.sub(r"[ \t]+([.,;:!?。，；：！？])", r"\1", text)
    return re.sub(r"(?<=\S)[ \t]{2,}(?=\S)", " ", text)


def _is_citation(inside: str, names: Sequence[str], known: dict[str, Source]) -> bool:
    if inside.strip() in ("", "x", "X"):
        return False  # a task list's box
    if any(name in known for name in names):
        return all(_TOKEN.fullmatch(name) for name in names)
    return (len(names) == 1 and bool(_TOKEN.fullmatch(names[0]))) or all(n.isdigit() for n in names)


def plain_answer(findings: Sequence[Evidence], known: Sequence[Source], language: str) -> str:
    """Return an answer made of the findings themselves, for when there is no writer to ask."""
    texts = TEXTS[language]
    numbers = {source.id: n for n, source in enumerate(known, start=1)}
    lines = [texts["finding"]]
    for record in findings:
        cites = "".join(f"[{numbers[i]}]" for i in record.source_ids if i in numbers)
        lines.append(f"- {record.summary} {cites or '(' + texts['reasoning'] + ')'}")
    return "\n".join(lines)


def compose(
    checked: Checked,
    gaps: Sequence[Gap],
    assumptions: Sequence[str],
    reasoned: Sequence[Evidence],
    language: str,
) -> str:
    """Append what the text may not hide: sources, removed citations, reasoning, assumptions, open gaps.

    Code does it, not the model.
    """
    texts = TEXTS[language]
    parts = [checked.text]
    if checked.sources:
        lines = [f"{n}. {_source_line(source)}" for n, source in enumerate(checked.sources, start=1)]
        parts.append(f"## {texts['sources']}\n\n" + "\n".join(lines))
    if checked.dropped:
        parts.append(f"{texts['dropped']}: " + ", ".join(f"`{name[:200]}`" for name in checked.dropped))
    if reasoned:
        lines = [f"- {_one_line(record.summary)[:300]}" for record in reasoned]
        parts.append(f"## {texts['reasoned']}\n\n" + "\n".join(lines))
    if assumptions:
        parts.append(f"## {texts['assumptions']}\n\n" + "\n".join(f"- {a}" for a in assumptions))
    if gaps:
        parts.append(f"## {texts['gaps']}\n\n" + "\n".join(f"- {gap.description}" for gap in gaps))
    return "\n\n".join(part for part in parts if part.strip())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _source_line(source: Source) -> str:
    title, locator = _one_line(source.title), _one_line(source.locator)
    return f"{title} ({locator})" if title and title != locator else locator

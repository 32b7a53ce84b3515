"""Citations in the answer: code checks each one, numbers them, and removes what no tool returned."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.evidence import Source

_BRACKETS = re.compile(
    r"(?P<image>!?)[\[【［〔](?P<inside>[^\[\]【】［］〔〕\n]{1,300})[\]】］〕]"
    r"(?P<link>\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"\n]*\")?\s?\))?"
)
URL = re.compile(r"(?i)<?(?:(?:https?|ftp)://|(?<![A-Za-z0-9_.-])www\.)[^\s<>\"'()\[\]{}，。；、）】]+>?")
_LABEL = re.compile(r"(?i)^(?:sources?|refs?|references?|citations?|cite|来源|参考)[\s:：]+(?=\S)")
# "(source: annual report, page 4)": a citation by name.
_BY_NAME = re.compile(
    r"(?i)[(（](?:sources?|refs?|references?|来源|出处|参考)\s*[:：]\s*(?P<name>[^()（）\n]{1,300})[)）]"
)
_FOOTNOTE = re.compile(r"(?m)^[ \t]*\[\^(?P<mark>[^\]\s]{1,40})\]:[ \t]*(?P<text>.*)$\n?")
# What a reader of Markdown would not see, and what would hide the text that code appends.
_HIDDEN = re.compile(
    r"(?is)<!--.*?-->|<!--|-->"
    r"|</?(?:details|summary|style|script|textarea|template|title|noscript|iframe|svg|select)\b[^>\n]*>?"
)
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)
# A citation that has been checked: characters of no meaning, so that it is not read again.
_OPEN, _CLOSE = "\ue000", "\ue001"
_NO_MARKS = str.maketrans("", "", _OPEN + _CLOSE)
_MARKED = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_NUMBER = re.compile(r"\[(\d{1,9})\]")
_NUMBER_IN_CODE = re.compile(r"(?<![\w.)\]])\[(\d{1,9})\]")
NO_BRACKETS = str.maketrans("[]【】［］〔〕", "()" * 4)
MAX_ROUNDS = 5
_INDEXED = re.compile(r"[\w.)\]]\Z")
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
_OWN_TITLES = "|".join(
    re.escape(title)
    for title in (
        "References",
        "参考文献",
        "参考来源",
        *(t[key] for t in TEXTS.values() for key in ("sources", "gaps")),
    )
)
_OWN_LISTS = re.compile(
    rf"(?ims)^[ \t]*(?:#{{1,6}}[ \t]*|\*\*)(?:{_OWN_TITLES})[ \t:：]*(?:\*\*)?[ \t#:：]*$.*?(?=^[ \t]*#{{1,6}}[ \t]|\Z)"
)


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

    def number(self, source: Source) -> int:
        """Return the number by which a source is cited; one that is not cited yet gets the next."""
        ids = [cited.id for cited in self.sources]
        if source.id not in ids:
            self.sources.append(source)
            ids.append(source.id)
        return ids.index(source.id) + 1


def renumber(checked: Checked, pieces: Sequence[str]) -> list[str]:
    """Return the pieces of a text with its citations numbered anew, in order of first use; drop sources without any."""
    cited: dict[int, int] = {}

    def replaced(match: re.Match[str]) -> str:
        number = int(match[1])
        if not 0 < number <= len(checked.sources):
            return match[0]
        return f"[{cited.setdefault(number, len(cited) + 1)}]"

    parts = _CODE.split(_CLOSE.join(pieces))
    parts[::2] = [_NUMBER.sub(replaced, part) for part in parts[::2]]
    parts[1::2] = [_NUMBER_IN_CODE.sub(replaced, part) for part in parts[1::2]]
    checked.sources = [checked.sources[number - 1] for number in cited]
    return "".join(parts).split(_CLOSE)


def check_citations(text: str, known: Sequence[Source]) -> Checked:
    """Check each citation of a text against the sources the writer was given.

    Args:
        text: cites [n] (1-based in `known`), source ids, or URLs; also several in one pair of brackets.
        known: the numbered sources.
    """
    check = _Check(known)
    text = check.footnotes(without_own_lists(text).translate(_NO_MARKS))
    parts = _CODE.split(text)  # every second part is code, where a[0] is no citation
    parts[::2] = [_tidy(check.text(part)) for part in parts[::2]]
    parts[1::2] = [check.text(part, code=True) for part in parts[1::2]]
    return Checked(_MARKED.sub(r"[\1]", "".join(parts)).strip(), check.sources, list(check.dropped))


def without_own_lists(text: str) -> str:
    """Return a text without sections that pretend to be the lists of sources and gaps, which code appends."""
    return _OWN_LISTS.sub("", text)


class _Check:
    """The citations of one text, while they are read.

    Attributes:
        sources: those cited, in order of first use; dropped: what was cited and is unknown.
    """

    def __init__(self, known: Sequence[Source]) -> None:
        # Numbers win: they are what the writer was shown, and a tool may have named its sources "1" and "2".
        self._names = {source.id: source for source in known}
        self._names |= {str(n): source for n, source in enumerate(known, start=1)}
        self._locators = {source.locator: source for source in known if source.locator.strip()}
        self._titles = {source.title: source for source in known if source.title.strip()}
        self._numbers: dict[str, int] = {}
        self.sources: list[Source] = []
        self.dropped: dict[str, None] = {}

    def text(self, text: str, *, code: bool = False) -> str:
        """Return a text with every citation as a mark, and without what is unknown.

        What is removed may leave a citation behind ("[[s9]9]"), so it is read until nothing is found any more.
        """
        brackets = self._in_code if code else self._brackets
        text = text if code else _BY_NAME.sub(self._by_name, _HIDDEN.sub("", text))
        for _ in range(MAX_ROUNDS):
            before = text
            text = URL.sub(self._url, _BRACKETS.sub(brackets, text))
            if text == before:
                return text
        return text.translate(NO_BRACKETS)

    def footnotes(self, text: str) -> str:
        """Return a text without footnotes of its own: what they name is cited where they are called, or dropped."""
        notes = {match["mark"]: match["text"] for match in _FOOTNOTE.finditer(text)}
        text = _FOOTNOTE.sub("", text)
        for mark, note in notes.items():
            text = text.replace(f"[^{mark}]", self._named(note))
        return text

    def _named(self, name: str) -> str:
        """Return the mark of the source that a name means: its id, its number, its locator or its title."""
        wanted = name.strip(' \t\n.。`"“”')
        if not wanted:
            return ""
        known = self._names.get(wanted) or self._locators.get(wanted) or self._titles.get(wanted)
        return self._mark(known) if known else self._drop(name.strip())

    def _by_name(self, match: re.Match[str]) -> str:
        name = match["name"]
        return match[0] if _BRACKETS.search(name) or _MARKED.search(name) else self._named(name)

    def _mark(self, source: Source) -> str:
        number = self._numbers.setdefault(source.id, len(self._numbers) + 1)
        if number > len(self.sources):
            self.sources.append(source)
        return f"{_OPEN}{number}{_CLOSE}"

    def _drop(self, name: str) -> str:
        self.dropped[name] = None
        return ""

    def _brackets(self, match: re.Match[str]) -> str:
        inside, link = match["inside"], (match["link"] or "")[1:-1].split(" ")[0]
        if link:
            known = self._locators.get(link)
            return f"{inside} {self._mark(known)}" if known else inside + self._drop(link)
        names = [n.lstrip("^") for n in re.split(r"[,，;；、]\s*|\s+", _LABEL.sub("", inside.strip())) if n]
        if not _is_citation(inside, names, self._names):
            return match[0]
        return "".join(self._mark(self._names[n]) if n in self._names else self._drop(n) for n in names)

    def _in_code(self, match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 1) : match.start()]
        return match[0] if _INDEXED.search(before) else self._brackets(match)

    def _url(self, match: re.Match[str]) -> str:
        whole = match[0].strip("<>")
        address = whole.rstrip(".,;:!?")
        known = self._locators.get(address)
        return (self._mark(known) if known else self._drop(address)) + whole[len(address) :]


def _tidy(text: str) -> str:
    text = re.sub(r"(?<![ \t])[ \t]+([.,;:!?。，；：！？])", r"\1", text)
    return re.sub(r"(?<=\S)[ \t]{2,}(?=\S)", " ", text)


def _is_citation(inside: str, names: Sequence[str], known: dict[str, Source]) -> bool:
    if inside.strip() in ("", "x", "X"):
        return False  # a task list's box
    if any(name in known for name in names):
        return all(_TOKEN.fullmatch(name) for name in names)
    return (len(names) == 1 and bool(_TOKEN.fullmatch(names[0]))) or all(n.isdigit() for n in names)

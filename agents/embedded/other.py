"""Tools that the embedded worker knows only by what they say of themselves: which to call, with what, what to quote."""

import re
from collections.abc import Iterator, Sequence

from agents.embedded.match import ENOUGH, Block, Quote, Wanted
from agents.embedded.offered import Offered, Parameter
from agents.embedded.past import QUERY_NAMES, Call, Past
from agents.embedded.text import Profile, coverage, cut, is_chinese, names, phrase, units
from agents.embedded.words import NON_ANSWER

MAX_VALUES = 3
_QUOTED = re.compile(r"[\"“「『`]([^\"”」』`\n]{1,80})[\"”」』`]")
_CODE = re.compile(r"(?<![\w-])[\w-]*\d[\w.-]*\w|(?<![\w-])\d(?![\w-])")
_PROPER = re.compile(r"(?<!^)(?<![.!?。！？] )\b[A-Z]\w+(?: [A-Z]\w+)*")
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-])")
_NOTHING = re.compile(
    r"(?i)^\W*(?:no|not|none|nothing|null|unknown|error)\b|没有|未找到|不存在|无结果|has nothing on"
)
# A server's pattern is tried on short values only, and not if it repeats groups: it could take for ever.
_MAX_PATTERN = 80


def other_calls(tools: Sequence[Offered], text: str, left: int) -> list[Call]:
    """Return calls of the tools that share content words with a text, the nearest first.

    Args:
        tools: that may be called unasked.
        text: what is wanted.
        left: how many calls may be made.
    """
    wanted = units(text)
    shares = {t.name: coverage(wanted, (Profile(t.said), 1.0)) for t in tools}
    near = sorted((t for t in tools if shares[t.name] > 0), key=lambda t: (-shares[t.name], t.name))
    return [(tool.name, arguments) for tool in near for arguments in _arguments(tool, text)][: max(0, left)]


def _arguments(tool: Offered, text: str) -> Iterator[dict[str, str | int | float]]:
    """Yield the arguments of each call; none if a parameter that must be given has no value in the text."""
    required = [p for p in tool.parameters if p.required]
    if not required:
        queries = [p for p in tool.parameters if p.name in QUERY_NAMES][:1]
        yield {p.name: value for p in queries for value in _values(p, tool, text)[:1]}
        return
    options = {p.name: _values(p, tool, text) for p in required}
    several = max((name for name in options), key=lambda name: len(options[name]))
    for value in options[several][:MAX_VALUES]:
        if all(options.values()):
            yield {name: value if name == several else found[0] for name, found in options.items()}


def _values(parameter: Parameter, tool: Offered, text: str) -> list[str | int | float]:
    if parameter.choices:
        return [c for c in parameter.choices if names(c, text)]
    if parameter.kind in ("integer", "number"):
        numbers = _NUMBER.findall(text)
        return [
            float(n) if "." in n else int(n[:15])
            for n in numbers
            if "." not in n or parameter.kind == "number"
        ]
    if parameter.kind not in ("string", ""):
        return []
    if parameter.name in QUERY_NAMES:
        return [cut(phrase(text, most=200) or text.strip(), 200)]
    return [v for v in entities(text, tool.said) if _fits(parameter.pattern, v)]


def _fits(pattern: str, value: str) -> bool:
    if not pattern:
        return True
    if len(pattern) > _MAX_PATTERN or "(" in pattern or len(value) > _MAX_PATTERN:
        return False
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return False


def entities(text: str, besides: str = "") -> list[str]:
    """Return the names and values of a text: what is quoted, codes and dates, proper names; else its rarer words.

    Args:
        text: a task.
        besides: words of the tool itself, which are no value of its parameters.
    """
    text = text[:1000]
    found = [m.strip() for pattern in (_QUOTED, _CODE, _PROPER) for m in pattern.findall(text)]
    if not found or is_chinese(text):
        profile = Profile(besides)
        found += [u.text for u in units(text) if profile.has(u) == 0 and u.text not in found]
    return list(dict.fromkeys(f for f in found if f))[:MAX_VALUES]


def result_quotes(wanted: Wanted, past: Past, tools: Sequence[Offered]) -> list[Quote]:
    """Return results that answer because of what was called: a tool about it, with a value of the task.

    A search's words are the question itself, and make nothing of what it finds an answer.
    """
    said = {t.name: t.said for t in tools}
    found: list[Quote] = []
    for (name, arguments), blocks in past.results:
        if name not in said or not blocks or any(a in QUERY_NAMES for a in arguments):
            continue
        about = Profile(f"{said[name]} {' '.join(map(str, arguments.values()))}")
        share = coverage(wanted.units, (about, 1.0))
        found += [Quote(cut(_folded(b)), b, share) for b in blocks if share >= ENOUGH and _says(b)]
    return found[:4]


def _folded(block: Block) -> str:
    return " ".join(block.text.split()).replace("“", "'").replace("”", "'")


def _says(block: Block) -> bool:
    text = block.text.strip()
    return bool(text) and not _NOTHING.search(text[:200]) and not NON_ANSWER.search(text[:200])

"""Names that a sentence states: what no question gave it, and a source must have. Pure code."""

import re

# A capital letter within a sentence: what begins one, a cell of a table or an item says nothing of names.
_NAME = re.compile(r"(?<=[a-z0-9,，] )(?:[A-Z][a-z]{2,}(?:[ -](?=[A-Z][a-z]))?)+")
_COMMON = (
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday english chinese internet section table figure source sources step"
)
_NO_NAMES = frozenset(_COMMON.split())
# Chinese has no capitals: what stands behind "is", "in" or "from" at the end of a clause may be a name.
_VALUE = re.compile(
    r"(?:设在|设于|位于|来自|存放在|从|[为是在叫於于])(?!每)([\u3400-\u9fff]{2,6}?)(?=运营|[，。；、！？\s）)]|$)"
)
_JUDGED = re.compile(
    "建议|推荐|应该|应当|可以|可能|最|较|更|因此|所以|需要|优先|适合|不|没|未|无|已|关键|重要|主要|说明|表明"
)
_JOINTS = re.compile("设在|设于|位于|[为是在有至达于从由被把的和与及]")


def names_stated(said: str, asked: str) -> list[str]:
    """Return the names in a sentence that its question does not have.

    A Chinese sentence that judges ("最适合…") states none: its last words are an opinion more often than a name.
    """
    known = asked.casefold()
    latin = [n for n in _NAME.findall(said) if n.casefold() not in known and n.casefold() not in _NO_NAMES]
    values = [] if _JUDGED.search(said) else [v for v in _VALUE.findall(said) if v not in known]
    return list(dict.fromkeys([*latin, *values]))


def parts_of(name: str) -> list[str]:
    """Return the parts of which a source must have one: words, or pairs of Chinese characters; casefolded."""
    if name.isascii():
        return name.casefold().split()
    return [part[i : i + 2] for part in _JOINTS.split(name) for i in range(len(part) - 1)]

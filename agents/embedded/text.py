"""How the embedded model reads words and meanings. Pure functions over text, the same in English and Chinese."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agents.embedded.words import CLASS_WORDS, CONCEPTS, EDGE_ZH, STOP_EN, STOP_ZH

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORDS = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}]+")
_IS_HAN = re.compile(rf"[{_HAN}]")
_STOP_ZH = re.compile("|".join(map(re.escape, STOP_ZH)))
_CLASS_ZH = re.compile("|".join(sorted((w for w in CLASS_WORDS if not w.isascii()), key=len, reverse=True)))
MAX_QUOTE = 320


def is_chinese(text: str) -> bool:
    """Return whether a text is to be answered in Chinese: at least a fifth of its letters are."""
    head = text[:4000]
    han = len(_IS_HAN.findall(head))
    return han > 0 and han * 5 >= sum(c.isalpha() for c in head)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return a rough English stem: plural, -ing and -ed off, so that prices, priced and pricing are one."""
    word = word.casefold()
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in (
        ("sses", "ss"),
        ("ies", "y"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("xes", "x"),
        ("s", ""),
    ):
        if word.endswith(ending) and not (ending == "s" and word.endswith(("ss", "us", "is"))):
            word = word[: -len(ending)] + instead
            break
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


_CONCEPT_OF = {stem(word): group[0] for group in CONCEPTS for word in group if not _IS_HAN.search(word)}
_CONCEPT_OF_HAN = {word: group[0] for group in CONCEPTS for word in group if _IS_HAN.search(word)}
_HAN_CONCEPT = re.compile("|".join(sorted(_CONCEPT_OF_HAN, key=len, reverse=True)))
_WORDS_OF = {group[0]: group for group in CONCEPTS}
_STOP_STEMS = frozenset(STOP_EN)


def concept_words(key: str, *, chinese: bool) -> list[str]:
    """Return the words of one meaning in one language; none for a word that has no known synonyms."""
    return [w for w in _WORDS_OF.get(key, ()) if bool(_IS_HAN.search(w)) == chinese]


def words(text: str) -> list[str]:
    """Return the words of a text, casefolded; a run of Chinese is one word."""
    return [w.casefold() for w in _WORDS.findall(text)]


@dataclass(frozen=True)
class Unit:
    """One content word or phrase.

    Attributes:
        key: its meaning: a concept's first word, an English stem, or a run of Chinese.
        text: as written.
    """

    key: str
    text: str


def units(text: str, *, drop: Iterable[str] = (), keep_classes: bool = True, most: int = 12) -> list[Unit]:
    """Return the content of a text: stop words out, synonyms one, each meaning once.

    Args:
        text: any text.
        drop: names whose words are left out.
        keep_classes: whether words such as "vendor" count.
        most: how many to return.
    """
    found: dict[str, Unit] = {}
    for unit in _content(text, drop, keep_classes):
        found.setdefault(unit.key, unit)
        if len(found) >= most:
            break
    return list(found.values())


def phrase(text: str, *, drop: Iterable[str] = (), keep_classes: bool = True, most: int = 60) -> str:
    """Return the content of a text as a short phrase: its words as written, stop words out."""
    said = ""
    for unit in _content(text, drop, keep_classes):
        joint = "" if not said or (_IS_HAN.match(unit.text) and _IS_HAN.match(said[-1])) else " "
        if len(said) + len(joint) + len(unit.text) > most:
            break
        said += joint + unit.text
    return said


def _content(text: str, drop: Iterable[str], keep_classes: bool) -> Iterator[Unit]:
    gone = {w for name in drop for w in words(name)}
    for word in _WORDS.findall(text[:20_000]):
        low = word.casefold()
        if low in gone or (not keep_classes and low in CLASS_WORDS):
            continue
        if not _IS_HAN.match(word):
            yield from _latin_units(word)
            continue
        # Chinese writes no spaces: a name may stand within a run ("比较朔桐").
        for part in _without(word, gone):
            yield from _han_units(part, keep_classes)


def _without(run: str, names: Iterable[str]) -> list[str]:
    han = sorted((n for n in names if _IS_HAN.match(n)), key=len, reverse=True)
    return re.split("|".join(map(re.escape, han)), run) if han else [run]


def _latin_units(word: str) -> list[Unit]:
    low = word.casefold()
    if low in _STOP_STEMS or (len(low) == 1 and low.isascii()):
        return []
    root = stem(low)
    return [Unit(_CONCEPT_OF.get(root, root), word)]


def _han_units(run: str, keep_classes: bool) -> list[Unit]:
    found: list[Unit] = []
    at = 0
    for match in _HAN_CONCEPT.finditer(run):
        found += _han_rest(run[at : match.start()], keep_classes)
        found.append(Unit(_CONCEPT_OF_HAN[match.group()], match.group()))
        at = match.end()
    return found + _han_rest(run[at:], keep_classes)


def _han_rest(run: str, keep_classes: bool) -> list[Unit]:
    parts = _STOP_ZH.split(run)
    if not keep_classes:
        parts = [piece for part in parts for piece in _CLASS_ZH.split(part)]
    trimmed = [p.lstrip(EDGE_ZH[0]).rstrip(EDGE_ZH[1]) if len(p) != 2 else p for p in parts]
    return [Unit(p, p) for p in trimmed if len(p) > 1]


class Profile:
    """The meanings of one text, to be asked about units."""

    def __init__(self, text: str) -> None:
        self.text = text[:20_000].casefold()
        roots = {stem(w) for w in _WORDS.findall(self.text) if not _IS_HAN.match(w)}
        self._keys = roots | {_CONCEPT_OF[r] for r in roots if r in _CONCEPT_OF}
        self._keys |= {_CONCEPT_OF_HAN[m] for m in _HAN_CONCEPT.findall(self.text)}

    def has(self, unit: Unit) -> float:
        """Return how far the text has a unit, 0 to 1; a Chinese run counts by its pairs of characters."""
        if unit.key in self._keys:
            return 1.0
        if not _IS_HAN.search(unit.key):
            return 0.0
        run = unit.key
        pairs = {run[i : i + 2] for i in range(len(run) - 1)} or {run}
        share = sum(pair in self.text for pair in pairs) / len(pairs)
        return share if share >= 0.5 else 0.0


@lru_cache(maxsize=8192)
def profile_of(text: str) -> Profile:
    """Return the profile of a text that is asked about more than once, as sentences are."""
    return Profile(text)


def coverage(wanted: Sequence[Unit], *texts: tuple[Profile, float]) -> float:
    """Return how much of what is wanted the texts have, 0 to 1, each text with its weight."""
    if not wanted:
        return 0.0
    return sum(max(profile.has(unit) * weight for profile, weight in texts) for unit in wanted) / len(wanted)


def names(name: str, text: str) -> bool:
    """Return whether a text says a name: all its words, one after the other."""
    wanted = words(name)
    if not wanted:
        return False
    if any(_IS_HAN.search(w) for w in wanted):
        return "".join(wanted) in "".join(words(text))
    found = words(text)
    return any(found[i : i + len(wanted)] == wanted for i in range(len(found) - len(wanted) + 1))


def cut(text: str, most: int = MAX_QUOTE) -> str:
    """Shorten a text at a word where there is one, and show it."""
    if len(text) <= most:
        return text
    head = text[: most - 1]
    space = head.rfind(" ")
    return (head[:space] if space > most // 2 else head).rstrip() + "…"

"""The names of the things that sources are about, read from where the sources stand: folders, files, titles, groups."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agents.embedded.text import words
from agents.passages import Passages

_HAN = re.compile(r"[\u3400-\u9fff]")
_HEAD = re.compile(r"[:：›|–—]| - ")
_URL = re.compile(r"(?i)^[a-z][a-z0-9+.-]*://")
NO_ENTITIES = frozenset(
    ["docs", "doc", "src", "data", "files", "readme", "index", "notes", "test", "tests", "examples", "pages"]
)


class Entities:
    """Names, to be found in a text. A name counts if it is the name of one place among several.

    What stands in the labels of several folders ("pricing") is a topic; so is a word that a text writes in small letters.
    """

    def __init__(self, sources: Sequence[Passages], groups: Iterable[str] = ()) -> None:
        candidates: dict[str, set[str]] = {_key(group): {_key(group)} for group in groups}
        homes: set[str] = set(candidates)
        for source in sources:
            home = _home(source)
            homes.add(home)
            for name in _named_by(source):
                candidates.setdefault(_key(name), set()).add(home)
        several = len(homes) > 1
        self._names = {
            key: _pattern(key)
            for key, at in candidates.items()
            if several and len(at) == 1 and _is_name(key, sources)
        }

    def named_in(self, text: str) -> frozenset[str]:
        """Return the names that stand in a text."""
        said = text.casefold()
        # A pattern looks at each place of a text: its first word, as a whole, turns most texts away sooner.
        return frozenset(
            name
            for name, pattern in self._names.items()
            if name.partition(" ")[0] in said and pattern.search(said)
        )


def group_names(catalogue: Mapping[str, Any]) -> list[str]:
    """Return the names of a catalogue's groups of documents, see ToolRegistry.catalogue."""
    documents = cast("dict[str, list[dict[str, str]]]", catalogue.get("documents") or {})
    return [group["name"] for group in documents.get("groups", [])]


def _path(source: Passages) -> str:
    return "" if _URL.match(source.source.locator) else source.source.locator.partition("#")[0]


def _home(source: Passages) -> str:
    path = _path(source)
    folder, _, file = path.rpartition("/")
    return _key(folder.split("/")[-1] if folder else file.rpartition(".")[0] or source.source.locator)


def _named_by(source: Passages) -> list[str]:
    path = _path(source)
    folders = path.split("/")[:-1]
    stem = path.rpartition("/")[2].rpartition(".")[0]
    return [*folders, stem, _HEAD.split(source.source.title)[0]]


def _key(name: str) -> str:
    return " ".join(words(name))


def _is_name(key: str, sources: Sequence[Passages]) -> bool:
    if _HAN.search(key):
        return 2 <= len(key) <= 12
    if len(key) < 3 or len(key) > 60 or key in NO_ENTITIES or not any(c.isalpha() for c in key):
        return False
    small = re.compile(rf"(?<![\w./-]){re.escape(key)}(?![\w./-])")
    texts = (source.source.text for source in sources)
    return not any(key in text and small.search(text) for text in texts)


def _pattern(key: str) -> re.Pattern[str]:
    body = r"[\W_]*".join(map(re.escape, key.split()))
    return re.compile(body if _HAN.search(key) else rf"(?<![^\W_]){body}(?![^\W_])")

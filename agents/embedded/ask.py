"""What an objective asks for, and which things of the material it asks it about."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agents.embedded.requests import DocumentCatalogue, DocumentEntry, DocumentGroup
from agents.embedded.text import Profile, Unit, coverage, is_chinese, names, phrase, units, words
from agents.embedded.words import (
    BROAD,
    CONCLUDE_VERBS,
    CONCLUDE_VERBS_ZH,
    COUNTS,
    FIGURES,
    GATHER_VERBS,
    GATHER_VERBS_ZH,
    SCOPE_VERBS,
    SCOPE_VERBS_ZH,
    SET_WORDS,
)

MAX_ASPECTS = 6
MAX_OBJECTIVE = 4_000  # characters that are parsed; what is asked for stands at the beginning
_CLAUSES = re.compile(
    r"[,;:!?\n]+|\.(?=\s|$)|[，；：。！？、]+|\b(?:and|then|as well as)\b"
    r"|以及|并且|然后|并(?=[提给说找列做写])|(?<![参合饱温平])(?:和|与)(?!平)"
)


@dataclass(frozen=True)
class Ask:
    """An objective, taken apart.

    Attributes:
        aspects: phrases to be found in the material.
        scope: what they are about, where the objective says so ("analyse X; find the causes").
        conclude: what is to be decided or proposed on their basis.
        broad: whether it wants more than the aspects it spells out.
        chinese: the language to answer in.
    """

    aspects: list[str]
    scope: str
    conclude: str
    broad: bool
    chinese: bool


def read_objective(objective: str, *, drop: Sequence[str] = (), keep_classes: bool = True) -> Ask:
    """Take an objective apart.

    Args:
        objective: the person's words.
        drop: names of the things compared, which are no aspects.
        keep_classes: whether words such as "vendor" are content.
    """
    found: dict[str, list[str]] = {"gather": [], "scope": [], "conclude": []}
    mode = "gather"
    for clause in _CLAUSES.split(objective[:MAX_OBJECTIVE]):
        mode = _mode(clause) or mode
        said = phrase(clause, drop=drop, keep_classes=keep_classes)
        if not units(said):
            continue
        # Advice is nothing that the material holds, even where the verb is "give".
        ends = units(said, most=30)
        if mode == "conclude" or "improve" in (ends[0].key, ends[-1].key):
            found["conclude"].append(" ".join(clause.split()))
        else:
            found[mode].append(said)
    aspects = _distinct(found["gather"]) or _distinct(found["scope"])
    return Ask(
        aspects=aspects[:MAX_ASPECTS],
        scope=_joined(found["scope"]) if found["gather"] else "",
        conclude=_joined(found["conclude"]),
        broad=_says_any(objective, BROAD),
        chinese=is_chinese(objective),
    )


def _mode(clause: str) -> str | None:
    """Return what the clause's first verb asks for; None if it has none."""
    verbs = {
        "scope": (SCOPE_VERBS, SCOPE_VERBS_ZH),
        "conclude": (CONCLUDE_VERBS, CONCLUDE_VERBS_ZH),
        "gather": (GATHER_VERBS, GATHER_VERBS_ZH),
    }
    spoken = words(clause)
    first: list[tuple[int, int, str]] = []
    for mode, (latin, han) in verbs.items():
        first += [(spoken.index(v), 0, mode) for v in latin if v in spoken]
        first += [(clause.find(v), -len(v), mode) for v in han if v in clause]
    return min(first)[2] if first else None


def _distinct(phrases: Iterable[str]) -> list[str]:
    """Keep the first of phrases that mean the same."""
    kept: dict[frozenset[str], str] = {}
    for said in phrases:
        key = frozenset(u.key for u in units(said))
        if key:
            kept.setdefault(key, said)
    return list(kept.values())


def _joined(phrases: Sequence[str]) -> str:
    return (", " if not is_chinese("".join(phrases)) else "、").join(_distinct(phrases))[:120]


def _says_any(text: str, candidates: Iterable[str]) -> bool:
    return any(names(c, text) if c.isascii() else c in text for c in candidates)


@dataclass(frozen=True)
class Subject:
    """What an objective is carried out on.

    Attributes:
        entities: names of the things compared; empty if there are none.
        aspects: what is to be found, for each entity.
        ask: the rest of the objective.
    """

    entities: list[str]
    aspects: list[str]
    ask: Ask


def read_subject(objective: str, catalogue: DocumentCatalogue) -> Subject:
    """Match an objective with the catalogue: the things it is about, and what is to be found of each."""
    named = [g for g in catalogue.groups if words(g.name)]
    kinds = recurring_kinds(named)
    chosen = _chosen_groups(objective, named, bool(kinds))
    if chosen:
        ask = read_objective(objective, drop=chosen, keep_classes=False)
        return Subject(chosen, _with_kinds(ask, kinds), ask)
    listed = [d for g in catalogue.groups for d in g.documents]
    documents = _named_documents(objective, listed) or _counted_documents(objective, listed)
    if len(documents) >= 2 and _says_any(objective, SET_WORDS):
        ask = read_objective(objective, drop=documents, keep_classes=False)
        aspects = _with_kinds(ask, [])
        classes = _class_words(documents, listed)
        rest = [said for said in (_behind(aspect, classes) for aspect in aspects) if said]
        return Subject(documents, rest or aspects, ask)
    ask = read_objective(objective)
    return Subject([], ask.aspects or [phrase(objective) or ask.conclude], ask)


def _chosen_groups(objective: str, named: Sequence[DocumentGroup], parallel: bool) -> list[str]:
    """Return the groups that are compared: those the objective names, or all, if they are alike or it wants each."""
    if len(named) < 2:
        return []
    spoken = [g.name for g in named if names(g.name, objective) or _short_name_said(g, named, objective)]
    if spoken:
        return spoken
    # Folders that merely sort a manual ("library", "howto") are no things to compare.
    return [g.name for g in named] if parallel or _says_any(objective, SET_WORDS) else []


def _short_name_said(group: DocumentGroup, named: Sequence[DocumentGroup], objective: str) -> bool:
    first = words(group.name)[0]
    alone = sum(words(g.name)[0] == first for g in named) == 1
    return alone and len(first) > 3 and len(words(group.name)) > 1 and names(first, objective)


def recurring_kinds(named: Sequence[DocumentGroup]) -> list[str]:
    """Return the kinds of document that most groups have, by file name; by heading if that shows fewer than two."""
    by_file = _recurring([[_kind(_stem(d.path), g.name) for d in g.documents] for g in named])
    if len(by_file) >= 2:
        return by_file
    headings = [[_kind(h, g.name) for d in g.documents for h in d.headings if len(h) < 60] for g in named]
    return [*by_file, *(h for h in _recurring(headings) if h not in by_file)] if len(named) > 1 else by_file


def _recurring(kinds_of_groups: Sequence[Sequence[str]]) -> list[str]:
    labels: dict[frozenset[str], str] = {}
    counts: Counter[frozenset[str]] = Counter()
    for kinds in kinds_of_groups:
        keys = {frozenset(u.key for u in units(kind)): kind for kind in kinds if kind}
        counts.update(key for key in keys if key)
        for key, kind in keys.items():
            labels.setdefault(key, kind)
    enough = max(2, (len(kinds_of_groups) + 1) // 2)
    return [labels[key] for key, count in counts.most_common() if count >= enough][:MAX_ASPECTS]


def _kind(name: str, group: str) -> str:
    """Return what a file name or heading says beyond its group and its version."""
    return phrase(" ".join(w for w in words(name) if not any(c.isdigit() for c in w)), drop=[group], most=40)


def _stem(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).stem


def _with_kinds(ask: Ask, kinds: Sequence[str]) -> list[str]:
    """Return what is asked for; and the kinds of document there are, if that is nothing or the objective is broad."""
    if ask.aspects and not ask.broad:
        return ask.aspects
    taken = {u.key for aspect in ask.aspects for u in units(aspect)}
    rest = [kind for kind in kinds if not taken & {u.key for u in units(kind)}]
    return [*ask.aspects, *rest][:MAX_ASPECTS] or [ask.scope or ask.conclude or ""]


def _named_documents(objective: str, documents: Sequence[DocumentEntry]) -> list[str]:
    return list(
        dict.fromkeys(
            _stem(d.path) for d in documents if len(_stem(d.path)) > 2 and names(_stem(d.path), objective)
        )
    )


def _class_words(chosen: Sequence[str], documents: Sequence[DocumentEntry]) -> set[str]:
    """Return what most titles of the chosen documents say: "lamp", where five lamps are compared, is no aspect of them."""
    said = Counter(u for d in documents if _stem(d.path) in chosen for u in {u.key for u in units(d.title)})
    return {word for word, count in said.items() if count > len(chosen) / 2}


def _behind(aspect: str, classes: set[str]) -> str:
    """Return what stands behind the name of the class: "desk lamps price" asks for the price."""
    said = aspect.split()
    at = [n for n, word in enumerate(said) if classes & {u.key for u in units(word)}]
    return " ".join(said[at[-1] + 1 :]) if at else aspect


def _counted_documents(objective: str, documents: Sequence[DocumentEntry]) -> list[str]:
    """Return all documents if the objective says how many things it means, and there are so many: "the five lamps"."""
    said = {int(n) for n in re.findall(r"(?<![\d.,])\d{1,2}(?![\d.,%])", objective)}
    said |= {COUNTS[word] for word in words(objective) if word in COUNTS}
    said |= {COUNTS[match] for match in re.findall(r"([两三四五六七八九十])[个家款种份只台张篇]", objective)}
    return [_stem(d.path) for d in documents] if len(documents) in said else []


def likely_documents(
    wanted: Sequence[Unit], catalogue: DocumentCatalogue, *, least: float = 0.5, most: int = 3
) -> list[str]:
    """Return titles of the documents whose title or headings say most of what is wanted, best first."""
    scored: list[tuple[float, str]] = []
    for document in (d for g in catalogue.groups for d in g.documents):
        title, rest = Profile(f"{document.title} {document.path}"), Profile(" ".join(document.headings))
        score = coverage(wanted, (title, 1.0), (rest, 0.8))
        if score >= least:
            scored.append((score, document.title or document.path))
    ranked = [title for _, title in sorted(scored, key=lambda pair: -pair[0])]
    return list(dict.fromkeys(ranked))[:most]


def is_figure(aspect: str) -> bool:
    """Return whether an answer to an aspect must show a figure."""
    return any(u.key in FIGURES for u in units(aspect))

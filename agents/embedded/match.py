"""Which sentences of which sources answer a criterion, in the embedded model. Pure functions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from agents.embedded import phrases
from agents.embedded.sentences import Sentence, sentences
from agents.embedded.text import Profile, Unit, coverage, cut, names, phrase, profile_of, units, words
from agents.embedded.words import FIGURES, NON_ANSWER, TARIFF, TROUBLE

_RATE = re.compile(r"(?i)\b(?:per|a) (?:\w+ )?(?:user|seat|month|year)|/|每|\|")
ENOUGH = 0.6  # share of a criterion's content that a sentence with its headings must have
_HEAD = re.compile(r"\[([^\]\s]{1,200})\](?: (.*))?")
_MAX_TITLE_UNITS = 4  # a longer title is a sentence, and says little about each paragraph below it


@dataclass(frozen=True)
class Block:
    """One source in a tool result."""

    id: str
    title: str
    locator: str
    text: str

    @property
    def path(self) -> str:
        """Path of the document, without the place in it."""
        return self.locator.partition("#")[0]


def blocks_in(content: str) -> list[Block]:
    """Read the blocks `[id] title (locator)`, each with its text, out of a tool result."""
    found: list[Block] = []
    head: tuple[str, str, str] | None = None
    body: list[str] = []
    blank_before = True
    for row in [*content[:400_000].splitlines(), None]:
        match = _HEAD.fullmatch(row) if row is not None and blank_before else None
        opened = match is not None and ((match[2] or "").endswith(")") or (not found and head is None))
        if opened or row is None:
            if head is not None:
                found.append(Block(*head, "\n".join(body)))
            head = (match[1], *_title_and_locator(match[2] or "")) if match and opened else None
            body = []
        elif not (
            blank_before and row.startswith("[") and row.endswith("]") and " " in row
        ):  # a note of the tool's, no text
            body.append(row)
        blank_before = row is None or not row.strip()
    return found


def _title_and_locator(text: str) -> tuple[str, str]:
    """Split "title (locator)"; the locator may have parentheses itself."""
    if not text.endswith(")"):
        return text, ""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return text[:at].strip(), text[at + 1 : -1]
    return "", text


@dataclass(frozen=True)
class Wanted:
    """A criterion, as far as the embedded model understands it.

    Attributes:
        label: the criterion without its set words.
        entity: what it is about; "" for anything.
        aspect: what is to be found, as written.
        units: the content of the aspect; empty = whatever there is on the entity.
        scope: what it is asked about, from the criterion's parentheses.
        soft: what a better sentence also has.
        figures: keys of the units that need a figure.
    """

    label: str
    entity: str
    aspect: str
    units: list[Unit]
    scope: str = ""
    soft: list[Unit] = field(default_factory=list[Unit])
    figures: list[str] = field(default_factory=list[str])


def read_criterion(criterion: str, objective: str) -> Wanted:
    """Take a criterion apart."""
    if criterion in phrases.ANSWERED and objective.strip():
        return _question(objective)
    label = phrases.label(criterion)
    entity, aspect = phrases.entity_and_aspect(label)
    scope = "".join(re.findall(r"[(（]([^()（）]*)[)）]$", aspect))
    bare = re.sub(r"\s*[(（][^()（）]*[)）]$", "", aspect)
    wanted = [] if bare in ("要点", "key points") else units(bare, drop=[entity])
    taken = {u.key for u in wanted}
    soft = [
        u
        for u in units(f"{scope} {objective[:400]}", drop=[entity], keep_classes=False)
        if u.key not in taken
    ]
    return Wanted(label, entity, bare, wanted, scope, soft, [u.key for u in wanted if u.key in FIGURES])


def _question(objective: str) -> Wanted:
    """Return what answers a question: sentences with the question's own content."""
    asked = units(objective)
    said = " ".join(objective.split()).replace("“", "'").replace("”", "'")
    figures = [u.key for u in asked if u.key in FIGURES]
    return Wanted(cut(said, 200), "", phrase(objective, most=200) or cut(said, 200), asked, figures=figures)


@dataclass(frozen=True)
class Quote:
    """Words chosen for a criterion; `score` orders quotes of one criterion. A table's rows come with their header."""

    text: str
    block: Block
    score: float
    header: str = ""


def quotes_for(wanted: Wanted, blocks: Sequence[Block], most: int = 2) -> list[Quote]:
    """Return the sentences that answer a criterion, best first; none if none does.

    A sentence counts if it is about the entity, has most of the criterion's content in itself or in its headings,
    shows a figure where the criterion needs one, and does not say that it does not say.
    """
    found: dict[str, Quote] = {}
    for block in _about(wanted, blocks):
        for quote in _quotes_in(wanted, block):
            if quote.text not in found or found[quote.text].score < quote.score:
                found[quote.text] = quote
    ranked = sorted(found.values(), key=lambda q: -q.score)
    return _varied(_with_headers(ranked), most)


def denial_for(wanted: Wanted, blocks: Sequence[Block]) -> Quote | None:
    """Return the sentence that says that a criterion's answer is not given ("on request"), if there is one."""
    if not wanted.units:
        return None
    found: list[Quote] = []
    for block in _about(wanted, blocks):
        for sentence in sentences(block.text):
            if NON_ANSWER.search(sentence.text):
                texts = (
                    (profile_of(sentence.text), 1.0),
                    (profile_of(f"{sentence.context} {block.title}"), 0.6),
                )
                found.append(Quote(sentence.text, block, coverage(wanted.units, *texts)))
    best = max(found, key=lambda q: q.score, default=None)
    return best if best and best.score >= ENOUGH - 0.01 else None


def _about(wanted: Wanted, blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks that may speak of the entity: its own documents, and those that belong to no folder."""
    own = [b for b in blocks if _folder_is(wanted.entity, b)] if wanted.entity else list(blocks)
    if not own:
        return list(blocks)
    return [*own, *(b for b in blocks if b not in own and "/" not in b.path)]


def _with_headers(ranked: Sequence[Quote]) -> list[Quote]:
    """Join the rows of one table into one quote, after its header: a row alone says little."""
    joined: dict[tuple[str, str], list[Quote]] = {}
    for quote in ranked:
        joined.setdefault(
            (quote.block.id, quote.header) if quote.header else (quote.block.id, quote.text), []
        ).append(quote)
    found: list[Quote] = []
    for group in joined.values():
        first = group[0]
        rows = [q.text for q in group[:4]]
        found.append(
            Quote("” / “".join([first.header, *rows]), first.block, first.score) if first.header else first
        )
    return found


def _folder_is(entity: str, block: Block) -> bool:
    """Return whether a folder, or the file itself, bears the entity's name."""
    path = PurePosixPath(block.path)
    parts = [*path.parts[:-1], path.stem]
    return any(words(part) == words(entity) for part in parts)


def _quotes_in(wanted: Wanted, block: Block) -> list[Quote]:
    inside = not wanted.entity or _folder_is(wanted.entity, block)
    titled = inside or names(wanted.entity, block.title)
    document, _, heading = block.title.partition(" › ")
    name = f"{document} {PurePosixPath(block.path).stem}"
    short = len(units(name, drop=[wanted.entity])) <= _MAX_TITLE_UNITS
    about = profile_of(name if short else ""), profile_of(heading)
    kind = (
        bool(wanted.units)
        and coverage(wanted.units, (profile_of(PurePosixPath(block.path).stem), 1.0)) == 1.0
    )
    quotes: list[Quote] = []
    for sentence in sentences(block.text):
        if not (titled or names(wanted.entity, f"{sentence.text} {sentence.context}")):
            continue
        score = _score(wanted, sentence, about, kind)
        if score > 0:
            text = sentence.text if wanted.figures else sentence.longer
            place = _line_of(block) + 2 * sentence.order
            quotes.append(Quote(text, block, score - min(place, 200) / 250, sentence.header))
    return quotes


def _score(wanted: Wanted, sentence: Sentence, about: tuple[Profile, Profile], kind: bool) -> float:
    """Return 0 for a sentence that does not answer, else more for a better one."""
    text = sentence.text
    if (
        not _readable(text)
        or text.endswith(("?", "？", ":", "："))
        or not all(FIGURES[key].search(text) for key in wanted.figures)
    ):
        return 0.0
    if NON_ANSWER.search(text) and not wanted.figures:
        return 0.0
    tariff = " price" if "price" in wanted.figures and TARIFF.match(text) else ""
    own, context = profile_of(text + tariff), profile_of(sentence.context)
    matched = [u for u in wanted.units if u.key not in wanted.figures or u.key == "price"]
    figured = len(wanted.units) - len(matched)  # a date answers "year" without saying the word
    share = coverage(matched, (own, 1.0), (context, 0.8), (about[1], 0.8), (about[0], 0.6))
    share = (share * len(matched) + figured) / len(wanted.units) if wanted.units else 1.0
    if share < ENOUGH - 0.01 or (
        figured and matched and share * len(wanted.units) - figured < 0.5 * len(matched)
    ):
        return 0.0
    # In a document of that very kind, repeating the kind's name says nothing; anywhere else it is what counts.
    base = 2.0 if kind else 1.0 + share
    return base + coverage(wanted.soft, (own, 1.0)) * 0.5 + _substance(sentence, bool(wanted.figures))


def _readable(text: str) -> bool:
    """Return whether most of a text is words: what is left of code and drawings is not worth quoting."""
    solid = "".join(text.split())
    return sum(c.isalnum() for c in solid) >= 0.6 * len(solid)


def _line_of(block: Block) -> int:
    match = re.search(r"#L(\d{1,6})$", block.locator)
    return int(match[1]) if match else 0


def _substance(sentence: Sentence, figure: bool) -> float:
    """Return how much a sentence says, up to 0.65: figures, list items, a readable length."""
    text = f"{sentence.header} {sentence.text}"
    points = 0.25 * sentence.item + 0.2 * (30 <= len(text) <= 400)
    if figure:
        return points + 0.3 * bool(_RATE.search(text))
    return points + 0.15 * bool(re.search(r"\d", text))


def _varied(ranked: Sequence[Quote], most: int) -> list[Quote]:
    """Take the best; then what is nearly as good from another document, or speaks of trouble if nothing has yet."""
    chosen: list[Quote] = []
    rest = list(ranked)
    while rest and len(chosen) < most:
        paths = {q.block.path for q in chosen}
        near = [q for q in rest if q.score >= rest[0].score - 0.5]
        elsewhere = [q for q in near if q.block.path not in paths]
        troubled = sorted(
            (q for q in near if chosen and TROUBLE.search(q.text)),
            key=lambda q: -len(TROUBLE.findall(q.text)),
        )
        if any(TROUBLE.search(q.text) for q in chosen):
            troubled = []
        chosen.append((elsewhere or troubled or rest)[0])
        rest = [q for q in rest if q.text not in chosen[-1].text]
    return chosen

"""Texts cut into what the embedded model may quote: sentences, list items, table rows, each with its headings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from agents.embedded.text import cut

MAX_TEXT = 200_000
MAX_LONGER = 160
_ITEM = re.compile(r"(?:[-*+•]|\d{1,2}[.)])\s+(?=\S)")
_RULE = re.compile(r"[\s|:-]+")
# Not after the bold words that often open a paragraph: they belong to what follows.
_END = re.compile(r"(?<=[。！？；])(?![*”’」』）])|(?<=[。！？][”’」』])|(?<=[.!?])\s+(?=[^a-z\s])")


@dataclass(frozen=True)
class Sentence:
    """One quotable piece of a text.

    Attributes:
        text: as it stands there, white space folded.
        longer: the same with the sentences after it, while they are short.
        context: the heading above it, and a table's header row.
        order: its place in the text, counted in sentences.
        item: whether it is a list item or a table row.
        header: the header row of its table; "" outside tables.
    """

    text: str
    longer: str
    context: str
    order: int
    item: bool = False
    header: str = ""


@lru_cache(maxsize=512)
def sentences(text: str) -> tuple[Sentence, ...]:
    """Split Markdown, plain text, or what is shown of HTML."""
    found: list[Sentence] = []
    heading, header = "", ""
    for block, item in _blocks(text[:MAX_TEXT]):
        if block.startswith("#"):
            heading, header = block.lstrip("#").strip(), ""
        elif _is_row(block):
            cells = cut(block.strip("|").strip())
            if not header:
                header = cells
            elif cells.count("|") == header.count("|") and not _RULE.fullmatch(cells):
                found.append(
                    Sentence(cells, cells, f"{heading} {header}", len(found), item=True, header=header)
                )
        else:
            header = ""
            pieces = _pieces(block)
            for index, piece in enumerate(pieces):
                longer = _longer(pieces[index:])
                found.append(Sentence(cut(piece), longer, heading, len(found), item=item))
    return tuple(found)


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Join the wrapped lines of a paragraph; list items (True), headings and table rows stay apart."""
    blocks: list[tuple[str, bool]] = []
    is_open = False
    for raw in text.splitlines():
        line = " ".join(raw.split())
        item = _ITEM.match(line)
        if not line or line.startswith(("```", "~~~")):
            is_open = False
        elif line.startswith("#") or _is_row(line):
            blocks.append((line, False))
            is_open = False
        elif item or not is_open:
            blocks.append((line[item.end() :] if item else line, bool(item)))
            is_open = True
        else:
            blocks[-1] = (f"{blocks[-1][0]} {line}", blocks[-1][1])
    return blocks


def _is_row(line: str) -> bool:
    return line.startswith("|") or " | " in line  # the second is how an HTML table is shown


def _pieces(block: str) -> list[str]:
    parts = [p.strip() for p in _END.split(block)]
    pieces: list[str] = []
    for part in parts:
        if pieces and pieces[-1].startswith("**") and pieces[-1].endswith("**"):
            pieces[-1] += f" {part}"
        elif sum(c.isalnum() for c in part) >= 2:
            pieces.append(part)
    return pieces


def _longer(pieces: Sequence[str]) -> str:
    text = pieces[0]
    for piece in pieces[1:]:
        joint = "" if text.endswith(tuple("。！？；”」")) else " "
        if len(text) + len(piece) + len(joint) > MAX_LONGER:
            break
        text += joint + piece
    return cut(text)

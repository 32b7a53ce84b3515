"""The catalogue of documents: what a planner is told about the material, in about 4,000 characters."""

import html
import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any

from tools.folder import NotText, decode
from tools.reading import (
    CONVERTED,
    HTML,
    MARKDOWN,
    declared_charset,
    front_matter_title,
    heading_text,
    marked_lines,
)
from tools.results import clean_text

CATALOGUE_CHARS = 4_000
_HEAD_BYTES = 65_536
_MAX_HEADINGS = 8
_MAX_WORDS = 80
_MAX_DOCUMENTS = 100
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_HEADING = re.compile(r"<(h[1-3])\b[^>]*>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def document_catalogue(files: Sequence[tuple[str, Path]], not_read: Sequence[str] = ()) -> dict[str, Any]:
    """Return {"groups": [{"name", "documents": [{"path", "title", "headings"}]}], "left_out": int}.

    A group is the first folder below the root, "" for files in the root. To stay within CATALOGUE_CHARS of JSON,
    headings are dropped first, then documents, the last of each group first: groups matter most to a plan.

    Args:
        files: (path relative to the root, file).
        not_read: files that no search covers, with the reason; given as "not_read" where there are any.
    """
    groups: dict[str, list[tuple[str, Path]]] = {}
    for name, path in files:
        parts = PurePosixPath(name).parts
        groups.setdefault(parts[0] if len(parts) > 1 else "", []).append((name, path))
    rounds = zip_longest(*groups.values())
    order = [item for row in rounds for item in row if item is not None][:_MAX_DOCUMENTS]
    outlines = [_outline(name, path) for name, path in order]
    for most in (_MAX_HEADINGS, 4, 2, 0):
        shown = [{**outline, "headings": outline["headings"][:most]} for outline in outlines]
        catalogue = _grouped(shown, len(files), not_read)
        if _size(catalogue) <= CATALOGUE_CHARS:
            return catalogue
    while outlines and _size(catalogue) > CATALOGUE_CHARS:
        outlines.pop()
        catalogue = _grouped([{**outline, "headings": []} for outline in outlines], len(files), not_read)
    return catalogue


def _grouped(outlines: Sequence[dict[str, Any]], total: int, not_read: Sequence[str]) -> dict[str, Any]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for outline in sorted(outlines, key=lambda item: item["path"]):
        parts = PurePosixPath(outline["path"]).parts
        groups.setdefault(clean_text(parts[0]) if len(parts) > 1 else "", []).append(outline)
    catalogue: dict[str, Any] = {
        "groups": [{"name": name, "documents": documents} for name, documents in groups.items()],
        "left_out": total - len(outlines),
    }
    return {**catalogue, "not_read": list(not_read)} if not_read else catalogue


def _size(catalogue: dict[str, Any]) -> int:
    return len(json.dumps(catalogue, ensure_ascii=False))


def _outline(name: str, path: Path) -> dict[str, Any]:
    """Return path, title and headings, from the file's beginning alone: building a catalogue must be quick."""
    suffix = path.suffix.lower()
    title, headings = "", list[str]()
    if suffix not in CONVERTED:
        try:
            with path.open("rb") as file:
                data = file.read(_HEAD_BYTES)
            declared = declared_charset(data) if suffix in HTML else None
            text = decode(data, partial=True, declared=declared)
        except (OSError, NotText):
            text = ""
        title, headings = _html_outline(text) if suffix in HTML else _text_outline(text, suffix)
    headings = [_short(heading) for heading in headings if heading.strip()]
    title = _short(title) or (headings[0] if headings else "") or path.stem
    return {"path": clean_text(name), "title": _short(title), "headings": [h for h in headings if h != title]}


def _html_outline(text: str) -> tuple[str, list[str]]:
    found = _TITLE.search(text)
    headings = [html.unescape(_TAG.sub("", match[2])) for match in _HEADING.finditer(text)]
    return html.unescape(found[1]) if found else "", headings


def _text_outline(text: str, suffix: str) -> tuple[str, list[str]]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    headings = [heading_text(line.text) for line in marked_lines(text, suffix) if 0 < line.level <= 3]
    return front_matter_title(text) if suffix in MARKDOWN else "", headings


def _short(text: str) -> str:
    text = " ".join(clean_text(text).split())
    return text if len(text) <= _MAX_WORDS else text[: _MAX_WORDS - 1] + "…"

"""Tool results: the sources a result came from, and the text a model is shown for them."""

import dataclasses
import hashlib
import json
import re
import unicodedata
from base64 import b32encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.tools import ToolException
from pydantic import BaseModel
from typing_extensions import TypedDict

EXCERPT_CHARS = 400
PAGE_CHARS = 6_000
_MAX_ID_CHARS = 200
_MAX_DEPTH = 5
_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT_KEYS = ("text", "content", "snippet", "body")
_LOCATOR_KEYS = ("locator", "url", "path")
_TITLE_KEYS = ("title", "name")


class SourceDraft(TypedDict):
    """One source of a tool result, before the ledger records it.

    Attributes:
        source_id: stable over runs, processes and parallel steps.
        locator: where a person finds it again: path#Lline, path#p3, a URL, or the SQL.
        excerpt: at most 400 characters.
        text: the full text of this result.
    """

    source_id: str
    locator: str
    title: str
    excerpt: str
    text: str


def draft(source_id: str, *, locator: str, title: str, text: str, excerpt: str | None = None) -> SourceDraft:
    """Return a SourceDraft of clean text; the excerpt is the beginning of the text unless given."""
    text = clean_text(text)
    return SourceDraft(
        source_id=source_id,
        locator=_one_line(locator),
        title=_one_line(title),
        excerpt=clean_text(text if excerpt is None else excerpt)[:EXCERPT_CHARS],
        text=text,
    )


def render(drafts: Sequence[SourceDraft]) -> str:
    """Return the text a model reads: for each source a line "[id] title (locator)", then its text."""
    return "\n\n".join(_block(item) for item in drafts)


def _block(item: SourceDraft) -> str:
    locator = f"({_one_line(item['locator'])})" if item["locator"] else ""
    head = " ".join(part for part in (f"[{item['source_id']}]", _one_line(item["title"]), locator) if part)
    return f"{head}\n{item['text']}" if item["text"] else head


def source_id(*parts: str | int, length: int = 7) -> str:
    """Return `length` lowercase base32 characters, derived by sha256 of the parts alone."""
    digest = hashlib.sha256()
    for part in parts:
        data = str(part).encode("utf-8", "surrogatepass")
        # The length goes first, so that ("ab", "c") and ("a", "bc") differ.
        digest.update(f"{len(data)}:".encode() + data)
    return b32encode(digest.digest()).decode("ascii").lower()[:length]


def clean_text(text: str) -> str:
    """Return the text without NUL, surrogate pairs joined, each lone surrogate as U+FFFD: valid UTF-8."""
    if not text.isascii() and _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


def cut(text: str, max_chars: int, advice: str = "read on with read_document") -> str:
    """Return at most `max_chars` characters, ending in a note of how much was left out.

    Args:
        text: of any length.
        max_chars: bound on the result, note included; too small for the note, it leaves only the text's beginning.
        advice: what the note tells the reader to do.
    """
    total = len(text)
    if total <= max_chars:
        return text
    room = max_chars - len(_cut_note(total, total, advice))
    if room <= 0:
        return text[: character_boundary(text, max(max_chars, 0))]
    kept = text[: character_boundary(text, room)]
    return kept + _cut_note(total - len(kept), total, advice)


def _cut_note(left_out: int, total: int, advice: str) -> str:
    return f"… [cut: {left_out} of {total} characters left out; {advice}]"


def character_boundary(text: str, position: int) -> int:
    """Return the last place at or before `position` that splits no combining sequence or surrogate pair."""
    if position >= len(text):
        return len(text)
    # 32 marks on one letter is no writing; without a bound a text of marks alone would be searched to its start.
    for place in range(position, max(position - 32, 0), -1):
        if not _continues(text[place]) and text[place - 1] != "\u200d":
            return place
    return position


def _continues(char: str) -> bool:
    return (
        char == "\u200d" or "\udc00" <= char <= "\udfff" or unicodedata.category(char) in ("Mn", "Mc", "Me")
    )


def page_of(text: str, offset: int, max_chars: int = PAGE_CHARS) -> tuple[str, int | None]:
    """Return the page of a long text from `offset` on, and the next offset, None at the end.

    The page ends at a line's end, if one lies in its second half. The next offset is always larger.

    Raises:
        ToolException: the offset lies outside the text.
    """
    if offset < 0 or offset > len(text) or (offset == len(text) and text):
        raise ToolException(
            f"offset {offset} is outside the text: it has {len(text)} characters, from offset 0 on"
        )
    end = character_boundary(text, offset + max_chars)
    end = end if end > offset else offset + max_chars
    if end < len(text):
        line_end = text.rfind("\n", offset + max_chars // 2, end)
        end = line_end + 1 if line_end >= 0 else end
    return text[offset:end], end if end < len(text) else None


def drafts_from(content: Any, artifact: Any) -> list[SourceDraft]:
    """Return the sources that a tool named itself: objects with `source_id` in its artifact, else in its content.

    Looks into lists, mappings, pydantic objects, dataclasses, JSON text and text blocks. Two objects of one id
    become one source with both texts. Empty when no object names a source.
    """
    for value in (artifact, content):
        merged: dict[str, SourceDraft] = {}
        for item in _named_objects(value, _MAX_DEPTH):
            found = _draft_from(item)
            if found is None:
                continue
            first = merged.setdefault(found["source_id"], found)
            if first is not found and found["text"] not in first["text"]:
                first["text"] = f"{first['text']}\n\n{found['text']}"
        if merged:
            return list(merged.values())
    return []


def _named_objects(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    value = _plain(value)
    if depth < 0:
        return
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, Any]", value)
        if "source_id" in mapping:
            yield mapping
            return
        for item in mapping.values():
            yield from _named_objects(item, depth - 1)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _named_objects(item, depth - 1)


def _plain(value: Any) -> Any:
    """Turn objects and JSON text into mappings and lists; anything else is returned as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, str) and "source_id" in value and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _draft_from(item: Mapping[str, Any]) -> SourceDraft | None:
    """Return the draft of an object with `source_id`, or None if that id is not one short line."""
    given = item["source_id"]
    if isinstance(given, bool) or not isinstance(given, str | int):
        return None
    name = clean_text(str(given)).strip()
    if not name or len(name) > _MAX_ID_CHARS or len(name.splitlines()) > 1:
        return None
    text = _first(item, _TEXT_KEYS)
    if not text:
        used = {"source_id", *_LOCATOR_KEYS, *_TITLE_KEYS}
        rest = {key: value for key, value in item.items() if key not in used and value not in (None, "")}
        text = _as_text(rest) if rest else ""
    excerpt = item.get("excerpt")
    return draft(
        name,
        locator=_first(item, _LOCATOR_KEYS),
        title=_first(item, _TITLE_KEYS),
        text=text,
        excerpt=excerpt if isinstance(excerpt, str) else None,
    )


def _first(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((_as_text(item[key]) for key in keys if item.get(key) not in (None, "")), "")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _one_line(text: str) -> str:
    return " ".join(clean_text(text).split())

"""Answers of MCP tools as text and sources: text blocks joined, structured answers as JSON, media named, no reprs."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from langchain_core.tools import ToolException

from tools.artifacts import ArtifactStore
from tools.results import SourceDraft, clean_text, draft, drafts_from, render, source_id

if TYPE_CHECKING:
    from mcp.types import CallToolResult

MAX_MEDIA_CHARS = 20_000_000
"""Base64 characters of an image that is kept."""

Result = tuple[str, list[SourceDraft]]


async def result_of(
    answer: "CallToolResult", tool: str, arguments: dict[str, Any], artifacts: ArtifactStore | None
) -> Result:
    """Return what a model reads of an answer, and its sources.

    Args:
        answer: of the server.
        tool: the tool's name, as models know it.
        arguments: of the call.
        artifacts: where images and audio are kept, as data URIs; None = nowhere.

    Raises:
        ToolException: the answer is an error.
    """
    texts: list[str] = []
    media: list[SourceDraft] = []
    for block in answer.content:
        content = block.model_dump(mode="json")
        found = _media_of(content)
        if found is None:
            texts.append(_text_of(content))
        else:
            media.append(await _kept(*found, f"{tool} {content['type']} {len(media) + 1}", artifacts))
    text = clean_text("\n".join(part for part in texts if part))
    if answer.isError:
        raise ToolException(text[:2000] or f"{tool} failed, and its server does not say why")
    if not text and answer.structuredContent is not None:
        text = clean_text(json.dumps(answer.structuredContent, ensure_ascii=False))
    return _sourced(text, answer.structuredContent, media, tool, arguments)


def _sourced(
    text: str, structured: Any, media: list[SourceDraft], tool: str, arguments: dict[str, Any]
) -> Result:
    named = drafts_from(text, structured)
    words = ""
    if named and not drafts_from(text, None):  # the text says more than the objects that name sources
        words = text
    elif not named and text.strip():
        asked = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        locator = f"{tool}({clean_text(asked)[1:-1][:300]})"
        named = [draft(source_id("mcp", tool, asked, text), locator=locator, title=tool, text=text)]
    drafts = [*named, *media]
    return "\n\n".join(part for part in (words, render(drafts)) if part), drafts


def _text_of(block: dict[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource_link", "uri": uri}:
            words = (block.get("title") or block.get("name"), block.get("description"))
            return " - ".join(str(word) for word in words if word) + f": {uri}"
        case _:
            return f"({block.get('type', 'unknown')} block left out)"


def _media_of(block: dict[str, Any]) -> tuple[str, str] | None:
    """Return media type and base64 data of an image, audio or other binary block."""
    match block:
        case {"type": "image" | "audio", "data": str(data)}:
            return str(block.get("mimeType") or block["type"]), data
        case {"type": "resource", "resource": {"blob": str(data), **resource}}:
            return str(resource.get("mimeType") or "application/octet-stream"), data
        case _:
            return None


async def _kept(media_type: str, data: str, where: str, artifacts: ArtifactStore | None) -> SourceDraft:
    # The data itself is no source's text: its letters and digits would pass for words and figures found.
    note = "not kept"
    if artifacts is not None and len(data) <= MAX_MEDIA_CHARS:
        note = f"kept as {await artifacts.put(f'data:{media_type};base64,{data}')}"
    size = len(data) * 3 // 4 - data[-2:].count("=")
    text = f"({media_type}, not shown)"
    digest = hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()
    return draft(
        source_id("mcp", where, digest),
        locator=f"{where}, {note}",
        title=f"{media_type}, {size} bytes",
        text=text,
    )

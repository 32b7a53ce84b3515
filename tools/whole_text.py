"""read_document for any source: the whole text behind what a model was shown, a page at a time."""

from collections.abc import Callable, Mapping

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from schemas.evidence import Source
from tools.artifacts import ArtifactStore
from tools.results import SourceDraft, draft, page_of, render

NAME = "read_document"
DESCRIPTION = "Read on in the whole text of a source, about 6,000 characters at a time."
Page = tuple[str, list[SourceDraft]]


def whole_text_tool(
    sources: Callable[[], Mapping[str, Source]], artifacts: ArtifactStore, documents: BaseTool | None
) -> BaseTool:
    """Return read_document over the sources that a step knows, and over the documents where there is a folder.

    Args:
        sources: gives the step's own sources and those of its dependencies, by id.
        artifacts: holds their full texts.
        documents: the folder's own read_document, asked for ids that are none of those.
    """

    async def read_document(source_id: str, offset: int = 0) -> Page:
        source = sources().get(source_id.strip().strip("[]"))
        if source is None or source.artifact is None or _of_the_folder(source, documents):
            return await _from_folder(documents, source_id, offset)
        text = await artifacts.get(source.artifact)
        page, following = page_of(text, offset)
        item = draft(source.id, locator=source.locator, title=source.title, text=page)
        more = f"\n(read on from offset {following})" if following is not None else "\n(this is the end)"
        return render([item]) + more, [item]

    return StructuredTool.from_function(
        coroutine=read_document,
        name=NAME,
        description=documents.description if documents is not None else DESCRIPTION,
        response_format="content_and_artifact",
        metadata={"permission": "read", "idempotent": True},
    )


def _of_the_folder(source: Source, documents: BaseTool | None) -> bool:
    # A passage's own text is a part of its document, and the folder has the whole of it.
    return documents is not None and source.tool in ("search_documents", NAME)


async def _from_folder(documents: BaseTool | None, source_id: str, offset: int) -> Page:
    if documents is None:
        raise ToolException(f"there is no source {source_id!r}: use an id in square brackets before a text")
    call = {
        "type": "tool_call",
        "name": NAME,
        "id": "read",
        "args": {"source_id": source_id, "offset": offset},
    }
    message = await documents.ainvoke(call)
    return message.content, message.artifact or []

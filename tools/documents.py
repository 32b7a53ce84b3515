"""Search in and reading of the documents under a folder."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from tools.chunks import Chunk, chunks_of
from tools.folder import MAX_FILE_BYTES, MAX_FILES, Stamp, existing_folder, walk
from tools.outline import document_catalogue
from tools.ranking import Ranking, excerpt_of, words
from tools.reading import (
    CONVERTED,
    NO_CONVERTER,
    SUFFIXES,
    TOO_LARGE,
    Converter,
    Document,
    Unreadable,
    installed_converter,
    read_document_file,
)
from tools.results import PAGE_CHARS, SourceDraft, clean_text, draft, page_of, render, source_id

MAX_RESULTS = 20
_SHOWN_QUERY_CHARS = 200
_NAMED_FILES = 5


def document_tools(
    root: Path, *, find_converter: Callable[[], Converter | None] = installed_converter
) -> list[BaseTool]:
    """Return search_documents and read_document over the documents under a folder.

    Markdown, text and HTML are read; PDF and DOCX with the [docs] extra. The index is built at the first search.

    Args:
        root: the folder; nothing outside it is read.
        find_converter: gives what turns PDF and DOCX into text, or None.

    Raises:
        SettingsError: there is no such folder.
    """
    library = Library(existing_folder(root), find_converter())

    def search_documents(
        query: Annotated[str, "A few telling words, in the documents' language"],
        k: Annotated[int, "How many passages to return, 1 to 20"] = 5,
    ) -> tuple[str, list[SourceDraft]]:
        return library.search(query, k)

    def read_document(
        source_id: Annotated[str, "The id or the path of a source that search_documents returned"],
        offset: Annotated[int, "First character to return; the result names the next one"] = 0,
    ) -> tuple[str, list[SourceDraft]]:
        return library.read(source_id, offset)

    return [
        StructuredTool.from_function(
            search_documents,
            description="Find the passages of the documents that fit a query best, each with a source id.",
            response_format="content_and_artifact",
            metadata={
                "permission": "read",
                "idempotent": True,
                "catalogue": {"documents": library.catalogue()},
            },
        ),
        StructuredTool.from_function(
            read_document,
            description="Read the whole document that a source belongs to, about 6,000 characters at a time.",
            response_format="content_and_artifact",
            metadata={"permission": "read", "idempotent": True},
        ),
    ]


@dataclass(frozen=True)
class _Entry:
    document: Document
    chunk: Chunk
    source_id: str

    @property
    def title(self) -> str:
        return " › ".join(dict.fromkeys([self.document.title, *self.chunk.headings]))

    def tokens(self) -> list[str]:
        # Folder and file names tell entities apart; they count for more than a mention of the same words in a text.
        name = words(self.document.path.rpartition(".")[0])
        return [*name * 3, *words(self.title), *words(self.chunk.text)]


@dataclass(frozen=True)
class _Index:
    documents: dict[str, Document]
    entries: list[_Entry]
    owners: dict[str, Document]
    ranking: Ranking
    not_read: list[str]


class Library:
    """The documents under a folder, indexed at the first use and again when a file has changed. Safe for threads."""

    def __init__(self, root: Path, converter: Converter | None) -> None:
        self._root = root
        self._converter = converter
        self._lock = threading.Lock()
        self._stamps: dict[str, Stamp] = {}
        self._read: dict[str, tuple[Stamp, Document | str]] = {}
        self._index: _Index | None = None
        self._pages: dict[str, Document] = {}

    def catalogue(self) -> dict[str, object]:
        """Return the documents as DESIGN's catalogue shapes them, with "not_read" where an extra is missing."""
        unread: list[tuple[str, str]] = []
        files: list[tuple[str, Path]] = []
        for name, path, (_, size) in walk(self._root, SUFFIXES):
            if self._converter is None and path.suffix.lower() in CONVERTED:
                unread.append((name, NO_CONVERTER))
            elif size > MAX_FILE_BYTES:
                unread.append((name, TOO_LARGE))
            else:
                files.append((name, path))
        return document_catalogue(files, _notes(unread, len(files) + len(unread)))

    def search(self, query: str, k: int) -> tuple[str, list[SourceDraft]]:
        """Return the text for the model and the best passages, at most 20.

        Raises:
            ToolException: the query is blank.
        """
        query = clean_text(query)
        if not query.strip():
            raise ToolException("the query is empty: give a few words that the documents may contain")
        index = self._current()
        hits = [index.entries[number] for number in index.ranking.best(query, max(1, min(k, MAX_RESULTS)))]
        drafts = [
            draft(
                hit.source_id,
                locator=hit.document.locator(hit.chunk.place),
                title=hit.title,
                text=hit.chunk.text,
                excerpt=excerpt_of(hit.chunk.text, query),
            )
            for hit in hits
        ]
        shown = " ".join(query.split())[:_SHOWN_QUERY_CHARS]
        return "\n\n".join([render(drafts) or f"No document matches {shown}.", *index.not_read]), drafts

    def read(self, source: str, offset: int) -> tuple[str, list[SourceDraft]]:
        """Return one page of the document that a source belongs to; the page is a source itself.

        Args:
            source: the id of a passage or page, a document's path, or a locator.
            offset: in characters of the document's text.

        Raises:
            ToolException: no document has that id, or the offset is outside it.
        """
        document = self._owner(clean_text(source).strip().strip("[]"))
        text, following = page_of(document.text, offset)
        found = _page(document, offset, text)
        with self._lock:
            self._pages[found["source_id"]] = document
        total = len(document.text)
        if following is None:
            note = f"[end of the document: {total} characters]"
        else:
            note = f"[characters {offset} to {following} of {total}; next offset: {following}]"
        return f"{render([found])}\n\n{note}", [found]

    def _owner(self, source: str) -> Document:
        index = self._current()
        document = (
            index.owners.get(source)
            or self._pages.get(source)
            or index.documents.get(source.partition("#")[0])
            or _called(index, source)
        )
        if document is None:
            # A page's id that another process gave, before a resume: pages begin at fixed places, so it can be found.
            document = next((d for d in index.documents.values() if source in _page_ids(d)), None)
        if document is None:
            raise ToolException(
                f"no document has the source id {source[:80]!r}: use one that search_documents returned"
            )
        return document

    def _current(self) -> _Index:
        with self._lock:
            files = list(walk(self._root, SUFFIXES))
            stamps = {name: stamp for name, _, stamp in files}
            if self._index is None or stamps != self._stamps:
                self._read = {name: self._reread(name, path, stamp) for name, path, stamp in files}
                self._index = _index_of({name: item for name, (_, item) in self._read.items()})
                self._pages, self._stamps = {}, stamps
            return self._index

    def _reread(self, name: str, path: Path, stamp: Stamp) -> tuple[Stamp, Document | str]:
        known = self._read.get(name)
        if known is not None and known[0] == stamp:
            return known
        try:
            return stamp, read_document_file(path, clean_text(name), self._converter)
        except Unreadable as error:
            return stamp, str(error)


def _index_of(read: dict[str, Document | str]) -> _Index:
    documents = {item.path: item for item in read.values() if isinstance(item, Document)}
    entries: list[_Entry] = []
    owners: dict[str, Document] = {}
    for document in documents.values():
        for chunk in chunks_of(document):
            parts = (document.path, chunk.number, chunk.text)
            name = source_id(*parts)
            # Two passages of one short id are rare, not impossible; the later one, in a fixed order, gets a longer id.
            name = source_id(*parts, length=12) if name in owners else name
            owners[name] = document
            entries.append(_Entry(document, chunk, name))
    ranking = Ranking.over([entry.tokens() for entry in entries])
    unread = [(name, item) for name, item in read.items() if isinstance(item, str)]
    return _Index(documents, entries, owners, ranking, _notes(unread, len(read)))


def _called(index: _Index, name: str) -> Document | None:
    """Return the one document whose file name without its ending, or whose title, this is: models guess at ids."""
    wanted = name.casefold()
    found = [
        d for d in index.documents.values() if wanted in (Path(d.path).stem.casefold(), d.title.casefold())
    ]
    return found[0] if len(found) == 1 else None


def _page(document: Document, offset: int, text: str) -> SourceDraft:
    line = document.lines[document.text.count("\n", 0, offset)] if document.lines else None
    return draft(
        source_id(document.path, f"@{offset}", text),
        locator=document.locator(line.place if line else ""),
        title=document.title,
        text=text,
    )


def _page_ids(document: Document) -> set[str]:
    found: set[str] = set()
    offset: int | None = 0
    while offset is not None:
        text, following = page_of(document.text, offset, PAGE_CHARS)
        found.add(source_id(document.path, f"@{offset}", text))
        offset = following
    return found


def _notes(unread: Sequence[tuple[str, str]], walked: int) -> list[str]:
    """Return a line for each reason why files were not read: how many of each kind, or their names if it is damage."""
    notes = [f"only the first {MAX_FILES} files of the folder were looked at"] if walked >= MAX_FILES else []
    for reason in sorted({reason for _, reason in unread}):
        names = [clean_text(name) for name, why in unread if why == reason]
        if reason == NO_CONVERTER:
            kinds = Counter(name.rpartition(".")[2].upper() for name in names)
            what = " and ".join(f"{count} {kind} {_files(count)}" for kind, count in sorted(kinds.items()))
        else:
            more = len(names) - _NAMED_FILES
            what = ", ".join(names[:_NAMED_FILES]) + (f" and {more} more" if more > 0 else "")
        notes.append(f"{what} {'was' if len(names) == 1 else 'were'} not read: {reason}")
    return notes


def _files(count: int) -> str:
    return "file" if count == 1 else "files"

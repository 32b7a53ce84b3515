"""The web for a worker: fetch_url, which opens only addresses that are known from elsewhere, and search_web."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Annotated
from urllib.parse import urlsplit

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from schemas.errors import SettingsError
from tools.own_thread import threaded
from tools.results import SourceDraft, clean_text, draft, page_of, render, source_id
from tools.web_address import Address, allowed_urls, read_address
from tools.web_fetch import FetchSettings, fetch
from tools.web_search import Hit, Search, public_search, tavily_search
from tools.web_text import text_of

FETCH = "fetch_url"
SEARCH = "search_web"
MAX_RESULTS = 10
_MAX_KNOWN_SHOWN = 5
_MAX_QUERY_CHARS = 400
_MAX_KEPT_PAGES = 4
_NEEDED = ("httpx", "trafilatura", "lxml_html_clean", "ddgs")

Result = tuple[str, list[SourceDraft]]
KnownTexts = Callable[[], Iterable[str] | Awaitable[Iterable[str]]]
"""Gives the texts that may name addresses for the step: the objective, and what tools returned (see `unechoed`)."""


def no_texts() -> Iterable[str]:
    """Know nothing: the tool is offered, and each step gets its own."""
    return ()


class FetchTool(StructuredTool):
    """fetch_url, which `for_step` copies for a step that knows its texts."""

    client_settings: FetchSettings = Field(default_factory=FetchSettings, exclude=True)

    def for_step(self, known_texts: KnownTexts) -> "FetchTool":
        """Return the tool for one step.

        Args:
            known_texts: asked at each call.
        """
        return fetch_tool(known_texts, self.client_settings)


def web_tools(
    known_texts: KnownTexts = no_texts,
    *,
    tavily_key: str | None = None,
    client_settings: FetchSettings | None = None,
    search: Search | None = None,
) -> list[BaseTool]:
    """Return fetch_url and search_web.

    Args:
        known_texts: see `fetch_tool`; without it fetch_url opens nothing, and each step needs its `for_step`.
        tavily_key: searches through Tavily instead of ddgs.
        client_settings: bounds of a fetch.
        search: another search.

    Raises:
        SettingsError: the [web] extra is not installed.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise SettingsError(f"the web tools need the [web] extra (missing: {', '.join(missing)})")
    find = search or (tavily_search(tavily_key) if tavily_key else public_search())
    return [fetch_tool(known_texts, client_settings), search_tool(find)]


def fetch_tool(known_texts: KnownTexts, client_settings: FetchSettings | None = None) -> FetchTool:
    """Return fetch_url.

    Args:
        known_texts: gives, at each call, the texts that name the addresses which may be opened.
        client_settings: bounds of a fetch.
    """
    settings = client_settings or FetchSettings()
    pages = _Pages(settings)

    async def fetch_url(
        url: Annotated[str, "A web address that the objective or an earlier result names"],
        offset: Annotated[int, "Where to read on in a long page, as its last line says"] = 0,
    ) -> Result:
        address = read_address(url)
        await _check_known(address, known_texts)
        found = await pages.get(address)
        page, following = page_of(found["text"], offset)
        shown = draft(found["source_id"], locator=found["locator"], title=found["title"], text=page)
        # The source is the whole text, which read_document opens too; its excerpt is of the page that was read.
        kept = found.copy()
        kept["excerpt"] = shown["excerpt"]
        note = f"\n(read on from offset {following})" if following is not None else ""
        return render([shown]) + note, [kept]

    return FetchTool(
        name=FETCH,
        description=(
            "Read a web page, text, JSON or PDF file from the internet, about 6,000 characters at a time. "
            "Only addresses that the objective or a tool's result names can be opened."
        ),
        args_schema=StructuredTool.from_function(coroutine=fetch_url, description=FETCH).args_schema,
        coroutine=fetch_url,
        response_format="content_and_artifact",
        metadata={"permission": "read", "idempotent": True},
        client_settings=settings,
    )


async def _check_known(address: Address, known_texts: KnownTexts) -> None:
    texts = known_texts()
    known = await threaded(allowed_urls)(await texts if inspect.isawaitable(texts) else texts)
    if str(address) in known:
        return

    def distance(url: str) -> tuple[bool, int]:
        return urlsplit(url).netloc != address.authority, len(url)

    near = sorted(known, key=distance)
    listed = "; known are: " + ", ".join(near[:_MAX_KNOWN_SHOWN]) if near else ""
    raise ToolException(
        f"{str(address)[:300]} is not opened: neither the objective nor a result names it{listed}"
    )


class _Pages:
    """The last few pages, so that reading on does not fetch again."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._kept: dict[str, SourceDraft] = {}

    async def get(self, address: Address) -> SourceDraft:
        known = self._kept.get(str(address))
        if known is not None:
            return known
        fetched = await fetch(address, self._settings)
        where = str(fetched.address)
        try:
            async with asyncio.timeout(self._settings.seconds):
                title, text = await threaded(text_of)(fetched)
        except TimeoutError:
            raise ToolException(f"{where} is too large to be read") from None
        text = clean_text(text).strip()
        if not text:
            raise ToolException(f"{where} has no text that can be read")
        found = draft(source_id(where, text), locator=where, title=title[:300] or where, text=text)
        while len(self._kept) >= _MAX_KEPT_PAGES:
            self._kept.pop(next(iter(self._kept)))
        return self._kept.setdefault(str(address), found)


def search_tool(search: Search) -> BaseTool:
    """Return search_web over a search."""

    async def search_web(
        query: Annotated[str, "What to look for, in a few words"],
        k: Annotated[int, "How many pages at most, 1 to 10"] = 5,
    ) -> Result:
        words = " ".join(clean_text(query).split())
        if not words or len(words) > _MAX_QUERY_CHARS:
            raise ToolException(f"give a query of 1 to {_MAX_QUERY_CHARS} characters")
        hits = await search(words, max(1, min(k, MAX_RESULTS)))
        drafts = _drafts(hits[:MAX_RESULTS])
        return (render(drafts), drafts) if drafts else (f"No web page matches {words[:200]!r}.", [])

    return StructuredTool.from_function(
        coroutine=search_web,
        description="Search the web: titles, addresses and short texts of pages. fetch_url reads one of them.",
        response_format="content_and_artifact",
        metadata={"permission": "read", "idempotent": True},
    )


def _drafts(hits: Sequence[Hit]) -> list[SourceDraft]:
    """Return a source for each page, once; one without a web address is no page."""
    found: dict[str, SourceDraft] = {}
    for hit in hits:
        try:
            where = str(read_address(hit["url"]))
        except ToolException:
            continue
        text = clean_text(hit["text"]).strip()
        found.setdefault(
            where, draft(source_id(where, text), locator=where, title=hit["title"] or where, text=text)
        )
    return list(found.values())

"""Web search: ddgs, which asks public search engines, or Tavily where a key is given."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from tools.own_thread import threaded

TAVILY_URL = "https://api.tavily.com/search"
SECONDS = 15
_HAN = re.compile("[\u4e00-\u9fff]")

Hit = Mapping[str, str]
"""title, url and text of one page found."""
Search = Callable[[str, int], Awaitable[list[Hit]]]
"""Finds at most so many pages for a query; ConnectionError or TimeoutError where it may work later."""


def public_search() -> Search:
    """Return a search through ddgs. No key is needed, and none of the engines promises an answer."""

    def ask(query: str, k: int) -> list[Hit]:
        from ddgs import DDGS  # pyright: ignore[reportUnknownVariableType] - typed loosely
        from ddgs.exceptions import DDGSException, TimeoutException

        # The region decides the engines' language.
        region = "cn-zh" if _HAN.search(query) else "us-en"
        try:
            found = DDGS(timeout=SECONDS).text(query, region=region, max_results=k)
        except TimeoutException:
            raise TimeoutError(f"no search engine answered within {SECONDS} s") from None
        except DDGSException as error:
            if "No results" in str(error):
                return []
            raise ConnectionError(f"the search engines cannot be reached: {str(error)[:200]}") from None
        return [
            {"title": item.get("title", ""), "url": item.get("href", ""), "text": item.get("body", "")}
            for item in found
        ]

    return threaded(ask)


def tavily_search(key: str, url: str = TAVILY_URL) -> Search:
    """Return a search through Tavily.

    Args:
        key: of the account; it is sent in a header, and stands in no error text.
        url: of the service.
    """

    async def ask(query: str, k: int) -> list[Hit]:
        import httpx

        try:
            async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
                answer = await client.post(
                    url,
                    json={"query": query, "max_results": k},
                    headers={"authorization": f"Bearer {key}"},
                )
        except httpx.TimeoutException:
            raise TimeoutError(f"Tavily did not answer within {SECONDS} s") from None
        except httpx.HTTPError as error:
            raise ConnectionError(f"Tavily cannot be reached ({type(error).__name__})") from None
        return _tavily_hits(answer)

    return ask


def _tavily_hits(answer: Any) -> list[Hit]:
    status: int = answer.status_code
    if status in (401, 403):
        raise PermissionError(f"Tavily does not accept the key ({status})")
    if status == 429 or status >= 500:
        raise ConnectionError(f"Tavily answered {status}")
    if status != 200:
        raise ValueError(f"Tavily answered {status}")
    try:
        body = answer.json()
    except ValueError:
        raise ValueError("Tavily answered with no JSON") from None
    results = cast("dict[str, Any]", body).get("results") if isinstance(body, dict) else None
    if not isinstance(results, list):
        raise ValueError("Tavily answered without results")  # noqa: TRY004 - the service's fault, not a caller's type
    rows = [cast("dict[str, Any]", row) for row in cast("list[Any]", results) if isinstance(row, dict)]
    names = {"title": "title", "url": "url", "text": "content"}
    return [{name: str(row.get(key) or "") for name, key in names.items()} for row in rows]

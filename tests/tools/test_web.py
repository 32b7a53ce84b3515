from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.tools import ToolException

from tools.registry import ToolRegistry
from tools.web import fetch_tool, search_tool, web_tools
from tools.web_address import read_address
from tools.web_fetch import FetchSettings, checked_endpoints
from tools.web_search import tavily_search

ARTICLE = "<p>The Basic plan costs 39 per month and holds three seats for every small team.</p>" * 8
Reply = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """A server on 127.0.0.1: `pages` say what to do for each path; `asked` are the paths and hosts, in order."""

    def __init__(self) -> None:
        self.pages: dict[str, Reply] = {}
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.finish = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.path, self.headers["host"]))
                site.pages[self.path](self)

            def do_POST(self) -> None:
                site.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.do_GET()

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.finish.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str) -> str:
        return f"http://{self.endpoint}{path}"

    def settings(self, **other: Any) -> FetchSettings:
        return FetchSettings(allow_private=frozenset({self.endpoint}), **{"seconds": 10, **other})

    async def fetch(self, path: str, offset: int = 0, **settings: Any) -> tuple[str, list[dict[str, Any]]]:
        return await fetched(self.url(path), offset, self.settings(**settings))


async def fetched(url: str, offset: int = 0, settings: FetchSettings | None = None) -> tuple[str, list[Any]]:
    """Fetch an address that the objective names."""
    tool = fetch_tool(lambda: [f"read {url}"], settings)
    call = {"type": "tool_call", "id": "1", "name": "fetch_url", "args": {"url": url, "offset": offset}}
    message = await tool.ainvoke(call)
    return message.content, message.artifact


def answer(
    body: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str
) -> Reply:
    data = body.encode() if isinstance(body, str) else body

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if kind:
            handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return reply


def moved(location: str, status: int = 302) -> Reply:
    return answer("", status=status, location=location)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as server:
        yield server


@contextmanager
def serving() -> Iterator[Site]:
    server = Site()
    try:
        yield server
    finally:
        server.stop()


async def test_a_page_becomes_markdown_with_title_links_and_locator(site):
    menu = "<nav><a href='/docs'>The manual</a></nav>"
    site.pages["/a"] = answer(
        f"<html><head><title>Plans &amp; prices</title></head><body>{menu}<article><h1>Plans</h1>{ARTICLE}"
        "<table><tr><th>plan</th><th>price</th></tr><tr><td>Basic</td><td>39</td></tr></table>"
        "</article><script>alert(1)</script></body></html>"
    )
    content, (source,) = await site.fetch("/a#part")
    assert (source["title"], source["locator"]) == ("Plans & prices", site.url("/a"))
    assert content.startswith(f"[{source['source_id']}] Plans & prices ({site.url('/a')})\n# Plans\n")
    assert "The Basic plan costs 39" in content
    assert "| Basic | 39 |" in content
    assert "alert(1)" not in content
    assert f"- The manual: {site.url('/docs')}" in content


async def test_a_long_page_is_read_on_without_fetching_again(site):
    site.pages["/long"] = answer("\n".join(f"line {n}" for n in range(3000)), "text/plain")
    url = site.url("/long")
    tool = fetch_tool(lambda: [url], site.settings())

    async def page(offset: int) -> Any:
        args = {"url": url, "offset": offset}
        return await tool.ainvoke({"type": "tool_call", "id": "1", "name": "fetch_url", "args": args})

    first = await page(0)
    following = int(first.content.rpartition("read on from offset ")[2].rstrip(")"))
    second = await page(following)
    assert len(first.content) < 7000
    assert len(site.asked) == 1
    assert second.artifact[0]["source_id"] == first.artifact[0]["source_id"]
    assert "line 2999" in first.artifact[0]["text"]
    with pytest.raises(ToolException, match="outside the text"):
        await page(10**6)


@pytest.mark.parametrize(
    "kind", ["text/html; charset=gb18030", "text/html", "text/html; charset=no-such-thing"]
)
async def test_chinese_pages_are_read_in_their_own_encoding(site, kind):
    page = f"<html><head><meta charset='gb18030'><title>定价</title></head><body>{'<p>高级版每月九十九元。</p>' * 20}"
    site.pages["/cn"] = answer(page.encode("gb18030"), kind)
    content, (source,) = await site.fetch("/cn")
    assert source["title"] == "定价"
    assert "高级版每月九十九元" in content


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("application/json", '{"price": 39}', '{"price": 39}'),
        ("application/vnd.api+json", '{"price": 39}', '"price"'),
        ("text/csv", "plan,price\r\nBasic,39\r\n", "plan,price\nBasic,39"),
        (
            "application/xml",
            "<?xml version='1.0' encoding='gb18030'?><价>39</价>".encode("gb18030"),
            "<价>39</价>",
        ),
        ("", "<!doctype html><title>T</title>" + ARTICLE, "costs 39"),
        ("", "just words", "just words"),
    ],
)
async def test_text_of_other_kinds_is_read(site, kind, body, words):
    site.pages["/x"] = answer(body, kind)
    content, _ = await site.fetch("/x")
    assert words in content


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("image/png", b"\x89PNG\0", "image/png"),
        ("application/zip", b"PK\3\4\0", "application/zip"),
        ("application/octet-stream", b"\0\1\2", "unknown kind"),
        ("text/plain", b"\0\1\2", "is no text"),
        ("application/pdf", b"not a pdf", "no PDF"),
        ("text/html", "<html><body></body></html>", "no text"),
    ],
)
async def test_what_has_no_text_is_named(site, kind, body, why):
    site.pages["/x"] = answer(body, kind)
    with pytest.raises(ToolException, match=why):
        await site.fetch("/x")


async def test_a_huge_body_is_not_read_whatever_its_header_says(site):
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/plain")
        handler.end_headers()
        try:
            while not site.finish.is_set():
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    site.pages["/endless"] = endless

    def declared(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "99999999999")
        handler.end_headers()

    site.pages["/declared"] = declared
    for path in ("/endless", "/declared"):
        with pytest.raises(ToolException, match=r"larger than 0\.2 MB"):
            await site.fetch(path, max_bytes=200_000)


async def test_a_small_body_that_unpacks_to_a_huge_one_is_not_read(site):
    site.pages["/bomb"] = answer(gzip.compress(b"\0" * 50_000_000), "text/plain", content_encoding="gzip")
    site.pages["/packed"] = answer(gzip.compress(b"words"), "text/plain", content_encoding="gzip")
    site.pages["/broken"] = answer(b"no gzip", "text/plain", content_encoding="gzip")
    site.pages["/other"] = answer(b"x", "text/plain", content_encoding="br")
    assert "words" in (await site.fetch("/packed"))[0]
    for path, why in (("/bomb", "larger than 5 MB"), ("/broken", "damaged"), ("/other", "packed as 'br'")):
        with pytest.raises(ToolException, match=why):
            await site.fetch(path)


async def test_a_body_that_never_ends_is_given_up(site):
    def stuck(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/plain")
        handler.end_headers()
        handler.wfile.write(b"begin")
        handler.wfile.flush()
        site.finish.wait()

    site.pages["/stuck"] = stuck
    with pytest.raises(TimeoutError, match=r"took longer than 0\.3 s"):
        await site.fetch("/stuck", seconds=0.3)


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (404, ToolException, "answered 404"),
        (410, ToolException, "answered 410"),
        (403, PermissionError, "without a login"),
        (503, ConnectionError, "answered 503"),
        (429, ConnectionError, "answered 429"),
    ],
)
async def test_the_servers_no_says_whether_to_try_again(site, status, error, words):
    site.pages["/x"] = answer("no", status=status)
    with pytest.raises(error, match=words):
        await site.fetch("/x")


async def test_a_server_that_is_not_there_is_a_passing_fault(site):
    settings = site.settings()
    url = site.url("/")
    site.stop()
    with pytest.raises(ConnectionError, match="cannot be reached"):
        await fetched(url, settings=settings)


async def test_redirects_are_followed_a_few_times(site):
    site.pages |= {f"/{n}": moved(f"/{n + 1}") for n in range(9)}
    site.pages["/5"] = answer(ARTICLE)
    _, (source,) = await site.fetch("/0")
    assert source["locator"] == site.url("/5")
    site.pages["/5"] = moved("/6")
    with pytest.raises(ToolException, match="more than 5 redirects"):
        await site.fetch("/0")
    site.pages["/loop"] = moved("/loop")
    with pytest.raises(ToolException, match="more than 5 redirects"):
        await site.fetch("/loop")


@pytest.mark.parametrize(
    "target",
    [
        *(
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://0.0.0.0/",
        ),
        *(
            "http://10.0.0.1/",
            "http://100.100.100.200/",
            "http://localhost/",
            "http://localhost./",
            "//127.0.0.1:1/",
        ),
    ],
)
async def test_a_redirect_into_a_private_network_is_refused(site, target):
    site.pages["/out"] = moved(target)
    with pytest.raises(ToolException, match="private network"):
        await site.fetch("/out")


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "ftp://e.test/", "http://a:b@127.0.0.1/", "http://2130706433/", "http://0177.1/"],
)
async def test_a_redirect_to_what_is_no_web_address_is_refused(site, target):
    site.pages["/out"] = moved(target, 301)
    with pytest.raises(ToolException, match="is refused"):
        await site.fetch("/out")


async def test_a_redirect_to_another_server_of_this_machine_is_refused(site):
    with serving() as inner:
        inner.pages["/secret"] = answer("secret", "text/plain")
        site.pages["/out"] = moved(inner.url("/secret"))
        with pytest.raises(ToolException, match="private network"):
            await site.fetch("/out")
        assert inner.asked == []


@pytest.mark.parametrize(
    "url", ["http://localhost/", "http://127.0.0.1/", "http://192.168.0.1/", "http://[fe80::1]/"]
)
async def test_a_private_address_is_refused_even_if_the_objective_names_it(url):
    with pytest.raises(ToolException, match="private network"):
        await fetched(url)


async def test_the_connection_goes_to_the_address_that_was_checked(site):
    """DNS rebinding: a name is looked up once for a hop, and never again by the connection."""
    site.pages["/a"] = answer(ARTICLE)
    lookups: list[str] = []

    async def look_up(host: str, port: int) -> list[str]:
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["10.0.0.1"]

    port = site.endpoint.rpartition(":")[2]
    await fetched(f"http://rebinding.test:{port}/a", settings=site.settings(look_up=look_up))
    assert lookups == ["rebinding.test"]
    assert site.asked == [("/a", f"rebinding.test:{port}")]


async def test_one_private_address_among_public_ones_is_enough_to_refuse():
    async def look_up(host: str, port: int) -> list[str]:
        return ["8.8.8.8", "127.0.0.1"]

    with pytest.raises(ToolException, match="private network"):
        await checked_endpoints(read_address("https://mixed.test/"), FetchSettings(look_up=look_up))


async def test_a_host_that_does_not_exist_is_named():
    with pytest.raises((ToolException, ConnectionError), match=r"nowhere\.invalid"):
        await fetched("https://nowhere.invalid/")


async def test_only_addresses_known_from_elsewhere_are_opened(site):
    site.pages["/a"] = answer(ARTICLE)
    texts = ["the objective"]
    tool = fetch_tool(lambda: texts, site.settings())
    with pytest.raises(ToolException, match="neither the objective nor a result names it"):
        await tool.ainvoke({"url": site.url("/a")})
    assert site.asked == []
    texts.append(f"a result: {site.url('/a')}.")
    assert "costs 39" in str(await tool.ainvoke({"url": site.url("/a")}))
    with pytest.raises(ToolException, match=f"known are: {site.url('/a')}"):
        await tool.ainvoke({"url": site.url("/a?leak=what+was+read")})


async def test_each_step_has_its_own_known_texts(site):
    site.pages["/a"] = answer(ARTICLE)
    offered = fetch_tool(tuple, site.settings())

    async def known() -> list[str]:
        return [site.url("/a")]

    assert "costs 39" in str(await offered.for_step(known).ainvoke({"url": site.url("/a")}))
    with pytest.raises(ToolException, match="is not opened"):
        await offered.for_step(lambda: ["another step"]).ainvoke({"url": site.url("/a")})


async def test_the_environment_sets_no_proxy(site, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    site.pages["/a"] = answer(ARTICLE)
    assert "costs 39" in (await site.fetch("/a"))[0]


async def test_a_fetch_can_be_cancelled(site):
    asked = threading.Event()

    def stuck(handler: BaseHTTPRequestHandler) -> None:
        asked.set()
        site.finish.wait()

    site.pages["/stuck"] = stuck
    task = asyncio.create_task(site.fetch("/stuck"))
    await asyncio.to_thread(asked.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_found_pages_are_sources_once_and_only_with_a_web_address():
    async def search(query: str, k: int) -> list[dict[str, str]]:
        assert (query, k) == ("plan prices", 10)
        page = {"title": "Prices", "url": "https://E.test/p#x", "text": "Basic 39"}
        return [page, page, {"title": "bad", "url": "javascript:1", "text": "x"}]

    call = {
        "type": "tool_call",
        "id": "1",
        "name": "search_web",
        "args": {"query": " plan\nprices ", "k": 99},
    }
    message = await search_tool(search).ainvoke(call)
    (source,) = message.artifact
    assert message.content == f"[{source['source_id']}] Prices (https://e.test/p)\nBasic 39"


async def test_nothing_found_is_said():
    async def search(query: str, k: int) -> list[dict[str, str]]:
        return []

    message = await search_tool(search).ainvoke(
        {"type": "tool_call", "id": "1", "name": "search_web", "args": {"query": "q"}}
    )
    assert (message.content, message.artifact) == ("No web page matches 'q'.", [])


async def test_tavily_is_asked_with_the_key_in_a_header(site):
    site.pages["/search"] = answer(
        '{"results": [{"title": "T", "url": "https://e.test/", "content": "words", "score": 1}, 7]}',
        "application/json",
    )
    found = await tavily_search("tvly-secret-1", site.url("/search"))("q", 3)
    assert found == [{"title": "T", "url": "https://e.test/", "text": "words"}]
    assert site.bodies == [b'{"query":"q","max_results":3}']


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (answer("{}", status=401), PermissionError),
        (answer("{}", status=500), ConnectionError),
        (answer("{}", status=429), ConnectionError),
        (answer("{}", "application/json"), ValueError),
        (answer("[1]", "application/json"), ValueError),
        (answer("no json"), ValueError),
    ],
)
async def test_tavilys_errors_say_whether_to_try_again_and_never_hold_the_key(site, reply, error):
    site.pages["/search"] = reply
    with pytest.raises(error) as caught:
        await tavily_search("tvly-secret-1", site.url("/search"))("q", 3)
    assert "secret" not in str(caught.value)


def test_both_tools_only_read_and_may_be_repeated():
    registry = ToolRegistry(web_tools())
    assert registry.unasked() == registry.names() == ["fetch_url", "search_web"]
    assert all(registry.spec(name).idempotent for name in registry.names())


def test_nothing_heavy_is_imported_before_its_use():
    modules = ["web", "workspace", "mcp", "own", "registry"]
    code = (
        f"import sys, {', '.join(f'tools.{name}' for name in modules)}; import tools.web as w; w.web_tools(); print(*["
        "m for m in ('httpx', 'trafilatura', 'ddgs', 'mcp', 'bs4') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_settings_are_values():
    assert replace(FetchSettings(), seconds=1).max_bytes == 5_000_000

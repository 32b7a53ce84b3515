"""What was fetched, as text: the main part of HTML pages as Markdown with their links, PDF, JSON, XML and plain text."""

import codecs
import html
import logging
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from langchain_core.tools import ToolException
from typing_extensions import override

from tools.folder import NotText, decode
from tools.reading import declared_charset, installed_converter
from tools.web_address import Address, allowed_urls, redirected
from tools.web_fetch import Fetched

MAX_LINKS = 60
MAX_EXTRACTED_CHARS = 1_000_000
"""Longer pages are read whole: finding the main part of a large page takes its time."""
_LABEL_CHARS = 80
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
    | {"application/javascript", "application/x-ndjson", "application/sql"}
)
_UNTOLD = frozenset({"", "application/octet-stream"})
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,2000})", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]+)", re.IGNORECASE)


def text_of(fetched: Fetched) -> tuple[str, str]:
    """Return title and text of what was fetched.

    Raises:
        ToolException: it is of a kind that has no text; the message names the kind.
    """
    kind = fetched.media_type if fetched.media_type not in _UNTOLD else _kind_by_content(fetched.data)
    if kind == "application/pdf":
        return _name(fetched.address), _pdf(fetched)
    if kind in _HTML:
        return _page(fetched)
    if kind.startswith("text/") or kind in _TEXT or kind.endswith(("+json", "+xml", "+yaml")):
        return _name(fetched.address), _decoded(fetched)
    raise ToolException(
        f"{fetched.address} is {kind or 'of an unknown kind'} ({len(fetched.data)} bytes): "
        "only HTML, text, JSON, XML and PDF are read"
    )


def _kind_by_content(data: bytes) -> str:
    if b"%PDF-" in data[:1024]:
        return "application/pdf"
    if re.search(rb"<(!doctype html|html|head|body)\b", data[:2048], re.IGNORECASE):
        return "text/html"
    return "" if b"\0" in data else "text/plain"


def _name(address: Address) -> str:
    last = address.target.partition("?")[0].rstrip("/").rpartition("/")[2]
    return f"{last} ({address.host})" if last else address.host


def _decoded(fetched: Fetched) -> str:
    try:
        text = decode(fetched.data, declared=_charset(fetched))
    except NotText:
        raise ToolException(f"{fetched.address} is no text, although its server says so") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _charset(fetched: Fetched) -> str | None:
    match = _XML_ENCODING.search(fetched.data[:1024])
    for name in (fetched.charset, match[1].decode("ascii") if match else ""):
        try:
            if name and codecs.lookup(name)._is_text_encoding:
                return name
        except (LookupError, ValueError):
            continue
    return declared_charset(fetched.data)


def _pdf(fetched: Fetched) -> str:
    convert = installed_converter()
    if convert is None:
        raise ToolException(
            f"{fetched.address} is a PDF file: it is read where the [docs] extra is installed"
        )
    if b"%PDF-" not in fetched.data[:1024]:  # the converter takes what it does not know for plain text
        raise ToolException(f"{fetched.address} is no PDF, although its server says so")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fetched.pdf")
        path.write_bytes(fetched.data)
        try:
            return convert(path)
        except Exception as error:
            raise ToolException(
                f"{fetched.address} cannot be read as PDF: damaged or protected ({type(error).__name__})"
            ) from error


def _page(fetched: Fetched) -> tuple[str, str]:
    markup = _decoded(fetched)
    match = _TITLE.search(markup)
    title = " ".join(html.unescape(match[1]).split()) if match else ""
    text = _main_part(markup, fetched.address) or _whole_page(markup)
    links = _links(markup, fetched.address, text)
    return title or _name(fetched.address), "\n\n".join(part for part in (text, links) if part)


def _main_part(markup: str, address: Address) -> str:
    if len(markup) > MAX_EXTRACTED_CHARS:
        return ""
    from trafilatura import extract

    # What it cannot parse it says to the log, and it would end up on the terminal.
    if not logging.getLogger("trafilatura").handlers:
        logging.getLogger("trafilatura").addHandler(logging.NullHandler())
    return (
        extract(
            markup,
            url=str(address),
            output_format="markdown",
            include_links=True,
            include_tables=True,
            include_comments=False,
        )
        or ""
    ).strip()


def _whole_page(markup: str) -> str:
    from tools.page_text import html_lines

    return "\n".join(line for _, line, _ in html_lines(markup)[1]).strip()


def _links(markup: str, address: Address, text: str) -> str:
    """Return the page's links that its text does not show: menus and lists are no main part, but lead on."""
    shown = allowed_urls([text]) | {str(address)}
    found: dict[str, str] = {}
    reader = _LinkReader()
    reader.feed(markup[:MAX_EXTRACTED_CHARS])
    reader.close()
    for target, label in reader.links:
        try:
            link = str(redirected(address, target))
        except (ToolException, ValueError):
            continue
        if link not in shown and len(found) < MAX_LINKS:
            found.setdefault(link, " ".join(label.split())[:_LABEL_CHARS])
    lines = (f"- {label}: {link}" if label else f"- {link}" for link, label in found.items())
    return "\n".join(["Links on this page:", *lines]) if found else ""


class _LinkReader(HTMLParser):
    """Collects (href, text) of the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self._target: str | None = None
        self._label: list[str] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._end()
            self._target = dict(attrs).get("href")

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._end()

    @override
    def handle_data(self, data: str) -> None:
        if self._target is not None:
            self._label.append(data)

    @override
    def close(self) -> None:
        super().close()
        self._end()

    def _end(self) -> None:
        if self._target is not None and not self._target.startswith("#"):
            self.links.append((self._target, "".join(self._label)))
        self._target = None
        self._label = []

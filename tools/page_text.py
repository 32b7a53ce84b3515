"""The text of HTML pages, block by block, with the line of the file that each block begins on."""

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup
from bs4.element import CData, NavigableString, PageElement, Tag

_SKIPPED = frozenset({"script", "style", "template", "noscript", "head", "nav", "svg", "iframe", "object"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LINES = frozenset({"li", "tr", "dt", "dd", "br", "option", "summary", "figcaption", "caption"})
_PARAGRAPHS = frozenset(
    {
        "p",
        "div",
        "section",
        "article",
        "main",
        "aside",
        "header",
        "footer",
        "ul",
        "ol",
        "dl",
        "table",
        "pre",
        "form",
    }
    | {"blockquote", "figure", "details", "hr", "body", "html", *_HEADINGS}
)
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")


def html_lines(markup: str) -> tuple[str, list[tuple[int, str, int]]]:
    """Return the page's title and its lines: (line in the file, text, heading level or 0); blank between blocks."""
    # An XML declaration makes the parser warn, and blanking it keeps the lines' numbers; markup without a tag is
    # taken for a file name, and warned about.
    markup = _DECLARATION.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), markup, count=1)
    soup = BeautifulSoup(markup if "<" in markup else f"<p>{markup}</p>", "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    reader = _Reader()
    for node, begins in _events(soup):
        reader.take(node, begins)
    reader.flush()
    return title, reader.lines


def _events(soup: BeautifulSoup) -> Iterator[tuple[PageElement, bool]]:
    """Yield each element at its begin (True) and, if a tag, at its end (False). A stack, not recursion: pages nest deep."""
    stack: list[tuple[Tag, Iterator[PageElement]]] = [(soup, iter(soup.contents))]
    while stack:
        tag, children = stack[-1]
        node = next(children, None)
        if node is None:
            stack.pop()
            yield tag, False
        elif not isinstance(node, Tag):
            yield node, True
        elif node.name not in _SKIPPED:
            yield node, True
            stack.append((node, iter(node.contents)))


class _Reader:
    """Collects the words of inline elements until a block begins or ends."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str, int]] = []
        self._words: list[str] = []
        self._line = 1
        self._level = 0
        self._verbatim = 0

    def take(self, node: PageElement, begins: bool) -> None:
        if isinstance(node, Tag):
            self._tag(node, begins)
        elif type(node) in (NavigableString, CData):
            self._words.append(str(node))

    def _tag(self, tag: Tag, begins: bool) -> None:
        if tag.name in ("td", "th") and not begins:
            self._words.append(" | ")
        if tag.name in _PARAGRAPHS or tag.name in _LINES:
            self.flush()
            if tag.name in _PARAGRAPHS and self.lines and self.lines[-1][1]:
                self.lines.append((self.lines[-1][0], "", 0))
            self._level = _HEADINGS.get(tag.name, 0) if begins else 0
        if tag.name == "pre":
            self._verbatim += 1 if begins else -1
        if begins and tag.sourceline and not "".join(self._words).strip():
            self._line = tag.sourceline

    def flush(self) -> None:
        text = "".join(self._words)
        self._words.clear()
        if self._verbatim:
            rows = [row.rstrip() for row in text.strip("\n").split("\n")]
        else:
            rows = [" ".join(text.split()).removesuffix("|").rstrip()]
        if any(rows):
            self.lines += [(self._line + number, row, self._level) for number, row in enumerate(rows)]

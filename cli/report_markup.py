"""Text from outside as HTML that is only text; and the answer's Markdown with its citations linked."""

import html
import re
from collections.abc import Collection, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from cli.printable import clean, one_line

_CITATION = re.compile(r"\[(\d{1,6})\]")
_SAFE_LINK = re.compile(r"(?i)(?:https?://|mailto:)")
_LINK = re.compile(r"(?i)https?://[^\s<>\"']+\Z")
_MAX_HEADING = 6


def words(text: str, limit: int = 2000) -> str:
    """Return text on one line, escaped: nothing in it is markup or steers the page, a direction mark is spelled out."""
    return html.escape(one_line(text, limit))


def lines(text: str, limit: int = 8000) -> str:
    """Return text with its line ends, escaped."""
    kept = clean(text[: limit * 2])
    return html.escape(kept[:limit] + ("…" if len(kept) > limit or len(text) > limit * 2 else ""))


def place(locator: str) -> str:
    """Return a locator as a link where it is a web address, as code otherwise."""
    shown = words(locator)
    if _LINK.match(locator):
        return f'<a href="{shown}" rel="noopener noreferrer nofollow">{shown}</a>'
    return f"<code>{shown}</code>"


def answer_html(text: str, numbers: Collection[int]) -> str:
    """Return an answer's Markdown as HTML.

    Raw HTML stays text, pictures are not loaded, and only web and mail addresses become links.

    Args:
        text: the Markdown; [n] cites source n.
        numbers: of the sources on the page; other numbers in brackets stay text.
    """
    known = frozenset(numbers)
    parser = MarkdownIt("commonmark", {"html": False, "typographer": False}).enable(
        ["table", "strikethrough"]
    )
    # A picture would be fetched; a reference definition could send "[1]" elsewhere.
    parser.disable(["image", "reference"])
    parser.validateLink = lambda url: bool(_SAFE_LINK.match(url))
    parser.core.ruler.push("citations", lambda state: _rework(state, known))
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser.render(clean(text))


def _table_open(_renderer: Any, _tokens: Any, _at: int, _options: Any, _env: Any) -> str:
    return '<div class="scroll"><table>\n'


def _table_close(_renderer: Any, _tokens: Any, _at: int, _options: Any, _env: Any) -> str:
    return "</table></div>\n"


def _rework(state: StateCore, known: frozenset[int]) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            # The page has h1 and h2 of its own.
            token.tag = f"h{min(_MAX_HEADING, int(token.tag[1]) + (2 if token.tag == 'h1' else 1))}"
        if token.children:
            token.children = _cited(token.children, known)


def _cited(children: Sequence[Token], known: frozenset[int]) -> list[Token]:
    result: list[Token] = []
    depth = 0
    for token in children:
        if token.type == "link_open":
            token.attrSet("rel", "noopener noreferrer nofollow")
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        result += _split(token, known) if token.type == "text" and depth == 0 else [token]
    return result


def _split(token: Token, known: frozenset[int]) -> list[Token]:
    # re.split with one group: text, number, text, number, ..., text
    parts = _CITATION.split(token.content)
    tokens = [_text(parts[0])]
    for number, after in zip(parts[1::2], parts[2::2], strict=True):
        if int(number) in known:
            link = {"href": f"#source-{int(number)}", "class": "cite"}
            tokens += [Token("link_open", "a", 1, attrs=dict(link)), _text(f"[{number}]")]
            tokens += [Token("link_close", "a", -1), _text(after)]
        else:
            tokens.append(_text(f"[{number}]{after}"))
    return tokens


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)

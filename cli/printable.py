"""Text from outside, made fit to print: nothing in it may steer the terminal or break a line of JSON."""

import json
import os
import re
from typing import Any, cast

# Whole escape sequences first, so that no "[31m" is left over: CSI, OSC, DCS and kin, then the two-byte ones.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_LINE_ENDS = re.compile(r"\r\n?|\u2028|\u2029|\x85|\x0b|\x0c")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_PICTURED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Besides the controls: line ends that str.splitlines() knows, and marks that reorder text on a terminal.
_JSON_ESCAPED = re.compile(
    r"[\x7f-\x9f\u2028\u2029\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def clean(text: str) -> str:
    """Return text without escape sequences and control characters; newline and tab stay.

    A lone surrogate becomes U+FFFD; a mark that changes the direction of writing is spelled out as <U+202E>.
    """
    text = _ESCAPES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _CONTROLS.sub("", text)
    text = _SURROGATES.sub("\ufffd", text)
    return BIDI.sub(lambda mark: f"<U+{ord(mark[0]):04X}>", text)


def visible(value: Any) -> Any:
    """Return JSON values whose texts show their control characters as pictures, so that nobody agrees to what is not seen."""
    if isinstance(value, dict):
        return {visible(key): visible(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [visible(item) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    return clean(_PICTURED.sub(lambda char: _picture(ord(char[0])), value))


def _picture(code: int) -> str:
    # The block "Control Pictures" has one for each of the first 32 and for DEL.
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def one_line(text: str, limit: int = 200) -> str:
    """Return clean text on one line of at most `limit` characters."""
    # A megabyte need not be cleaned to show its beginning; escape sequences are short.
    line = " ".join(clean(text[: limit * 4 + 200]).split())
    cut = len(line) > limit or len(text) > limit * 4 + 200
    return line[: limit - 1].rstrip() + "…" if cut else line


def from_argument(text: str) -> str:
    """Return a command-line argument or an input line as Unicode text.

    Under an ascii locale Python hands over bytes as lone surrogates; those bytes are read as UTF-8 here.
    """
    if not _SURROGATES.search(text):
        return text
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return raw.decode("utf-8", "replace")


def json_line(value: Any) -> str:
    """Return JSON on one line that stays one line, and plain text, wherever it is printed."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return _JSON_ESCAPED.sub(lambda char: f"\\u{ord(char[0]):04x}", text)

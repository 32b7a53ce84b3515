"""The JSON object that opens a request, shortened to fit: still valid JSON, with every cut visible."""

import json
from typing import Any, cast

from tools.results import cut

SHORTEST = 120
LIST_LENGTHS = (60, 40, 25, 15, 8, 4)
ADVICE = "shortened to fit this request"


def brief_text(brief: dict[str, Any], max_chars: int) -> str:
    """Return the brief as JSON of at most about `max_chars` characters.

    The longest texts are cut first, each with a note. If that is not enough the longest lists lose their ends, and
    `left_out` says how many items.
    """
    text = _dumped(brief)
    cap = max_chars // 2
    while len(text) > max_chars and cap >= SHORTEST:
        text = _dumped(capped(brief, cap))
        cap //= 2
    for length in LIST_LENGTHS:
        if len(text) <= max_chars:
            break
        dropped: list[int] = []
        short = _shortened(capped(brief, SHORTEST), length, dropped)
        text = _dumped({**short, "left_out": sum(dropped)})
    return text


def capped(value: Any, cap: int) -> Any:
    """Return JSON data with every text cut to at most `cap` characters, note included."""
    if isinstance(value, str):
        return cut(value, cap, ADVICE)
    if isinstance(value, dict):
        return {key: capped(item, cap) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [capped(item, cap) for item in cast("list[Any]", value)]
    return value


def _shortened(value: Any, length: int, dropped: list[int]) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(item, length, dropped) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        dropped.append(max(0, len(items) - length))
        return [_shortened(item, length, dropped) for item in items[:length]]
    return value


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

"""Numbers in words, English and Chinese, written in digits. Pure code.

Only from ten on: "two steps" counts things more often than it states a figure.
"""

import re

_UNITS = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: number
    for number, word in zip(
        range(20, 100, 10),
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        strict=True,
    )
}
_SMALL = _UNITS | _TENS
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_WORD = "|".join((*_SMALL, *_SCALES))
# Their first letters turn most words away at once.
_FIRST = "".join(sorted({word[0] for word in (*_SMALL, *_SCALES)}))
_ENGLISH = re.compile(rf"(?i)\b(?=[{_FIRST}])(?:{_WORD})(?:(?:[\s-]+and)?[\s-]+(?:{_WORD}))*\b")
_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_POWERS = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_CHINESE = re.compile(
    f"[{''.join((*_DIGITS, *_POWERS, *_MYRIADS))}]{{2,20}}|十(?=[个天年月日小元席人家份次名])"
)
_YEAR_DIGITS = 3  # "一九九八" is read digit by digit; "一二" may be "one or two"
LEAST = 10


def in_digits(text: str) -> str:
    """Return a text with its numbers in words, from ten on, in digits: "forty-one days", "四十一天" → "41 days", "41天"."""
    return _CHINESE.sub(_chinese, _ENGLISH.sub(_english, text))


def _english(match: re.Match[str]) -> str:
    total = part = 0
    for word in re.findall(r"[a-z]+", match[0].casefold()):
        scale = _SCALES.get(word)
        if scale == 100:
            part = (part or 1) * scale
        elif scale:
            total, part = total + (part or 1) * scale, 0
        elif word != "and":
            part += _SMALL[word]
    return _shown(total + part, match[0])


def _chinese(match: re.Match[str]) -> str:
    run = match[0]
    if not run.startswith("十") and not any(c in _DIGITS for c in run):
        return run  # "千万" is "by all means" too
    if all(c in _DIGITS for c in run):
        return "".join(str(_DIGITS[c]) for c in run) if len(run) >= _YEAR_DIGITS else run
    total = part = digit = 0
    for c in run:
        if c in _MYRIADS:
            total, part, digit = (total + part + digit) * _MYRIADS[c], 0, 0
        elif c in _POWERS:
            part, digit = part + (digit or 1) * _POWERS[c], 0
        else:
            digit = _DIGITS[c]
    return _shown(total + part + digit, run)


def _shown(number: int, words: str) -> str:
    return str(number) if number >= LEAST else words

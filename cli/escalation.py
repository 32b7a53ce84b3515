"""Gaps that a run cannot close alone, put to a person."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cli.printable import one_line
from cli.review import Answer, show_error
from cli.screen import Screen, typed_line
from schemas.events import Paused

AMOUNTS = ("tool_calls", "replans", "seconds")
# Taken, but not asked for: few runs end on them.
MORE_AMOUNTS = ("tokens", "steps")


def show_gaps(screen: Screen, question: Paused) -> None:
    """Print the gaps, why the run would end, and what it has used."""
    say, value = screen.say, question.question
    screen.line(say("escalate.head", reason=say(f"reason.{value.get('stop_reason')}")), "bold")
    gaps: Sequence[Mapping[str, Any]] = value.get("gaps") or ()
    for gap in gaps:
        screen.line(f"  - {one_line(str(gap.get('description')), 500)}")
    spent: Mapping[str, Mapping[str, Any]] = {key: value.get(key) or {} for key in ("tool_calls", "replans")}
    used = {f"{key}_{word}": spent[key].get(word, "?") for key in spent for word in ("used", "allowed")}
    screen.line(say("escalate.used", **used), "dim")


def ask(screen: Screen, question: Paused) -> Answer | None:
    """Ask what to do; None if the person leaves without an answer.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    show_gaps(screen, question)
    show_error(screen, question)
    while True:
        reply = typed_line(screen.say("escalate.ask"))
        if reply is None:
            screen.line()
            return None
        answer = _take(screen, reply.strip().casefold())
        if answer is not None:
            return answer


def _take(screen: Screen, word: str) -> Answer | None:
    match word:
        case "a" | "accept":
            return {"decision": "accept"}
        case "s" | "stop":
            return {"decision": "stop"}
        case "h" | "hint":
            hint = (typed_line(screen.say("escalate.hint")) or "").strip()
            return {"decision": "hint", "hint": hint} if hint else None
        case "x" | "extend":
            return _extended(screen)
        case _:
            screen.line(screen.say("escalate.again"))
            return None


def _extended(screen: Screen) -> Answer | None:
    amounts: Answer = {}
    for name in AMOUNTS:
        amount = _amount(screen, name)
        if amount is None:
            return None
        amounts[name] = amount
    if any(amounts.values()):
        return {"decision": "extend", **amounts}
    screen.line(screen.say("escalate.nothing"))
    return None


def _amount(screen: Screen, name: str) -> int | float | None:
    while True:
        reply = typed_line(screen.say(f"escalate.{name}"))
        if reply is None:
            screen.line()
            return None
        amount = number(reply.strip() or "0", whole=name != "seconds")
        if amount is not None:
            return amount
        screen.line(screen.say("escalate.number"))


def number(text: str, *, whole: bool) -> int | float | None:
    """Return a number from 0 on, or None if a text is none."""
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None

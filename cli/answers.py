"""An answer given on the command line: words, or JSON, for the question that it fits."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from cli.escalation import AMOUNTS, MORE_AMOUNTS, number
from cli.printable import one_line
from cli.questions import kind_of
from cli.review import Answer
from cli.texts import Texts
from schemas.errors import InputError, NothingToResume
from schemas.events import Paused

_LEAST_ID_CHARS = 4


def chosen(questions: Sequence[Paused], named: str | None, thread_id: str, say: Texts) -> Paused:
    """Return the question that is meant: the one of that id, or the only one.

    Args:
        questions: that the thread waits with.
        named: the beginning of an interrupt id; None = not given.
        thread_id: of the thread.
        say: the words.

    Raises:
        NothingToResume: nothing is asked. InputError: none, or more than one, is meant.
    """
    if not questions:
        raise NothingToResume(say("answer.nothing", thread=one_line(thread_id)))
    if named is None and len(questions) == 1:
        return questions[0]
    meant = [
        q for q in questions if named and len(named) >= _LEAST_ID_CHARS and q.interrupt_id.startswith(named)
    ]
    if len(meant) == 1:
        return meant[0]
    there = ", ".join(f"{q.interrupt_id[:8]} ({one_line(_about(q), 80)})" for q in questions)
    raise InputError(say("answer.which", questions=there))


def _about(question: Paused) -> str:
    value = question.question
    parts = (value.get("step_id"), value.get("tool"))
    return " ".join(str(part) for part in parts if part) or kind_of(question)


def read_answer(question: Paused, words: Sequence[str], say: Texts) -> Answer:
    """Return the resume value that words come to, or the JSON object that they are.

    Raises:
        InputError: they come to nothing that can be sent; the message says what can.
    """
    text = " ".join(words).strip()
    if text.startswith("{"):
        return _json(text, say)
    kind = kind_of(question)
    reader = _READERS.get(kind)
    answer = reader(words[0].strip().casefold(), [word.strip() for word in words[1:]]) if reader else None
    if kind == "clarify":
        answer = {"answers": [word.strip() for word in words]}
    if answer is None:
        raise InputError(say("answer.unclear", answer=one_line(text, 60), words=_WORDS.get(kind, "JSON")))
    return answer


def _json(text: str, say: Texts) -> dict[str, Any]:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise InputError(say("answer.json", error=one_line(str(error)))) from None
    return value


def _plan(word: str, rest: list[str]) -> Answer | None:
    if word in ("approve", "cancel") and not rest:
        return {"decision": word}
    return {"decision": word, "feedback": " ".join(rest)} if word == "revise" and rest else None


def _tool(word: str, rest: list[str]) -> Answer | None:
    match word:
        case "approve" if not rest:
            return {"decision": "approve"}
        case "always" if not rest:
            return {"decision": "approve", "always": True}
        case "reject":
            return {"decision": "reject", "reason": " ".join(rest)}
        case "edit" if rest:
            return {"decision": "edit", "arguments": _arguments(" ".join(rest))}
        case _:
            return None


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # What is no JSON is refused where the answer is read, as whatever else does not fit.
        return text


def _gaps(word: str, rest: list[str]) -> Answer | None:
    if word in ("accept", "stop") and not rest:
        return {"decision": word}
    if word == "hint" and rest:
        return {"decision": "hint", "hint": " ".join(rest)}
    amounts: Answer = {}
    for item in rest:
        name, _, amount = item.partition("=")
        value = number(amount, whole=name != "seconds")
        if name not in AMOUNTS + MORE_AMOUNTS or value is None:
            return None
        amounts[name] = value
    return {"decision": "extend", **amounts} if word == "extend" and amounts else None


_READERS: dict[str, Callable[[str, list[str]], Answer | None]] = {
    "approve": _plan,
    "tool_approval": _tool,
    "escalate": _gaps,
}
_WORDS = {
    "approve": "approve, revise REMARK, cancel",
    "tool_approval": "approve, always, reject [REASON], edit JSON",
    "escalate": "accept, extend tool_calls=N replans=N seconds=N, hint WORDS, stop",
}

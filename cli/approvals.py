"""A tool that waits for a person's yes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cli.editor import Draft
from cli.plan_text import yaml_text
from cli.printable import one_line, visible
from cli.review import Answer, show_error
from cli.screen import Screen, typed_line
from schemas.events import Paused

_LINES, _CHARS = 24, 2000
_YES, _NO = frozenset({"y", "yes", "是", "好"}), frozenset({"n", "no", "reject", "否", "不"})


def show_call(screen: Screen, question: Paused, *, whole: bool = False) -> None:
    """Print which step wants to run which tool, and with what: text, whatever it holds."""
    value, say = question.question, screen.say
    head = say(
        "approval.head",
        step=one_line(str(value.get("step_id")), 64),
        tool=one_line(str(value.get("tool")), 64),
        permission=say(f"permission.{value.get('permission')}"),
    )
    screen.line(head, "bold")
    text = arguments_text(arguments_of(value))
    shown = text if whole else shortened(text)
    for line in shown.splitlines():
        screen.line("    " + line, exact=True)
    if len(shown) < len(text):
        screen.line("    " + say("approval.more", count=len(text) - len(shown)), "dim")


def arguments_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a question shows."""
    given: Any = value.get("arguments")
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return arguments as YAML that cannot steer a terminal."""
    return yaml_text(visible(arguments)).rstrip("\n") if arguments else "{}"


def shortened(text: str) -> str:
    """Return the beginning of a text: what fits on a screen."""
    lines = "\n".join(text.splitlines()[:_LINES])
    return lines[:_CHARS]


def ask(screen: Screen, question: Paused) -> Answer | None:
    """Ask whether a tool may run; None if the person leaves without an answer.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    show_call(screen, question)
    show_error(screen, question)
    while True:
        reply = typed_line(screen.say("approval.ask"))
        if reply is None:
            screen.line()
            return None
        answer = _take(screen, question, reply.strip())
        if answer is not None:
            return answer


def _take(screen: Screen, question: Paused, reply: str) -> Answer | None:
    word, _, rest = reply.partition(" ")
    match word.casefold():
        case key if key in _YES:
            return {"decision": "approve"}
        case "a" | "always":
            return {"decision": "approve", "always": True}
        case key if key in _NO:
            reason = rest.strip() or typed_line(screen.say("approval.reason"))
            return None if reason is None else {"decision": "reject", "reason": reason.strip()}
        case "v" | "view":
            show_call(screen, question, whole=True)
        case "e" | "edit":
            arguments = _inline(screen, rest) if rest.strip() else _in_editor(screen, question)
            return None if arguments is None else {"decision": "edit", "arguments": arguments}
        case _:
            screen.line(screen.say("approval.again"))
    return None


def _inline(screen: Screen, text: str) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        screen.line(screen.say("review.error", error=one_line(str(error))))
        return None
    problems = _problems(value)
    for problem in problems:
        screen.line(screen.say("review.error", error=problem))
    return None if problems else value


def _in_editor(screen: Screen, question: Paused) -> dict[str, Any] | None:
    tool = one_line(str(question.question.get("tool")), 64)
    text = yaml_text(arguments_of(question.question))
    edited = Draft(screen, text, _problems, head=screen.say("edit.arguments", tool=tool)).edit()
    if edited is None:
        screen.line(screen.say("edit.unchanged"))
    return edited


def _problems(value: Any) -> Sequence[str]:
    if isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", value)):
        return []
    return ["arguments are a mapping of names to values"]

"""What a paused run asks, put to the person at the terminal; and how to answer without one."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from rich.text import Text

from cli import review
from cli.printable import one_line
from cli.screen import Screen, typed_line
from schemas.events import Paused

Answer = dict[str, Any]


def plan_question(questions: Sequence[Paused]) -> Paused | None:
    """Return the question whether a plan may run; None if nothing asks that."""
    return next((question for question in questions if _kind(question) == "approve"), None)


def askable(questions: Sequence[Paused]) -> Paused | None:
    """Return the first question that can be put to a person here; None if there is none."""
    return next((question for question in questions if _kind(question) in _ASKERS), None)


def ask(screen: Screen, question: Paused) -> Answer | None:
    """Put a question to the person; None if they leave without an answer.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    return _ASKERS[_kind(question)](screen, question)


def show(screen: Screen, question: Paused) -> None:
    """Print what is asked, as far as this program knows the kind."""
    if _kind(question) == "approve":
        review.show_plan(screen, question)
    elif _kind(question) == "clarify":
        for number, text in enumerate(_texts(question), start=1):
            screen.line(f"{number}. {text}")


def how_to_answer(screen: Screen, thread_id: str, questions: Sequence[Paused]) -> list[Text]:
    """Return the lines that say how to answer what a thread waits for."""
    kinds = sorted({one_line(_kind(question), 40) for question in questions})
    lines = [screen.say("wait.head", thread=thread_id, kind=", ".join(kinds))]
    key = "wait.other"
    if plan_question(questions) is not None:
        key = "wait.approve"
    elif askable(questions) is not None:
        key = "wait.terminal"
    return [Text(line) for line in (*lines, *screen.say(key, thread=thread_id).splitlines())]


def _clarify(screen: Screen, question: Paused) -> Answer | None:
    review.show_error(screen, question)
    screen.line(screen.say("clarify.title"), "bold")
    answers: list[str] = []
    for number, text in enumerate(_texts(question), start=1):
        reply = typed_line(f"{number}. {text} ")
        if reply is None:
            screen.line()
            return None
        answers.append(reply.strip())
    return {"answers": answers}


def _texts(question: Paused) -> list[str]:
    questions: Any = question.question.get("questions")
    return (
        [one_line(str(text), 1000) for text in cast("list[Any]", questions)]
        if isinstance(questions, list)
        else []
    )


def _kind(question: Paused) -> str:
    return str(question.question.get("kind", "?"))


_ASKERS: dict[str, Callable[[Screen, Paused], Answer | None]] = {"approve": review.ask, "clarify": _clarify}

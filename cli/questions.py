"""What a paused run asks, put to the person at the terminal; and how to answer without one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, cast

from rich.text import Text

from cli import approvals, escalation, review
from cli.plan_check import Recheck
from cli.printable import one_line
from cli.review import Answer
from cli.screen import Screen, typed_line
from schemas.events import Paused

_ID_CHARS = 8


@dataclass(frozen=True)
class Asking:
    """Where a person is asked.

    Attributes:
        recheck: of a plan of their own.
    """

    screen: Screen
    recheck: Recheck


def kind_of(question: Paused) -> str:
    """Return what a question is about: approve, clarify, escalate, tool_approval, or something else."""
    return str(question.question.get("kind", "?"))


def plan_question(questions: Sequence[Paused]) -> Paused | None:
    """Return the question whether a plan may run; None if nothing asks that."""
    return next((question for question in questions if kind_of(question) == "approve"), None)


def askable(questions: Sequence[Paused]) -> list[Paused]:
    """Return the questions that can be put to a person here."""
    return [question for question in questions if kind_of(question) in _ASKERS]


def ask_all(asking: Asking, questions: Sequence[Paused]) -> dict[str, Answer] | None:
    """Put the questions to the person, one after the other.

    Returns:
        The answers by interrupt id; None if they leave in the middle: then nothing is answered.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    answers: dict[str, Answer] = {}
    always: set[str] = set()
    for number, question in enumerate(questions, start=1):
        tool = str(question.question.get("tool"))
        if kind_of(question) == "tool_approval" and tool in always:
            answers[question.interrupt_id] = {"decision": "approve", "always": True}
            continue
        if len(questions) > 1:
            asking.screen.line()
            asking.screen.line(
                asking.screen.say("approval.place", number=number, count=len(questions)), "dim"
            )
        answer = _ASKERS[kind_of(question)](asking, question)
        if answer is None:
            return None
        answers[question.interrupt_id] = answer
        if answer.get("always"):
            always.add(tool)
    return answers


def show(screen: Screen, question: Paused) -> None:
    """Print what is asked, as far as this program knows the kind."""
    match kind_of(question):
        case "approve":
            review.show_plan(screen, question)
        case "clarify":
            for number, text in enumerate(_texts(question), start=1):
                screen.line(f"{number}. {text}")
        case "tool_approval":
            approvals.show_call(screen, question)
        case "escalate":
            escalation.show_gaps(screen, question)
        case _:
            pass


def how_to_answer(screen: Screen, thread_id: str, questions: Sequence[Paused]) -> list[Text]:
    """Return the lines that say how to answer what a thread waits for."""
    say, named = screen.say, {kind_of(question) for question in questions}
    words = [say(f"kind.{kind}") if kind in _ASKERS else one_line(kind, 40) for kind in sorted(named)]
    lines = [say("wait.head", thread=thread_id, kind=", ".join(words))]
    thread = quote(thread_id)
    for kind in sorted(named):
        lines += say(f"wait.{kind}" if kind in _ASKERS else "wait.other", thread=thread).splitlines()
    calls = [question for question in questions if kind_of(question) == "tool_approval"]
    if len(calls) > 1:
        lines += [say("wait.id", id=q.interrupt_id[:_ID_CHARS], **_call(q.question)) for q in calls]
    if askable(questions):
        lines.append(say("wait.terminal", thread=thread))
    return [Text(line) for line in lines]


def _call(value: Mapping[str, Any]) -> dict[str, str]:
    return {"step": one_line(str(value.get("step_id")), 64), "tool": one_line(str(value.get("tool")), 64)}


def _clarify(asking: Asking, question: Paused) -> Answer | None:
    screen = asking.screen
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


_ASKERS: dict[str, Callable[[Asking, Paused], Answer | None]] = {
    "approve": lambda asking, question: review.ask(asking.screen, question, asking.recheck),
    "clarify": _clarify,
    "tool_approval": lambda asking, question: approvals.ask(asking.screen, question),
    "escalate": lambda asking, question: escalation.ask(asking.screen, question),
}

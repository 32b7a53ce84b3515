"""clarify: put the planner's questions to a person. Calls no model; the answers go into the next planning call."""

from collections.abc import Mapping
from typing import Any, cast

from langgraph.types import interrupt

from nodes.parts import QuietNode
from schemas.state import TaskState
from tools.results import clean_text

MAX_ROUNDS = 2
MAX_ANSWER_CHARS = 2000
HOW = 'answer {"answers": {"<question>": "<answer>", ...}}; an empty object lets the planner assume'


def make_clarify() -> QuietNode:
    """Return the node. It pauses until a mapping of answers comes; anything else asks again, with the reason."""

    async def clarify(state: TaskState) -> dict[str, Any]:
        error: str | None = None
        while True:
            question = {"kind": "clarify", "questions": state["questions"], "error": error, "how": HOW}
            answers = read_answers(interrupt(question), state["questions"])
            if isinstance(answers, dict):
                return {"answers": [*state["answers"], answers], "questions": []}
            error = answers

    return clarify


def read_answers(given: Any, questions: list[str]) -> dict[str, str] | str:
    """Return each question's answer ("" where there is none), or why the resume value cannot be taken.

    Keys are the questions themselves, or their numbers from 1 on; a list of answers is taken in order.
    """
    answers = cast("dict[str, Any]", given).get("answers") if isinstance(given, dict) else None
    if isinstance(answers, list):
        answers = {str(n): text for n, text in enumerate(cast("list[Any]", answers), start=1)}
    if not isinstance(answers, Mapping):
        return HOW
    named = {str(key).strip(): value for key, value in cast("Mapping[Any, Any]", answers).items()}
    taken: dict[str, str] = {}
    for number, question in enumerate(questions, start=1):
        values = [named.pop(question.strip(), None), named.pop(str(number), None), taken.get(question)]
        value = next((value for value in values if value is not None), "")
        if not isinstance(value, str | int | float | bool):
            return f"the answer to question {number} is not text"
        taken[question] = clean_text(str(value)).strip()[:MAX_ANSWER_CHARS]
    return f"there is no such question: {', '.join(map(repr, named))[:300]}" if named else taken

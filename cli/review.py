"""A paused plan, shown to a person, and the person's answer."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from cli.editor import Draft
from cli.plan_check import Recheck
from cli.plan_text import plan_yaml, without_computed
from cli.plan_tree import plan_details, plan_tree
from cli.printable import one_line
from cli.screen import Screen, typed_line
from schemas.events import Paused

Answer = dict[str, Any]
_YES = frozenset({"", "y", "yes", "是", "好"})
_LINE_CHARS = 500


def plan_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON of the plan that a question shows."""
    plan: Any = value.get("plan")
    return cast("Mapping[str, Any]", plan) if isinstance(plan, Mapping) else {}


def show_plan(screen: Screen, question: Paused) -> None:
    """Print the plan that waits: what it costs at most, its steps, and what is odd about it."""
    plan = plan_of(question.question)
    show_summary(screen, question.question)
    screen.tree(plan_tree(screen.say("review.steps"), plan.get("steps") or (), {}, screen.say))


def show_summary(screen: Screen, value: Mapping[str, Any]) -> None:
    """Print the short of a plan that waits: a few lines, whatever its size."""
    say, plan = screen.say, plan_of(value)
    summary: Mapping[str, Any] = value.get("summary") or {}
    steps: Sequence[Mapping[str, Any]] = plan.get("steps") or ()
    title = say(
        "review.title",
        version=plan.get("version", 1),
        by=say(f"by.{plan.get('created_by', 'planner')}"),
        steps=len(steps),
        waves=summary.get("waves", "?"),
    )
    screen.line(title, "bold")
    path = " → ".join(map(str, summary.get("critical_path") or ()))
    seconds = f"{summary.get('critical_seconds', 0):.0f}"
    cost = say(
        "review.cost_line",
        tools=summary.get("worst_case_tool_calls", "?"),
        models=summary.get("worst_case_model_calls", "?"),
        seconds=seconds,
        path=path,
    )
    rows = [
        ("goal", str(plan.get("goal") or "")),
        ("why", str(plan.get("reason") or "")),
        ("first", ", ".join(map(str, summary.get("first") or ()))),
        ("last", ", ".join(_last(steps))),
        ("cost", cost),
        ("fingerprint", str(value.get("fingerprint", ""))[:12]),
        *(("assumption", str(line)) for line in plan.get("assumptions") or ()),
    ]
    screen.fields([(say(f"review.{name}"), one_line(text, _LINE_CHARS)) for name, text in rows if text])
    for note in value.get("lint") or ():
        screen.line(say("review.lint", note=one_line(str(note), _LINE_CHARS)), "yellow")


def _last(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    needed = {need for step in steps for need in step.get("depends_on") or ()}
    return [str(step.get("id")) for step in steps if step.get("id") not in needed]


def show_error(screen: Screen, question: Paused) -> None:
    """Print why the last answer was not taken, if it was not."""
    if question.question.get("error"):
        screen.note(screen.say("review.error", error=one_line(str(question.question["error"]), 2000)))


def ask(screen: Screen, question: Paused, recheck: Recheck) -> Answer | None:
    """Show the plan and ask; None if the person leaves without an answer.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    show_summary(screen, question.question)
    show_error(screen, question)
    return PlanReview(screen, question.question, recheck).ask()


class PlanReview:
    """What a person does with a plan before they answer.

    Args:
        screen: where they sit.
        value: the question.
        recheck: of a plan of their own.
    """

    def __init__(self, screen: Screen, value: Mapping[str, Any], recheck: Recheck) -> None:
        self._screen, self._say, self._recheck = screen, screen.say, recheck
        self._value, self._own = value, None
        self._draft = Draft(screen, plan_yaml(plan_of(value)), self._problems, head=self._say("edit.plan"))

    def ask(self) -> Answer | None:
        """Ask until there is an answer; None if the person leaves."""
        while True:
            reply = typed_line(self._say("review.ask" if self._own is None else "review.ask_own"))
            if reply is None:
                self._screen.line()
                return None
            answer = self._take(reply.strip().casefold())
            if answer is not None:
                return answer

    def _take(self, word: str) -> Answer | None:
        match word:
            case _ if word in _YES:
                return self._approved()
            case "q" | "quit" | "cancel":
                return {"decision": "cancel"}
            case "v" | "view":
                self._view()
            case "e" | "edit":
                self._edit()
            case "r" | "revise":
                remark = (typed_line(self._say("review.remark")) or "").strip()
                return {"decision": "revise", "feedback": remark} if remark else None
            case _:
                self._screen.line(self._say("review.again"))
        return None

    def _approved(self) -> Answer:
        if self._own is not None:
            return {"decision": "edit", "plan": self._own}
        # What runs is what was shown, whatever has happened since.
        return {"decision": "approve", "fingerprint": self._value.get("fingerprint")}

    def _view(self) -> None:
        steps: Sequence[Mapping[str, Any]] = plan_of(self._value).get("steps") or ()
        self._screen.tree(plan_details(self._say("review.steps"), steps, self._say))

    def _edit(self) -> None:
        own = self._draft.edit()
        if own is None:
            self._screen.line(self._say("edit.unchanged"))
            return
        value = self._recheck(without_computed(own))
        if isinstance(value, Mapping):
            self._own, self._value = without_computed(own), value
            show_summary(self._screen, value)

    def _problems(self, raw: Any) -> Sequence[str]:
        if not isinstance(raw, dict):
            return [f"a plan is a mapping with steps, not {type(raw).__name__}"]
        value = self._recheck(without_computed(cast("dict[str, Any]", raw)))
        return [] if isinstance(value, Mapping) else value

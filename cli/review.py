"""A paused plan, shown to a person, and the person's answer."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from cli.plan_tree import plan_tree
from cli.printable import clean, one_line
from cli.screen import Screen, typed_line
from schemas.errors import InputError
from schemas.events import Paused
from schemas.plan import Plan, PlanDraft

_YES = frozenset({"", "y", "yes", "是", "好"})
# What the program computes: a person's edit of a printed plan may carry it along, and it is not theirs to set.
_COMPUTED = frozenset(Plan.model_fields) - frozenset(PlanDraft.model_fields)


def plan_of(question: Paused) -> Mapping[str, Any]:
    """Return the JSON of the plan that a question shows."""
    plan: Any = question.question.get("plan")
    return cast("Mapping[str, Any]", plan) if isinstance(plan, Mapping) else {}


def show_plan(screen: Screen, question: Paused) -> None:
    """Print the plan that waits: what it costs at most, its steps, and what is odd about it."""
    say, value, plan = screen.say, question.question, plan_of(question)
    summary: Mapping[str, Any] = value.get("summary") or {}
    title = say(
        "review.title",
        version=plan.get("version", 1),
        steps=summary.get("steps", len(plan.get("steps") or ())),
        waves=summary.get("waves", "?"),
        calls=summary.get("worst_case_tool_calls", "?"),
    )
    if plan.get("goal"):
        screen.line(say("review.goal", goal=one_line(str(plan["goal"]), 500)))
    screen.tree(plan_tree(title, plan.get("steps") or (), {}, say))
    for note in value.get("lint") or ():
        screen.line(say("review.lint", note=one_line(str(note), 500)), "yellow")
    screen.line(say("review.fingerprint", fingerprint=str(value.get("fingerprint", ""))[:12]), "dim")


def show_error(screen: Screen, question: Paused) -> None:
    """Print why the last answer was not taken, if it was not."""
    if question.question.get("error"):
        screen.note(screen.say("review.error", error=one_line(str(question.question["error"]), 2000)))


def ask(screen: Screen, question: Paused) -> dict[str, Any] | None:
    """Show the plan and ask; None if the person leaves without an answer.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    show_plan(screen, question)
    show_error(screen, question)
    while True:
        reply = typed_line(screen.say("review.ask"))
        if reply is None:
            screen.line()
            return None
        word = reply.strip().casefold()
        if word in _YES:
            return {"decision": "approve"}
        if word in ("q", "quit", "cancel"):
            return {"decision": "cancel"}
        if word in ("r", "revise"):
            remark = (typed_line(screen.say("review.remark")) or "").strip()
            if remark:
                return {"decision": "revise", "feedback": remark}
            continue
        screen.line(screen.say("review.again"))


def read_plan(file: str) -> dict[str, Any]:
    """Read a plan from a YAML or JSON file, or from standard input if it is "-".

    Raises:
        InputError: the file cannot be read, or holds no mapping; the message gives the line.
    """
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        value: Any = yaml.safe_load(raw.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 at byte {error.start}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{file}: {one_line(_yaml_problem(error))}") from None
    if not isinstance(value, dict):
        raise InputError(f"{file}: a plan is a mapping with steps, not {type(value).__name__}")
    plan = cast("dict[str, Any]", value)
    return {key: item for key, item in plan.items() if key not in _COMPUTED}


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error)


def plan_yaml(plan: Mapping[str, Any]) -> str:
    """Return what a person may edit of a plan, as YAML."""
    editable = {key: plan[key] for key in PlanDraft.model_fields if key in plan}
    return clean(yaml.safe_dump(editable, allow_unicode=True, sort_keys=False, width=100))

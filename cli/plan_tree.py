"""A plan as a tree of steps with their states."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from cli.board import Row
from cli.live import STATE_STYLES
from cli.printable import json_line, one_line
from cli.texts import Texts


def plan_tree(head: str, steps: Sequence[Mapping[str, Any]], rows: Mapping[str, Row], say: Texts) -> Tree:
    """Return the steps as a tree: a step with one dependency hangs below it, one with several stands on its own.

    Args:
        head: the line above the steps.
        steps: JSON of a plan's steps.
        rows: what is known of its steps, by id; may be empty.
        say: the words.
    """

    def label(step: Mapping[str, Any]) -> Text:
        return _label(step, rows.get(str(step.get("id"))), say)

    return _tree(head, steps, label, lambda _: [])


def plan_details(head: str, steps: Sequence[Mapping[str, Any]], say: Texts) -> Tree:
    """Return the whole of a plan as a tree: with criteria, budgets and dependencies below each step."""
    return _tree(head, steps, lambda step: _label(step, None, say), lambda step: _details(step, say))


def _tree(
    head: str,
    steps: Sequence[Mapping[str, Any]],
    label: Callable[[Mapping[str, Any]], Text],
    details: Callable[[Mapping[str, Any]], Sequence[str]],
) -> Tree:
    tree = Tree(Text(head, "bold"), guide_style="dim")
    branches: dict[str, Tree] = {}
    # A plan from outside need not be sorted: go over what is left until nothing fits any more.
    waiting = list(steps)
    while waiting:
        placed = [step for step in waiting if _parent(step) is None or _parent(step) in branches] or waiting
        for step in placed:
            branch = branches.get(_parent(step) or "", tree).add(label(step))
            branches[str(step.get("id"))] = branch
            for line in details(step):
                branch.add(Text(line, "dim"))
        waiting = [step for step in waiting if str(step.get("id")) not in branches]
    return tree


def _details(step: Mapping[str, Any], say: Texts) -> list[str]:
    policy = str(step.get("on_failure", "replan"))
    lines = [say("detail.criterion", text=one_line(str(c), 500)) for c in step.get("success_criteria") or ()]
    lines += [say("detail.check", text=one_line(json_line(check), 300)) for check in step.get("checks") or ()]
    lines.append(_limits(step, say))
    if step.get("optional"):
        lines.append(say("detail.optional"))
    if policy != "replan":
        lines.append(say(f"detail.{policy}"))
    if step.get("replaces"):
        lines.append(say("plans.replaces", step=one_line(str(step["replaces"]), 64)))
    return lines


def _limits(step: Mapping[str, Any], say: Texts) -> str:
    tools: list[str] | None = step.get("tools")
    budget, seconds = step.get("tool_budget", 0), f"{step.get('timeout_seconds', 0):g}"
    if tools == [] or not budget:
        return say("detail.none", seconds=seconds)
    names = say("detail.any") if tools is None else ", ".join(one_line(str(name), 64) for name in tools)
    return say("detail.limits", tools=names, budget=budget, seconds=seconds)


def _parent(step: Mapping[str, Any]) -> str | None:
    needs: list[str] = step.get("depends_on") or []
    return needs[0] if len(needs) == 1 else None


def _label(step: Mapping[str, Any], row: Row | None, say: Texts) -> Text:
    label = Text(one_line(str(step.get("id")), 64), "bold")
    if row is not None:
        label.append("  ").append(say(f"state.{row.state}"), STATE_STYLES[row.state])
        if row.seconds is not None:
            label.append(f"  {row.seconds:.1f}s  {row.used}/{row.allowed}", "dim")
    label.append("  " + one_line(str(step.get("task", "")), 300), "")
    needs: list[str] = step.get("depends_on") or []
    if len(needs) > 1:
        label.append(
            "  " + say("show.after", steps=", ".join(one_line(str(need), 64) for need in needs)), "dim"
        )
    if row is not None and row.replaced_by:
        label.append(f"  → {row.replaced_by}", "dim")
    if row is not None and row.activity:
        label.append(f"  {row.activity}", "red" if row.state == "failed" else "dim")
    return label

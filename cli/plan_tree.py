"""A plan as a tree of steps with their states."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from cli.board import Row
from cli.live import STATE_STYLES
from cli.printable import one_line
from cli.texts import Texts


def plan_tree(head: str, steps: Sequence[Mapping[str, Any]], rows: Mapping[str, Row], say: Texts) -> Tree:
    """Return the steps as a tree: a step with one dependency hangs below it, one with several stands on its own.

    Args:
        head: the line above the steps.
        steps: JSON of a plan's steps.
        rows: what is known of its steps, by id; may be empty.
        say: the words.
    """
    tree = Tree(Text(head, "bold"), guide_style="dim")
    branches: dict[str, Tree] = {}
    # A plan from outside need not be sorted: go over what is left until nothing fits any more.
    waiting = list(steps)
    while waiting:
        placed = [step for step in waiting if _parent(step) is None or _parent(step) in branches] or waiting
        for step in placed:
            parent = branches.get(_parent(step) or "", tree)
            branches[str(step.get("id"))] = parent.add(_label(step, rows.get(str(step.get("id"))), say))
        waiting = [step for step in waiting if str(step.get("id")) not in branches]
    return tree


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

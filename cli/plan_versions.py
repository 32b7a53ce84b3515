"""The versions of a plan, and what changed from each to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.text import Text

from cli.printable import one_line
from cli.screen import Screen
from cli.texts import Texts
from schemas.plan import Plan, Step

ChangeKind = Literal["added", "dropped", "carried", "changed", "kept"]
_MARKS: dict[ChangeKind, tuple[str, str]] = {
    "added": ("+", "green"),
    "dropped": ("-", "red"),
    "carried": ("~", "yellow"),
    "changed": ("~", "yellow"),
    "kept": ("=", "dim"),
}


_ID_CELLS = 32


@dataclass(frozen=True)
class StepChange:
    """What became of one step.

    Attributes:
        kind: carried = the same step, waiting for another one instead.
        step: as it is now; as it was, where it has been dropped.
        replaced_by: ids of the steps that stand in for a dropped one.
        before: what the step waited for; fields: which others have changed.
    """

    kind: ChangeKind
    step: Step
    replaced_by: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


def changes(before: Plan | None, after: Plan) -> list[StepChange]:
    """Return what changed between two versions: new steps first, then dropped, carried, changed and kept ones.

    Args:
        before: None = `after` is the first one.
        after: the later version.
    """
    old = {step.id: step for step in before.steps} if before is not None else {}
    new = {step.id: step for step in after.steps}
    stand_ins = [(step.replaces, step.id) for step in after.steps if step.replaces]
    found = [StepChange("added", step) for step in after.steps if step.id not in old]
    for step in old.values():
        if step.id not in new:
            by = tuple(stand_in for replaced, stand_in in stand_ins if replaced == step.id)
            found.append(StepChange("dropped", step, replaced_by=by))
    found += [_compared(old[step.id], step) for step in after.steps if step.id in old]
    return sorted(found, key=lambda change: list(_MARKS).index(change.kind))


def _compared(old: Step, new: Step) -> StepChange:
    fields = tuple(name for name in Step.model_fields if getattr(old, name) != getattr(new, name))
    if fields == ("depends_on",):
        return StepChange("carried", new, before=tuple(old.depends_on))
    return StepChange("changed" if fields else "kept", new, before=tuple(old.depends_on), fields=fields)


def with_parents(plans: Sequence[Plan]) -> list[tuple[Plan, Plan | None]]:
    """Return each version with the one it came from."""
    versions = {plan.version: plan for plan in plans}
    return [(plan, versions.get(plan.parent_version or 0)) for plan in plans]


def versions_json(plans: Sequence[Plan]) -> list[dict[str, Any]]:
    """Return the versions as JSON values."""
    found: list[dict[str, Any]] = []
    for plan, parent in with_parents(plans):
        names: dict[str, list[str]] = {kind: [] for kind in _MARKS}
        for change in changes(parent, plan):
            names[change.kind].append(change.step.id)
        found.append(plan.model_dump(mode="json") | {"changes": names})
    return found


def print_versions(screen: Screen, plans: Sequence[Plan]) -> None:
    """Print every version, why it was made, and what changed."""
    say = screen.say
    for number, (plan, parent) in enumerate(with_parents(plans)):
        if number:
            screen.line()
        key = "plans.head" if parent is None else "plans.head_from"
        before = parent.version if parent is not None else 0
        screen.line(
            say(
                key,
                version=plan.version,
                by=say(f"by.{plan.created_by}"),
                count=len(plan.steps),
                before=before,
            ),
            "bold",
        )
        if plan.reason:
            screen.line("  " + say("field", name=say("review.why")) + one_line(plan.reason, 500))
        _print_changes(screen, changes(parent, plan))


def _print_changes(screen: Screen, found: Sequence[StepChange]) -> None:
    kept = [change.step.id for change in found if change.kind == "kept"]
    rows: list[tuple[Text, Text, Text]] = []
    for change in found:
        if change.kind != "kept":
            mark, style = _MARKS[change.kind]
            name = Text(one_line(change.step.id, _ID_CELLS), style)
            rows.append((Text(f"  {mark}", style), name, Text("\n".join(_words(change, screen.say)))))
    if kept:
        mark, style = _MARKS["kept"]
        rows.append(
            (Text(f"  {mark}", style), Text(screen.say("plans.kept"), style), Text(", ".join(kept), style))
        )
    screen.grid(rows)


def _words(change: StepChange, say: Texts) -> list[str]:
    step = change.step
    needs, before = (", ".join(names) or say("plans.nothing") for names in (step.depends_on, change.before))
    match change.kind:
        case "added":
            replaces = [say("plans.replaces", step=step.replaces)] if step.replaces else []
            after = [say("show.after", steps=needs)] if step.depends_on else []
            return [one_line(step.task, 300), *replaces, *after]
        case "dropped":
            by = ", ".join(change.replaced_by)
            return [say("plans.replaced_by", steps=by) if by else say("plans.dropped")]
        case "carried":
            return [say("plans.carried", needs=needs, before=before)]
        case _:
            return [say("plans.changed", fields=", ".join(change.fields))]

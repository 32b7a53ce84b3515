"""A plan held against steps that have begun before it was whole: which of them are its own. Pure functions."""

from collections.abc import Collection, Mapping, Sequence

from schemas.ids import free_id
from schemas.plan import Plan, PlanDraft, Step

REASON = "steps that began while the plan was being written, and that the plan does not have"


def same_work(one: Step, other: Step) -> bool:
    """Return whether two steps are the same work. Whether it may fail (`optional`) is no part of it."""
    return one.model_copy(update={"optional": other.optional}) == other


def fitted(draft: PlanDraft, ran: Mapping[str, Step]) -> PlanDraft:
    """Return the plan with new ids for those steps whose id another step has used already: ids are never used twice.

    A step behind a renamed one is another step too: the earlier one has built on other evidence.

    Args:
        draft: a valid plan.
        ran: steps that have begun, by id.
    """
    taken = {step_id.casefold() for step_id in ran}
    names: dict[str, str] = {}
    while True:
        steps = [renamed(step, names) for step in draft.steps]
        clashing = [
            old.id
            for old, new in zip(draft.steps, steps, strict=True)
            if old.id not in names and new.id.casefold() in taken and not is_own(new, ran)
        ]
        if not clashing:
            return draft.model_copy(update={"steps": steps})
        used = taken | {step.id.casefold() for step in steps}
        for step_id in clashing:
            names[step_id] = free_id(step_id, used)
            used.add(names[step_id].casefold())


def is_own(step: Step, ran: Mapping[str, Step]) -> bool:
    """Return whether a step is one of those that have begun."""
    return step.id in ran and same_work(ran[step.id], step)


def renamed(step: Step, names: Mapping[str, str]) -> Step:
    """Return a step with its own id and those of its dependencies replaced."""
    needs = [names.get(need, need) for need in step.depends_on]
    return step.model_copy(update={"id": names.get(step.id, step.id), "depends_on": needs})


def begun_version(begun: Mapping[str, Step], own: Collection[str], plans: Sequence[Plan], goal: str) -> Plan:
    """Return the version that keeps the steps which have begun and are not the final plan's `own`.

    What they depend on stands with them. They are wanted no more: their failure leaves no gap.
    """
    wanted = {step_id for step_id in begun if step_id not in own}
    while more := {need for i in wanted for need in begun[i].depends_on} - wanted:
        wanted |= more
    steps = [step for i, step in begun.items() if i in wanted]
    return Plan(
        goal=goal[:2000],
        steps=[s if s.id in own else s.model_copy(update={"optional": True}) for s in steps],
        version=len(plans) + 1,
        parent_version=plans[-1].version if plans else None,
        created_by="planner",
        reason=REASON,
    )

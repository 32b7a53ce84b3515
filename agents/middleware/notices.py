"""What a worker's model is told of its limits: near them to conclude soon, behind them to conclude now."""

from collections.abc import Sequence

from agents.middleware.at_work import StepAtWork
from schemas.evidence import Source
from tools.ranking import words
from tools.results import cut

NOTHING_NEW = "The texts of the last call stand above already. Answer with the Finding from them, or look for something else."
SOFT_SHARE = 0.8
SHOWN_TASK_CHARS = 300
SHOWN_SOURCES, SHOWN_SOURCE_CHARS = 8, 80


def soft_notice(step: StepAtWork) -> str:
    """Return a word of warning from 80 % of the tool runs or the time on, else ""."""
    ledger, left = step.ledger, step.seconds_left()
    if left < (1 - SOFT_SHARE) * step.seconds:
        return f"About {max(0, left):.0f} seconds are left for this step: conclude soon."
    if ledger.grant > 1 and ledger.used >= SOFT_SHARE * ledger.grant:
        return f"{ledger.grant - ledger.used} of {ledger.grant} tool runs are left: conclude soon."
    return NOTHING_NEW if ledger.brought_nothing_new() else ""


def end_notice(step: StepAtWork) -> str:
    """Return what the model is told when the tools are taken away, else "".

    The task is repeated: a small model takes what it reads last for what it is to do.
    """
    ledger = step.ledger
    if ledger.closed == "no_progress":
        why = "You repeat yourself: the tools are closed."
    elif ledger.closed is not None:
        why = "The step's limit is reached."
    elif ledger.spent and ledger.grant > 0:
        why = f"All {ledger.grant} tool runs are used."
    else:
        return ""
    task = cut(" ".join(step.task.split()), SHOWN_TASK_CHARS, advice="shortened")
    told = f"{why} Conclude now with one Finding for your step alone, from the texts above: {task}"
    sources = named_sources(step.task, [*ledger.sources.values()])
    return f"{told}\nSources: {sources}" if sources else told


def named_sources(task: str, sources: Sequence[Source]) -> str:
    """Return ids and titles of sources, those first whose title and place share most words with the task."""
    wanted = set(words(task))
    shared = {s.id: len(wanted & {*words(f"{s.title} {s.locator}")}) for s in sources}
    first = sorted(sources, key=lambda s: -shared[s.id])[:SHOWN_SOURCES]
    return "; ".join(f"[{s.id}] {s.title or s.locator}"[:SHOWN_SOURCE_CHARS] for s in first)

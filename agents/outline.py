"""What a planner may start from: a plain division of the objective, or for gaps a second try at each.

Small models, asked about five things, like to plan one step about all of them, and then forget two. Shown one step for
each they keep that (measured with a model of 1.5 billion parameters: 0 of 8 plans without an outline, 13 of 15 with one).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from agents.embedded.ask import read_subject
from agents.embedded.ids import new_id
from agents.embedded.requests import DocumentCatalogue
from agents.embedded.text import is_chinese
from schemas.evidence import Gap
from schemas.ids import free_id
from schemas.plan import Step
from tools.results import cut

FEWEST = 2
MAX_TASK_CHARS = 300
AGAIN = {"en": "{} - in another way. Open: {}", "zh": "{}——换一种方法。尚缺：{}"}
TASKS = {"en": ("Find out for {}: {}", ", "), "zh": ("查明{}：{}", "、")}


def outline(objective: str, catalogue: Mapping[str, Any], max_steps: int) -> list[dict[str, Any]]:
    """Return a step for each thing that the objective is about, and one that concludes; nothing if it is not so clear.

    Args:
        objective: the person's words.
        catalogue: see ToolRegistry.catalogue.
        max_steps: that a plan may have.
    """
    try:
        documents = DocumentCatalogue.model_validate(catalogue.get("documents") or {})
    except ValidationError:  # of a tool of one's own
        return []
    subject = read_subject(objective, documents)
    things = subject.entities
    if not FEWEST <= len(things) < max_steps:
        return []
    task, comma = TASKS["zh" if is_chinese(objective) else "en"]
    what = comma.join(subject.aspects)
    ids: list[str] = []
    steps: list[dict[str, Any]] = [
        {"id": new_id(thing, ids), "task": task.format(thing, what)[:MAX_TASK_CHARS], "depends_on": []}
        for thing in things
    ]
    needs, last = list(ids), cut(" ".join(objective.split()), MAX_TASK_CHARS, advice="shortened")
    return [*steps, {"id": new_id("conclude", ids), "task": last, "depends_on": needs, "tools": []}]


def repair_outline(gaps: Sequence[Gap], steps: Mapping[str, Step]) -> list[dict[str, Any]]:
    """Return a step for each gap that a step has left and another try may close; it depends on what the first one did.

    Args:
        gaps: of the review.
        steps: all so far, by id; no id is used again.
    """
    used = {step_id.casefold() for step_id in steps}
    again: dict[str, str] = {}
    open_ = {gap.step_id: gap.description for gap in gaps if gap.step_id in steps and gap.recoverable}
    for step_id in filter(None, open_):
        again[step_id] = free_id(step_id, used, joint="-")
        used.add(again[step_id].casefold())
    return [
        {
            "id": new,
            "task": _task_again(steps[old].task, open_[old]),
            "depends_on": [again.get(need, need) for need in steps[old].depends_on],
            "replaces": old,
            **({"tools": []} if steps[old].tools == [] else {}),
        }
        for old, new in again.items()
    ]


def _task_again(task: str, gap: str) -> str:
    tried = cut(" ".join(task.split()), MAX_TASK_CHARS // 2, advice="shortened")
    told = AGAIN["zh" if is_chinese(tried) else "en"].format(tried, " ".join(gap.split()))
    return cut(told, MAX_TASK_CHARS, advice="shortened")

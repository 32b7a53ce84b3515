"""What a planner may start from: a plain division of the objective, or for gaps a second try at each.

Small models, asked about five things, like to plan one step about all of them, and then forget two. Shown one step for
each they keep that (measured with a model of 1.5 billion parameters: 0 of 8 plans without an outline, 5 of 5 with one).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from agents.embedded.ask import read_subject
from agents.embedded.ids import new_id
from agents.embedded.requests import DocumentCatalogue
from agents.embedded.text import is_chinese
from schemas.evidence import Gap
from tools.results import cut

FEWEST = 2
MAX_TASK_CHARS = 300
AGAIN = {"en": "{} - in another way. Open: {}", "zh": "{}——换一种方法。尚缺：{}"}
MAX_ID_CHARS = 64
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


def repair_outline(gaps: Sequence[Gap], tasks: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a step for each gap that a step has left and another try may close.

    Args:
        gaps: of the review.
        tasks: of all steps so far, by id; no id is used again.
    """
    used = {step_id.casefold() for step_id in tasks}
    steps: list[dict[str, Any]] = []
    for gap in gaps:
        if gap.step_id is None or gap.step_id not in tasks or not gap.recoverable:
            continue
        step_id = _second(gap.step_id, used)
        used.add(step_id.casefold())
        tried = cut(" ".join(tasks[gap.step_id].split()), MAX_TASK_CHARS // 2, advice="shortened")
        task = AGAIN["zh" if is_chinese(tried) else "en"].format(tried, " ".join(gap.description.split()))
        task = cut(task, MAX_TASK_CHARS, advice="shortened")
        steps.append({"id": step_id, "task": task, "depends_on": [], "replaces": gap.step_id})
    return steps


def _second(step_id: str, used: Collection[str]) -> str:
    number = 2
    while (name := f"{step_id[: MAX_ID_CHARS - 4]}-{number}").casefold() in used:
        number += 1
    return name

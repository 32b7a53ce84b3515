"""A plain division of an objective, for the planner to start from: the things of the material that it is about.

Small models, asked about five things, like to plan one step about all of them, and then forget two. Shown one step for
each they keep that (measured with a model of 1.5 billion parameters: 0 of 8 plans without an outline, 5 of 5 with one).
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.embedded.ask import read_subject
from agents.embedded.ids import new_id
from agents.embedded.requests import DocumentCatalogue
from agents.embedded.text import is_chinese
from tools.results import cut

FEWEST = 2
MAX_TASK_CHARS = 300
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

"""What really happened in a run, noted where it happened: by the models and the tools themselves."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

from langgraph.config import get_config

from tools.results import clean_text

ROLES = ("planner", "replanner", "worker", "reviewer", "writer")
# Never returned by a tool, so that it can be looked for in what a run reports.
UNKNOWN_IDS = ("s999", "zz-unknown", "deadbeef")
UNKNOWN_URL = "https://evil.test/invented"
INVENTED_FIGURE = "98765.4321"


@dataclass(frozen=True)
class Body:
    """One start of a tool body."""

    step_id: str
    tool: str
    query: str


@dataclass
class World:
    """The truth of one run, and its dice.

    Attributes:
        calm: nothing waits and nothing is retried; for runs on the real clock.
        hostility: by role, the share of answers that are wrong.
        calls: model calls by (role, step); `raised` those of them that raised.
        returned: source ids that the tools of a step named; `digests` of the texts they returned.
        succeeded: bodies that returned, by step; `filled` those that returned something.
        verdicts: what the worker of a step said of the criteria, in each Finding it gave.
        allowed: what the write tool may be called with, once for each yes; `always`: a person does not want to be asked.
        writing: bodies of the write tool that are at work.
        faults: what a model or a tool has seen and must not see.
    """

    seed: int
    calm: bool = False
    max_request_chars: int = 30_000
    hostility: dict[str, float] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    raised: Counter[tuple[str, str]] = field(default_factory=Counter)
    dice: Counter[tuple[str, ...]] = field(default_factory=Counter)
    bodies: list[Body] = field(default_factory=list)
    returned: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    digests: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    succeeded: Counter[str] = field(default_factory=Counter)
    verdicts: defaultdict[str, list[list[bool]]] = field(default_factory=lambda: defaultdict(list))
    filled: Counter[str] = field(default_factory=Counter)
    step_of_task: dict[str, str] = field(default_factory=dict)
    moods: dict[tuple[str, str], str] = field(default_factory=dict)
    allowed: list[Any] = field(default_factory=list)
    always: bool = False
    writing: int = 0
    cited: list[str] | None = None
    faults: list[str] = field(default_factory=list)

    def roll(self, *key: str) -> Random:
        """Return fresh dice for a key: the same for the n-th roll of it, whatever runs beside it."""
        self.dice[key] += 1
        return Random(f"{self.seed}/{key}/{self.dice[key]}")

    def step_here(self) -> str:
        """Return the step whose worker is calling."""
        return self.step_of_task.get(task_here(), "?")

    def gave(self, step_id: str, text: Any = None, *ids: str) -> None:
        """Note what a body is about to return."""
        self.succeeded[step_id] += 1
        self.returned[step_id].update(ids)
        if text not in (None, "", [], {}):
            self.filled[step_id] += 1
            self.digests[step_id].add(digest(str(text)))

    def said(self, step_id: str, finding: Any) -> None:
        """Note a Finding that a worker is about to give."""
        given = finding.get("criteria") if isinstance(finding, dict) else None
        met = [c.get("met") is True for c in given if isinstance(c, dict)] if isinstance(given, list) else []
        self.verdicts[step_id].append(met)

    def fault(self, text: str) -> None:
        """Note a violation; the run's checks report it."""
        self.faults.append(text)


def task_here() -> str:
    """Return the id of the `execute` task that the caller runs in."""
    namespace = str(get_config().get("configurable", {}).get("checkpoint_ns", ""))
    return namespace.split("|")[0].rpartition(":")[2]


def digest(text: str) -> str:
    return hashlib.sha256(clean_text(text).encode()).hexdigest()

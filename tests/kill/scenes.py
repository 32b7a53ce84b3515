"""What a run to be killed is about: its plan, its repairs, the tool calls of each step. The objective names the scene.

"work" and "record" are fixed; "scene <n>" is drawn from the seed n: 3 to 15 steps, up to two replans, plan and tool
approvals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from tests.scripted import step

Rounds = list[list[tuple[str, str]]]
MAX_KILLS = 3
MOST: dict[str, Any] = {"tool_budget": 10, "timeout_seconds": 60}


@dataclass(frozen=True)
class Scene:
    """One run, as its models and tools will have it.

    Attributes:
        first: steps of the planner's plan; repairs: those of each replan in turn.
        rounds: for each step its rounds of tool calls, (tool, id). An id with "bad" ends with an error.
        unmet: steps whose finding does not meet its criterion.
        review: which plans wait for a person.
    """

    first: list[dict[str, Any]]
    rounds: dict[str, Rounds]
    repairs: list[list[dict[str, Any]]] = field(default_factory=list)
    unmet: frozenset[str] = frozenset()
    review: str = "never"

    def sources(self) -> list[str]:
        """Return what findings may cite. A record may be cut off by a kill, and is then not made again."""
        calls = [call for rounds in self.rounds.values() for r in rounds for call in r]
        return [f"s-{name}" for tool, name in calls if tool != "record"]


WORK = Scene(
    first=[
        step("a", **MOST),
        step("b", **MOST),
        step("c", **MOST),
        step("d", "a", "b", **MOST),
        step("e", "b", tools=[]),
        step("f", "c", **MOST),
    ],
    rounds={
        "a": [[("fetch", "a1"), ("probe", "a2")], [("fetch", "a3")]],
        "b": [[("fetch", "b1-bad")], [("fetch", "b2")]],
        "c": [[("probe", "c1")], [("fetch", "c2"), ("fetch", "c3")]],
        "d": [[("fetch", "d1")]],
        "e": [],
        "f": [[("fetch", "f1"), ("fetch", "f2")]],
        "c2": [[("fetch", "c4")]],
    },
    repairs=[[step("c2", replaces="c", **MOST)]],
    unmet=frozenset({"c"}),
)
RECORD = Scene(
    first=[step("w", tools=["fetch", "record"], **MOST)],
    rounds={"w": [[("record", "w1")], [("fetch", "w2")]]},
)


@cache
def scene_of(objective: str) -> Scene:
    """Return the scene that an objective names."""
    if objective.startswith("scene "):
        return drawn(Random(objective))
    return {"work": WORK, "record": RECORD}[objective]


def drawn(rng: Random) -> Scene:
    """Return a scene by chance."""
    ids = [f"s{n}" for n in range(1, rng.randint(3, 15) + 1)]
    rounds: dict[str, Rounds] = {}
    first: list[dict[str, Any]] = []
    for n, name in enumerate(ids):
        needs = rng.sample(ids[:n], min(n, rng.choice((0, 1, 1, 2))))
        if needs and rng.random() < 0.1:
            rounds[name] = []
            first.append(step(name, *needs, tools=[]))
            continue
        rounds[name] = rounds_of(rng, name)
        first.append(step(name, *needs, **tools_of(rounds[name])))
    unmet: set[str] = set()
    repairs: list[list[dict[str, Any]]] = []
    broken = rng.choice([name for name in ids if rounds[name]])
    for n in range(rng.choice((0, 1, 1, 2))):
        unmet.add(broken)
        again = f"{ids[n]}-again"
        rounds[again] = [[("fetch", f"{again}1")], [("probe", f"{again}2")]]
        repairs.append([step(again, replaces=broken, **MOST)])
        broken = again
    return Scene(first, rounds, repairs, frozenset(unmet), rng.choice(("never", "first", "always")))


def rounds_of(rng: Random, name: str) -> Rounds:
    """Return a step's rounds, which leave room in its budget for what kills cut off: that runs again, and counts."""
    while not fits(rounds := some_rounds(rng, name)):
        pass
    return rounds


def fits(rounds: Rounds) -> bool:
    """Return whether the budget is enough if each kill comes in the widest round."""
    widths = [len(r) for r in rounds]
    return sum(widths) + MAX_KILLS * max(widths) <= MOST["tool_budget"]


def some_rounds(rng: Random, name: str) -> Rounds:
    """Return rounds of which the last call always succeeds, so that there is something to cite."""
    names = (f"{name}.{n}" for n in range(1, 10))
    rounds: Rounds = [
        [(rng.choice(("fetch", "fetch", "probe")), next(names)) for _ in range(rng.randint(1, 2))]
        for _ in range(rng.randint(0, 1))
    ]
    if rng.random() < 0.15:
        rounds.append([("fetch", f"{next(names)}-bad")])
    if rng.random() < 0.12:
        rounds.append([(rng.choice(("record", "note")), next(names))])
    return [*rounds, [("fetch", next(names)) for _ in range(rng.randint(1, 2))]]


def tools_of(rounds: Rounds) -> dict[str, Any]:
    """Return a step's fields: what needs a person's yes has to be named."""
    used = {tool for r in rounds for tool, _ in r}
    return MOST | ({"tools": sorted(used)} if used & {"record", "note"} else {})

"""Seeded plans to measure with: what each step's tool takes, and which steps fail once and are replanned."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodes.lint import critical_path
from schemas.plan import Plan, Step


@dataclass(frozen=True)
class Case:
    """A plan, the seconds that each step's tool takes, and the steps that fail once and are replanned as <id>-2."""

    family: str
    plan: Plan
    seconds: dict[str, float]
    fails: frozenset[str] = frozenset()

    @property
    def critical(self) -> float:
        """The length of the critical path in seconds, a repair included."""
        return sum(self.seconds[i] for i in self.way)

    @property
    def way(self) -> list[str]:
        """The ids of the steps on the critical path, repairs last."""
        return [*critical_path(self.plan, self.seconds)[0], *(step.id for step in self.repairs)]

    @property
    def repairs(self) -> list[Step]:
        """The steps that stand in for those that fail."""
        steps = [self.plan.step(i) for i in self.fails]
        return [s.model_copy(update={"id": f"{s.id}-2", "replaces": s.id}) for s in steps]

    @property
    def waves_alone(self) -> float:
        """The seconds of the plan in waves that cost nothing: each as long as its longest step."""
        done: set[str] = set()
        total = sum(self.seconds[s.id] for s in self.repairs)
        while ready := ready_steps(self.plan.steps, done):
            total += max(self.seconds[s.id] for s in ready)
            done |= {s.id for s in ready}
        return total


def ready_steps(steps: Sequence[Step], done: set[str]) -> list[Step]:
    """Return the steps that are not done, whose dependencies are."""
    return [s for s in steps if s.id not in done and set(s.depends_on) <= done]


def step(step_id: str, *needs: str) -> Step:
    """Return a step that one tool run carries out."""
    return Step(
        id=step_id, task=f"do {step_id}", success_criteria=["known"], depends_on=list(needs), tool_budget=1
    )


def chains(_: random.Random) -> list[Step]:
    """Per-item chains (search, read, extract for each of five items), then one conclusion."""
    steps = [step(f"i{n}-{k}", *([f"i{n}-{k - 1}"] if k else [])) for n in range(5) for k in range(3)]
    return [*steps, step("end", *(f"i{n}-2" for n in range(5)))]


def diamond(_: random.Random) -> list[Step]:
    """One start, two branches of two steps each, one end."""
    return [
        step("start"),
        step("left", "start"),
        step("right", "start"),
        step("left2", "left"),
        step("right2", "right"),
        step("end", "left2", "right2"),
    ]


def randomly(rng: random.Random) -> list[Step]:
    """A random plan of 12 steps, each with up to three dependencies among the earlier ones."""
    return [
        step(f"s{n}", *(f"s{m}" for m in rng.sample(range(n), min(n, rng.randint(0, 3))))) for n in range(12)
    ]


FAMILIES: dict[str, Callable[[random.Random], list[Step]]] = {
    "chains": chains,
    "diamond": diamond,
    "random": randomly,
    "replan": chains,
}


def cases(family: str, mean: float, plans: int, seed: int) -> list[Case]:
    """Return seeded plans of a family; latencies lie between a quarter of the mean and two and a half times it."""
    found: list[Case] = []
    for n in range(plans):
        rng = random.Random(f"{family}-{seed}-{n}")
        steps = FAMILIES[family](rng)
        ids = [s.id for s in steps]
        fails = frozenset([ids[-1]]) if family == "replan" else frozenset[str]()
        seconds = {i: mean * rng.triangular(0.25, 2.5, 0.6) for i in [*ids, *(f"{i}-2" for i in fails)]}
        found.append(Case(family, Plan(goal="g", steps=steps), seconds, fails))
    return found

"""Plans, repairs and reviews: sound ones, and ones that break a rule."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.hostile.text import anything, broken, nasty, phrase

CHECKS: tuple[dict[str, Any], ...] = (
    {"type": "min_sources", "count": 1},
    {"type": "min_sources", "count": 3},
    {"type": "text_matches", "pattern": "found"},
    {"type": "text_matches", "pattern": "(x+x+)+y"},
    {"type": "text_matches", "pattern": "(unclosed"},
    {"type": "file_exists", "path": "../../etc/passwd"},
    {"type": "json_path_equals", "path": "a.0.b", "value": 1},
    {"type": "sql_returns", "sql": "select 1; drop table x"},
)


def plan_of(rng: Random, brief: dict[str, Any]) -> dict[str, Any]:
    """Return a sound plan of one to eight steps over the tools that the planner was told of."""
    most = min(brief["limits"]["max_steps"], 20 if rng.random() < 0.05 else 6)
    ids = [f"{rng.choice('abc')}{n}" for n in range(rng.randint(1, most))]
    tools = [tool["name"] for tool in brief["tools"]]
    steps = [step_of(rng, i, ids[:n], tools) for n, i in enumerate(ids)]
    rng.shuffle(steps)
    return {"goal": phrase(rng), "steps": steps, "assumptions": [nasty(rng)] if rng.random() < 0.1 else []}


def step_of(rng: Random, step_id: str, earlier: list[str], tools: list[str]) -> dict[str, Any]:
    needs = [i for i in earlier if rng.random() < 0.3]
    step: dict[str, Any] = {
        "id": step_id,
        "task": f"find out {step_id}: {phrase(rng)}",
        "success_criteria": [f"{step_id} criterion {n}" for n in range(rng.randint(1, 3))],
        "depends_on": needs,
        "tool_budget": rng.choice((0, 1, 2, 3, 4, 10)),
        "optional": rng.random() < 0.15,
    }
    kind = rng.random()
    if kind < 0.2:
        step["tools"] = []
    elif kind < 0.6:
        step["tools"] = rng.sample(tools, rng.randint(0, len(tools)))
    if rng.random() < 0.3:
        step["timeout_seconds"] = rng.choice((10, 30, 600))
    if rng.random() < 0.2:
        step["on_failure"] = rng.choice(("retry", "ask", "replan"))
    if rng.random() < 0.08:
        step["checks"] = [rng.choice(CHECKS)]
    return step


def wrong_plan(rng: Random, brief: dict[str, Any]) -> dict[str, Any]:
    """Return a plan with something wrong with it."""
    plan = plan_of(rng, brief)
    steps = plan["steps"]
    if rng.random() < 0.4:
        return _wrong_whole(rng, plan)
    first, last = steps[0], steps[-1]
    clash = rng.choice((first["id"], first["id"].upper(), f" {first['id']} "))
    changes: tuple[dict[str, Any], ...] = (
        {"depends_on": [last["id"]]},
        {"depends_on": ["ghost"]},
        {"tools": ["ghost", "Finding"]},
        {"tool_budget": rng.choice((-1, 11, 50, "3", 2.0, True, None))},
        {"timeout_seconds": rng.choice((0, -1, 1e9, "10", float("nan")))},
        {"id": rng.choice(("", " ", "../x", "a" * 65, "步骤", "\ud800", "a\n", clash))},
        {"task": nasty(rng) or "x", "success_criteria": [nasty(rng) or "x"]},
        {"replaces": rng.choice((last["id"], nasty(rng)))},  # claims to stand in for one beside it
    )
    if rng.random() < 0.2:
        last["depends_on"] = [first["id"]]
    first.update(rng.choice(changes))
    return plan


def _wrong_whole(rng: Random, plan: dict[str, Any]) -> dict[str, Any]:
    steps = plan["steps"]
    changes: tuple[dict[str, Any], ...] = (
        {"steps": [*steps, dict(steps[0])]},
        {"steps": [step_of(rng, f"n{n}", [], []) for n in range(rng.choice((21, 100)))]},
        {"steps": rng.choice(([], None, {}, "[]", [None], [[]]))},
        {"steps": [], "questions": [nasty(rng) for _ in range(rng.randint(1, 7))]},
        {"questions": [nasty(rng) for _ in range(rng.randint(1, 7))]},
        {"assumptions": [nasty(rng) * rng.choice((1, 100)) for _ in range(5)]},
        broken(rng, plan),
    )
    return plan | rng.choice(changes)


def repair_of(rng: Random, brief: dict[str, Any]) -> dict[str, Any]:
    """Return a sound repair: new ids, each standing in for something that was tried."""
    taken = {*brief["taken_ids"]}
    fresh = [i for i in (f"r{n}" for n in range(60)) if i not in taken]
    tools = [tool["name"] for tool in brief["tools"]]
    passed = [step["step_id"] for step in brief["passed"]]
    steps: list[dict[str, Any]] = []
    for tried in brief["tried"][:3] or [None]:
        step = step_of(rng, fresh.pop(0), passed, tools)
        if tried is not None and tried["error_type"] != "dependency_failed":
            step["replaces"] = tried["step_id"]
        steps.append(step)
    return {"goal": "", "steps": steps}


def wrong_repair(rng: Random, brief: dict[str, Any]) -> dict[str, Any]:
    """Return a repair that reuses ids, repeats passed work, replaces what passed, or hides a failure."""
    plan = repair_of(rng, brief)
    first = plan["steps"][0]
    passed = [step["step_id"] for step in brief["passed"]]
    kind = rng.randrange(7)
    if kind == 0:
        first["id"] = rng.choice(brief["taken_ids"])
    elif kind == 1 and passed:
        first["task"] = "  " + rng.choice(brief["passed"])["task"].upper()
    elif kind == 2:
        first["replaces"] = rng.choice([*passed, "ghost", first["id"], *brief["taken_ids"]])
    elif kind == 3:
        first["optional"] = True
    elif kind == 4:
        plan["steps"] = []
    elif kind == 5:
        first["depends_on"] = [rng.choice([first["id"], "ghost", *brief["taken_ids"]])]
    else:
        plan = broken(rng, plan)
    return plan


def review_of(brief: dict[str, Any]) -> dict[str, Any]:
    """Return what an honest reviewer says."""
    failed = [step for step in brief["steps"] if not step["passed"] and not step["optional"]]
    gaps = [{"description": f"{s['id']} is open", "step_id": s["id"], "recoverable": True} for s in failed]
    return {"approved": not gaps, "gaps": gaps[:20]}


def wrong_review(rng: Random, brief: dict[str, Any]) -> dict[str, Any]:
    """Return a review that approves everything or nothing, or breaks the schema."""
    ids = [step["id"] for step in brief["steps"]]
    gap = {
        "description": (nasty(rng) or "x")[:1000],
        "step_id": rng.choice([*ids, "ghost", None]),
        "recoverable": rng.random() < 0.7,
    }
    kinds: tuple[dict[str, Any], ...] = (
        {"approved": True, "gaps": []},
        {"approved": True, "gaps": [gap]},
        {"approved": False, "gaps": []},
        {"approved": False, "gaps": [gap]},
        {"approved": False, "gaps": [gap] * 20},
        {"approved": rng.choice(("true", 1, None)), "gaps": []},
        {"approved": False, "gaps": [gap] * 21},
        {"approved": False, "gaps": anything(rng)},
        broken(rng, review_of(brief)),
    )
    return kinds[0] if rng.random() < 0.3 else rng.choice(kinds)

"""The person of a hostile run: nonsense for a while, in the end a decision."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from tests.hostile.text import anything, nasty, phrase

if TYPE_CHECKING:
    from tests.hostile.run import Run


def note_approvals(questions: Mapping[str, Any], answers: Mapping[str, Any], run: Run) -> None:
    """Note which arguments a person has allowed the write tool to run with."""
    for name, answer in answers.items():
        if questions[name]["kind"] != "tool_approval":
            continue
        decision = answer.get("decision") if isinstance(answer, dict) else None
        if decision == "approve":
            run.world.allowed.append(questions[name]["arguments"].get("query"))
            run.world.always = run.world.always or answer.get("always") is True
        elif decision == "edit":
            run.world.allowed.append("edited")


def answer_to(question: Mapping[str, Any], rng: Random, run: Run, *, final: bool) -> Any:
    """Return what a person answers: nonsense for a while, in the end a decision."""
    if question["kind"] == "tool_approval":
        return _tool_decision(rng, run, final=final)
    if not final and rng.random() < 0.3:
        return anything(rng) if rng.random() < 0.5 else {"decision": anything(rng), "answers": anything(rng)}
    if question["kind"] == "clarify":
        texts = {q: nasty(rng)[:5_000] for q in question["questions"] if rng.random() < 0.5}
        return {"answers": {} if final else texts}
    if question["kind"] == "escalate":
        return _on_gaps(rng, run, final=final)
    return _on_plan(question["plan"], rng, run, final=final)


def _on_plan(plan: dict[str, Any], rng: Random, run: Run, *, final: bool) -> Any:
    if final:
        return {"decision": "cancel"}
    edited = {"goal": "g", "steps": [dict(step) for step in plan["steps"]]}
    edited["steps"][0]["task"] = phrase(rng)
    kind = rng.randrange(7)
    if kind == 0:
        run.revisions += 1
        return {"decision": "revise", "feedback": nasty(rng).strip() or "shorter"}
    if kind == 1:
        return {"decision": "edit", "plan": edited}
    if kind == 2:
        return {"decision": "edit", "plan": anything(rng)}
    if kind == 3 and rng.random() < 0.2:
        return {"decision": "cancel"}
    return {"decision": "approve"}


def _on_gaps(rng: Random, run: Run, *, final: bool) -> Any:
    kind = 0 if final else rng.randrange(4)
    if kind == 0:
        return {"decision": "accept"}
    if kind == 1:
        more = {
            "tool_calls": rng.choice((0, 3, -1, "9")),
            "replans": rng.choice((0, 1)),
            "seconds": rng.choice((0, 60)),
        }
        return {"decision": "extend", **more}
    if kind == 2:
        run.revisions += 1
        return {"decision": "hint", "hint": nasty(rng).strip() or "elsewhere"}
    return {"decision": rng.choice(("stop", "give up"))}


def _tool_decision(rng: Random, run: Run, *, final: bool) -> Any:
    kind = 0 if final else rng.randrange(4)
    if kind == 0:
        return {"decision": "reject", "reason": "no"}
    if kind == 1:
        return {"decision": "approve", "always": rng.choice((False, False, True, "yes", 1))}
    if kind == 2:
        return {"decision": "edit", "arguments": {"query": "edited"}}
    return {"decision": rng.choice(("yes", None, {}, "APPROVE")), "arguments": anything(rng)}

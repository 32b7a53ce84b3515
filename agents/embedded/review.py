"""The embedded reviewer and replanner: unmet criteria are gaps; a gap is tried once more with other words."""

import re
from collections.abc import Sequence
from typing import Any

from agents.embedded import phrases
from agents.embedded.files import FILE_TOOLS
from agents.embedded.ids import SECOND_TRY
from agents.embedded.match import Wanted, read_criterion
from agents.embedded.plan import (
    MAX_STEP_BUDGET,
    TABLE_TOOL,
    comparing_step,
    concluding_step,
    document_tools,
)
from agents.embedded.requests import JudgedStep, ReplannerRequest, ReviewerRequest, TriedStep
from agents.embedded.text import concept_words, cut, is_chinese
from agents.embedded.work import other_words

RECOVERABLE = frozenset(
    {"criteria_unmet", "unsupported_claim", "no_progress", "timeout", "transient", "dependency_failed"}
)

NOT_THERE = frozenset({"criteria_unmet", "unsupported_claim", "no_progress"})


def review(request: ReviewerRequest) -> dict[str, Any]:
    """Return a Review as a dict: approved if every step passed, and not on reasoning alone."""
    chinese = is_chinese(request.objective)
    gaps = [gap for step in request.steps if not step.passed for gap in _gaps(step, chinese)]
    grounded = any(step.passed and not step.reasoning for step in request.steps)
    if not gaps and not grounded:
        text = (
            "没有任何步骤得到资料支持，只有推断。"
            if chinese
            else "No step is supported by a source; there is only reasoning."
        )
        gaps = [{"description": text, "step_id": None, "recoverable": False}]
    # A skipped step follows from another gap; if all do not fit, what was not found comes first.
    gaps.sort(key=lambda gap: bool(gap.pop("skipped", False)))
    return {"approved": not gaps, "gaps": gaps[:20]}


def _gaps(step: JudgedStep, chinese: bool) -> list[dict[str, Any]]:
    step_id = step.id or None
    skipped = step.error_type == "dependency_failed"
    recoverable = step.error_type in RECOVERABLE and not SECOND_TRY.search(step.id)
    if phrases.file_clause(step.task) and step.error_type in NOT_THERE:
        recoverable = False  # a folder does not list other names the second time
    if skipped:
        text = (
            f"未执行：{step.task}"
            if chinese
            else f"Not done, because a step before it did not pass: {step.task}"
        )
        return [
            {"description": cut(text, 900), "step_id": step_id, "recoverable": recoverable, "skipped": True}
        ]
    unmet = [
        f"{phrases.label(c.criterion)} ({c.reason})" if c.reason else phrases.label(c.criterion)
        for c in step.criteria
        if not c.met
    ]
    texts = unmet or [t for t in step.missing if t.strip()] or [step.detail or step.task or "step"]
    none = "（无说明）" if chinese else "(no description)"
    return [
        {"description": cut(t.strip() or none, 900), "step_id": step_id, "recoverable": recoverable}
        for t in texts
    ]


def replan(request: ReplannerRequest) -> dict[str, Any]:
    """Return a PlanDraft with one new step for each step that a recoverable gap names, and that failed only once."""
    chinese = is_chinese(request.objective)
    hopeless = {g.step_id for g in request.gaps if not g.recoverable}
    open_ids = {g.step_id for g in request.gaps if g.recoverable} - hopeless
    passed = {p.step_id for p in request.passed}
    tried = [
        t for t in request.tried if t.step_id not in passed and (t.step_id in open_ids or not request.gaps)
    ]
    skipped = [t for t in tried if t.error_type == "dependency_failed"]
    # Words that failed twice are given up: a third try would only repeat them.
    failed = [t for t in tried if t not in skipped and not SECOND_TRY.search(t.step_id)]
    room = max(0, request.limits.max_steps)
    closing = [t for t in skipped if _is_closing(t.step_id)][: max(0, room - 1)]
    again = failed[: room - len(closing)]
    share = request.limits.tool_budget // max(1, len(again))
    taken = {i.casefold() for i in request.taken_ids}
    steps = [_again(t, request, min(MAX_STEP_BUDGET, share), taken, chinese) for t in again]
    steps += _closing(closing, request, [s["id"] for s in steps], taken, chinese)
    return {"goal": cut(request.goal or request.objective.strip(), 300), "steps": steps}


def _is_closing(step_id: str) -> bool:
    return re.sub(r"-\d+$", "", step_id) in ("compare", "conclude")


def next_id(step_id: str, taken: set[str]) -> str:
    """Return the id of the next try at a step ("a" -> "a-2" -> "a-3"), and count it as taken."""
    base = re.sub(r"[^A-Za-z0-9_.-]", "", SECOND_TRY.sub("", step_id))[:56]
    base = base if re.match(r"[A-Za-z0-9]", base) else f"step{base}"
    number = 2
    while f"{base}-{number}".casefold() in taken:
        number += 1
    taken.add(f"{base}-{number}".casefold())
    return f"{base}-{number}"


def _again(
    tried: TriedStep, request: ReplannerRequest, budget: int, taken: set[str], chinese: bool
) -> dict[str, Any]:
    unmet = [c.criterion for c in tried.criteria if not c.met and c.criterion.strip()] or [
        c for c in tried.success_criteria if c.strip()
    ]
    unmet = unmet or [
        g.description for g in request.gaps if g.step_id == tried.step_id and g.description.strip()
    ]
    criteria = [cut(c, 1000) for c in unmet[:20]] or [tried.task.strip()[:1000] or "step"]
    old_task = tried.task.splitlines()[0] if tried.task.strip() else tried.step_id
    table = tried.task.find('table "') >= 0 or tried.task.find('表 "') >= 0
    files = bool(phrases.file_clause(tried.task))
    names = [t.name for t in request.tools]
    known = FILE_TOOLS if files else (TABLE_TOOL,)
    tools = [n for n in names if n in known] if table or files else document_tools(names)
    wanted = [read_criterion(c, request.objective) for c in criteria]
    labels = cut("; ".join(w.label for w in wanted), 300)
    task = f"换一种方式再找：{labels}" if chinese else f"Look again, in other words, for: {labels}"
    if table or files:
        task = cut(tried.task, 2000)
    else:
        queries = [q for w in wanted for q in _other_queries(w, tried, request, chinese)]
        task = phrases.with_queries(task, [cut(q, 150) for q in queries[:6]], chinese)
    return {
        "id": next_id(tried.step_id, taken),
        "task": task[:2000].strip() or old_task,
        "success_criteria": criteria,
        "tools": tools or None,
        "tool_budget": max(0, budget),
        "replaces": tried.step_id,
    }


def _other_queries(wanted: Wanted, tried: TriedStep, request: ReplannerRequest, chinese: bool) -> list[str]:
    """Return queries that were not tried: synonyms, the entity's own documents, the other language."""
    others = other_words(wanted, chinese)
    titles = [
        d.title
        for g in request.catalogue.documents.groups
        if wanted.entity and g.name.casefold() == wanted.entity.casefold()
        for d in g.documents
    ]
    # The other language only where the material has it.
    every_title = " ".join(d.title for g in request.catalogue.documents.groups for d in g.documents)
    has_other = is_chinese(every_title) != chinese
    foreign = (
        [w for u in wanted.units for w in concept_words(u.key, chinese=not chinese)][:3] if has_other else []
    )
    candidates = [
        f"{wanted.entity} {' '.join(others)}",
        *(f"{title} {' '.join(others[:2])}" for title in titles[:1]),
        *([f"{wanted.entity} {' '.join(foreign)}"] if foreign else []),
        f"{wanted.aspect} {wanted.entity}",
    ]
    done = {q.casefold().strip() for q in tried.queries}
    fresh = [q.strip() for q in candidates if q.strip() and q.strip().casefold() not in done]
    return list(dict.fromkeys(fresh))[:3]


def _closing(
    skipped: Sequence[TriedStep],
    request: ReplannerRequest,
    new: Sequence[str],
    taken: set[str],
    chinese: bool,
) -> list[dict[str, Any]]:
    """Plan the comparing and concluding steps anew, over what has passed: what is still open must not hold them up."""
    known = [p.step_id for p in request.passed if p.step_id] or list(new)
    if not known:
        return []
    steps: list[dict[str, Any]] = []
    for old in sorted(skipped, key=lambda t: "conclude" in t.step_id):
        step_id = next_id(old.step_id, taken)
        needs = [steps[-1]["id"]] if steps else known
        if "compare" in old.step_id:
            step = comparing_step(step_id, needs, chinese)
        else:
            step = concluding_step(step_id, needs, "", chinese)
        asked = [c for c in old.success_criteria if c.strip()][:20]
        steps.append(
            {
                **step,
                "task": old.task.strip()[:2000] or step["task"],
                "success_criteria": asked or step["success_criteria"],
                "replaces": old.step_id,
            }
        )
    return steps

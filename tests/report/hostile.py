"""A run whose every text is hostile, and one that is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from langgraph.types import StateSnapshot

from cli.report_facts import Facts, facts_of
from schemas.evidence import CriterionResult, Evidence, Gap, ModelUsage, Review, Source, Usage
from schemas.limits import RunLimits
from schemas.plan import Plan

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'>&amp; {0} {x} \x1b[31mred\x1b]8;;http://evil.test\x07"
    " \u202eexe.txt\u2066 \x00 </svg></style></title><!-- ]]> | `tick` [1](javascript:alert(3))"
)
ANSWER = (
    f"# Found\n\n\ud800It costs $5 [1] and [2], not [77].\n\n{HOSTILE}\n\n![pixel](https://evil.test/p.png) "
    "[go](javascript:alert(4)) [web](https://fine.test/a?b=1&c=2)\n\n[3]: https://evil.test\n\n"
    "| a | b |\n|---|---|\n| 1 [1] | <b>2</b> |\n\n```html\n<i>code</i>\n```\n\n"
    "## Sources\n\n1. First page (https://one.test/?q=1&r=2)\n2. `notes.md#L3`\n\n## Open gaps\n\n- a price"
)


def plain_evidence(step_id: str, start: float = 0, seconds: float = 1, **fields: Any) -> Evidence:
    times = {
        "started_at": START + timedelta(seconds=start),
        "finished_at": START + timedelta(seconds=start + seconds),
    }
    return Evidence(
        **{"step_id": step_id, "plan_version": 1, "passed": True, "tool_calls": 1} | times | fields
    )


def hostile_values() -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"id": "first", "task": HOSTILE, "success_criteria": [HOSTILE]},
        {"id": "second", "task": "look", "success_criteria": ["found"]},
        {"id": "third", "task": "conclude", "success_criteria": ["said"], "depends_on": ["first", "second"]},
    ]
    plan = Plan.model_validate({"goal": HOSTILE, "steps": steps, "assumptions": [HOSTILE], "reason": HOSTILE})
    criteria = [CriterionResult(criterion=HOSTILE, met=False, reason=HOSTILE)]
    sources = [
        _source("s1", "https://one.test/?q=1&r=2", title="First page", excerpt=HOSTILE),
        _source("s2", "notes.md#L3"),
        _source("s3", "javascript:alert(5)", title=HOSTILE),
    ]
    return {
        "objective": f"Find the price \ud800 {HOSTILE}",
        "status": "partial",
        "stop_reason": "replan_limit",
        "final_answer": ANSWER,
        "plan": plan,
        "plans": [plan],
        "evidence": [
            plain_evidence("first", source_ids=["s1", "s2"], summary=HOSTILE, reasoning=False),
            plain_evidence(
                "second",
                passed=False,
                error_type="criteria_unmet",
                detail=HOSTILE,
                criteria=criteria,
                missing=[HOSTILE],
                source_ids=["s3"],
                summary="بحث عن السعر",
            ),
            plain_evidence("third", seconds=0, passed=False, skipped_because="second", tool_calls=0),
        ],
        "sources": sources,
        "review": Review(approved=False, gaps=[Gap(description=HOSTILE, step_id="second")]),
        "usage": Usage(
            tool_calls=2,
            model_calls=3,
            by_role={"worker": {HOSTILE: ModelUsage(model_calls=3, input_tokens=1200)}},
        ),
        "limits": RunLimits(),
        "replan_count": 1,
        "max_replans": 1,
    }


def facts(values: dict[str, Any] | None = None, status: str = "partial") -> Facts:
    snapshot = SimpleNamespace(
        values=hostile_values() if values is None else values,
        interrupts=(),
        created_at="2026-01-02T03:04:05.678+00:00",
    )
    return facts_of(cast("StateSnapshot", snapshot), "t1", status)


def _source(source_id: str, locator: str, **fields: Any) -> Source:
    return Source(id=source_id, step_id="first", tool="look", locator=locator, retrieved_at=START, **fields)

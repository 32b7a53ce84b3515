"""Objectives that need no planner: one worker answers them, with the same limits, evidence and checkpoints.

Mode react always takes this way. Mode auto takes it for one short question about one fact (the rule is `one_worker`);
modes plan and reflect never do.
"""

import re
from collections.abc import Sequence

from schemas.plan import PlanDraft, Step
from schemas.state import TaskState

MIN_WORDS = 4
MAX_CHARS = {"en": 100, "zh": 40}
_ASKS = {
    "en": re.compile(r"(?i)^(what|who|when|where|which|how (much|many|long|old|often))\b[^.!?;\n]*\?$"),
    "zh": re.compile(r"^[^。！？；，,;\n]*(什么|谁|何时|哪|多少|几|多久|多大)[^。！？；，,;\n]*[？?]$"),
}
# More than one thing is asked for, or the things have to be held against each other.
_MORE = re.compile(
    r"(?i)\b(and|or|versus|vs|compare\w*|differ\w*|between|each|every|all|both|best|why|recommend\w*|better)\b|,"
    r"|\b(what|who|which) (are|were)\b|\bshould\b"
    r"|和|与|以及|或|、|比较|对比|区别|分别|各|所有|最|为什么|建议|推荐|哪些|应该|如何|怎"
)
CRITERION = {"en": "The question is answered, with a source", "zh": "问题得到回答，并注明来源"}


def one_worker(objective: str) -> bool:
    """Return whether one worker can do it: one short question for one fact, with nothing to compare or to list."""
    text = objective.strip()
    language = "zh" if any("\u4e00" <= c <= "\u9fff" for c in text) else "en"
    words = len(text.split()) if language == "en" else len(text) // 2
    if not words >= MIN_WORDS or len(text) > MAX_CHARS[language] or _MORE.search(text):
        return False
    return bool(_ASKS[language].match(text))


def shortcut(state: TaskState, tools: Sequence[str]) -> PlanDraft | None:
    """Return the one-step plan of an objective that needs no planner, else None.

    `tools` are those that may run unasked: without any, a worker has nothing to look things up with.
    """
    mode = state["choices"].mode
    objective = state["objective"]
    if mode == "react" or (mode == "auto" and tools and not state["feedback"] and one_worker(objective)):
        return single_step(state)
    return None


def single_step(state: TaskState) -> PlanDraft:
    """Return the plan of one step that is the objective itself."""
    objective, limits = state["objective"], state["limits"]
    language = "zh" if any("\u4e00" <= c <= "\u9fff" for c in objective) else "en"
    step = Step(
        id="answer",
        task=objective[:2000],
        success_criteria=[CRITERION[language]],
        tool_budget=min(10, limits.total_tool_budget),
        timeout_seconds=min(600.0, max(10.0, limits.deadline_seconds)),
    )
    return PlanDraft(goal=objective[:2000], steps=[step])

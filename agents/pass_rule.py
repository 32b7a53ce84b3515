"""The pass rule: whether a step's finding counts. Pure code; a model can fail a step, never pass it alone.

A step passes when
1. every success criterion is met (matched to the step's own by text, else by order; absent = unmet),
2. it has support: it cites a source that its own tools returned or that its dependencies carry; or its tools were
   called with success and returned nothing ("looked, and there is none": then code writes what that establishes); or
   it has no tools, and reasons. If a step with tools states figures, quotes or names, one of them at least stands in a
   text behind it that speaks of the same thing (agents/grounding.py); sources that bear out what the cited ones do
   not are added to these,
3. every machine check and verifier is true (run by the caller, see agents/checks.py).
"""

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from agents.claims import sentences
from agents.entities import Entities
from agents.grounding import Grounds
from agents.passages import Passages, SourceText
from schemas.evidence import CriterionResult, ErrorType, Finding
from schemas.plan import Step
from tools.results import cut

MISSING_CHARS = 1_000


@dataclass(frozen=True)
class Support:
    """What stands behind a step.

    Attributes:
        own: ids of the sources that this step's tools returned.
        carried: ids of the sources that its dependencies' evidence carries, in plan order.
        successful_calls: tool calls that ended without an error.
        texts: full texts of all these sources.
        groups: names of the groups of documents that the tools know.
    """

    own: Collection[str]
    carried: Sequence[str]
    successful_calls: int
    texts: Sequence[SourceText] = ()
    groups: Sequence[str] = ()


@dataclass(frozen=True)
class Verdict:
    """The outcome of the rule.

    Attributes:
        error_type: names the first rule that failed.
        none_found: whether it passes because tools were called with success and returned nothing.
    """

    passed: bool
    criteria: list[CriterionResult]
    source_ids: list[str]
    missing: list[str]
    error_type: ErrorType | None = None
    detail: str = ""
    reasoning: bool = False
    dropped: list[str] = field(default_factory=list[str])
    none_found: bool = False


def judge(step: Step, finding: Finding, support: Support) -> Verdict:
    """Apply rules 1 and 2 to a finding."""
    criteria = match_criteria(step.success_criteria, finding.criteria)
    known = {*support.own, *support.carried}
    cited = list(dict.fromkeys(i for i in finding.source_ids if i in known))
    dropped = list(dict.fromkeys(i for i in finding.source_ids if i not in known))
    if not cited and not support.own and not _uses_tools(step):
        cited = list(dict.fromkeys(support.carried))
    read = _Read(step, finding, support) if _uses_tools(step) else None
    if cited and read is not None:
        cited = read.with_supporters(cited)
    reasoning = not cited and not _uses_tools(step)
    looked = not support.own and support.successful_calls > 0
    unmet = [c for c in criteria if not c.met]
    notes = [f"cited unknown sources, dropped: {', '.join(dropped)[:300]}"] if dropped else []
    error_type: ErrorType | None = None
    if not cited and not reasoning and not (looked and not dropped):
        error_type = "unsupported_claim"
        notes.insert(0, _no_support(support))
    elif read is not None and (invented := read.invented()):
        error_type = "unsupported_claim"
        notes.insert(0, f"stated, and in no text behind this step: {', '.join(invented)[:300]}")
    elif unmet:
        error_type = "criteria_unmet"
        notes.insert(0, "criteria not met: " + "; ".join(c.criterion for c in unmet)[:600])
    return Verdict(
        passed=error_type is None,
        criteria=criteria,
        source_ids=cited,
        missing=[cut(text, MISSING_CHARS, advice="shortened") for text in finding.missing],
        error_type=error_type,
        detail=". ".join(notes),
        reasoning=reasoning,
        dropped=dropped,
        none_found=error_type is None and looked and not cited and not reasoning,
    )


def _uses_tools(step: Step) -> bool:
    return step.tools != [] and step.tool_budget > 0


class _Read:
    """A finding's sentences, held against the texts behind the step."""

    def __init__(self, step: Step, finding: Finding, support: Support) -> None:
        self._texts = [Passages(text) for text in support.texts]
        asked = "\n".join((step.task, *step.success_criteria))
        self._grounds = Grounds(self._texts, Entities(self._texts, support.groups), asked)
        self._sentences = sentences(finding.summary)

    def invented(self) -> list[str]:
        """Return what the finding states if nothing of it stands in the texts, else nothing."""
        # Other words than the source's are no reason to refuse a step; the answer's are looked at more closely.
        found = [self._grounds.held(sentence, self._texts, related=False) for sentence in self._sentences]
        doubted = [claim for held in found for claim in held.doubted]
        return doubted if doubted and len(doubted) == sum(len(held.stated) for held in found) else []

    def with_supporters(self, cited: Sequence[str]) -> list[str]:
        """Return the cited ids, and those of sources that bear out what the cited ones do not: a worker forgets some."""
        ids = list(cited)
        if all(text.source.id in ids for text in self._texts):
            return ids
        for sentence in self._sentences:
            own = [text for text in self._texts if text.source.id in ids]
            if self._grounds.held(sentence, own).doubted:
                ids += [text.source.id for text in self._grounds.supporters(sentence, own)]
            ids = list(dict.fromkeys(filter(None, ids)))
        return ids


def _no_support(support: Support) -> str:
    if support.successful_calls == 0:
        return "no tool call succeeded, and nothing is cited that a dependency carries"
    return "nothing is cited that this step's tools returned or a dependency carries"


def match_criteria(own: Sequence[str], given: Sequence[CriterionResult]) -> list[CriterionResult]:
    """Match given verdicts to a step's own criteria: by text, else by order among the rest; absent = unmet."""
    rest = list(given)
    matched: dict[int, CriterionResult] = {}
    for index, criterion in enumerate(own):
        same = next((g for g in rest if _key(g.criterion) == _key(criterion)), None)
        if same is not None:
            rest.remove(same)
            matched[index] = same
    texts = {_key(c) for c in own}
    # A second verdict on a matched criterion can only take back the first.
    denied = {_key(g.criterion): g for g in rest if not g.met and _key(g.criterion) in texts}
    rest = [g for g in rest if _key(g.criterion) not in texts]
    results: list[CriterionResult] = []
    for index, criterion in enumerate(own):
        verdict = denied.get(_key(criterion)) or matched.get(index) or (rest.pop(0) if rest else None)
        if verdict is None:
            results.append(
                CriterionResult(criterion=criterion, met=False, reason="the worker gave no verdict on it")
            )
        else:
            results.append(CriterionResult(criterion=criterion, met=verdict.met, reason=verdict.reason))
    return results


def _key(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())

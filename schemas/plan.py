"""Plans: steps, their dependencies and machine checks; every rule a plan must keep."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    ValidationError,
    model_validator,
)

from schemas.errors import PlanInvalid

StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Criterion = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"\S")]
MAX_LINE_CHARS = 1000
Line = Annotated[str, StringConstraints(max_length=MAX_LINE_CHARS)]
CreatedBy = Literal["planner", "replanner", "human", "shortcut"]


class _CheckBase(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MinSources(_CheckBase):
    """The evidence cites at least `count` sources."""

    type: Literal["min_sources"]
    count: int = Field(ge=1, le=50)


class TextMatches(_CheckBase):
    """The summary matches a regular expression."""

    type: Literal["text_matches"]
    pattern: str = Field(min_length=1, max_length=500)


class FileExists(_CheckBase):
    """A file exists under the run's root."""

    type: Literal["file_exists"]
    path: str = Field(min_length=1, max_length=500)


class FileContains(_CheckBase):
    """A file under the run's root contains a text."""

    type: Literal["file_contains"]
    path: str = Field(min_length=1, max_length=500)
    text: str = Field(min_length=1, max_length=1000)


class JsonPathEquals(_CheckBase):
    """The value at a dotted path in the summary, read as JSON, equals `value`."""

    type: Literal["json_path_equals"]
    path: str = Field(min_length=1, max_length=500)
    value: str | int | float | bool | None


class SqlReturns(_CheckBase):
    """A read-only query over the run's tables returns at least `min_rows` rows."""

    type: Literal["sql_returns"]
    sql: str = Field(min_length=1, max_length=4000)
    min_rows: int = Field(default=1, ge=1)


Check = Annotated[
    MinSources | TextMatches | FileExists | FileContains | JsonPathEquals | SqlReturns,
    Field(discriminator="type"),
]


class Step(BaseModel):
    """One task for one worker.

    Attributes:
        tools: None = every tool that may run unasked; [] = none; else names.
        tool_budget: tool runs, retries included.
        timeout_seconds: wall-clock seconds.
        replaces: id of the step of an earlier version that this one stands in for.
        on_failure: replan = the gap is planned again; retry = one more attempt first; ask = a person is asked.
        checks: run by code after the worker.
    """

    model_config = ConfigDict(extra="forbid")

    id: StepId
    task: Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"\S")]
    success_criteria: list[Criterion] = Field(min_length=1, max_length=20)
    depends_on: list[str] = Field(default_factory=list[str], max_length=20)
    tools: list[str] | None = Field(default=None, max_length=50)
    tool_budget: int = Field(default=4, ge=0, le=10, strict=True)
    timeout_seconds: float = Field(default=90, ge=10, le=600, strict=True)
    optional: StrictBool = False
    on_failure: Literal["replan", "retry", "ask"] = "replan"
    replaces: str | None = Field(default=None, max_length=64)
    checks: list[Check] = Field(default_factory=list[Check], max_length=10)


class PlanDraft(BaseModel):
    """A plan for the objective: small steps; a step depends on those whose results it needs."""

    model_config = ConfigDict(extra="forbid")

    goal: str = Field(default="", max_length=2000)
    assumptions: list[Line] = Field(default_factory=list[Line], max_length=20)
    questions: list[Line] = Field(
        default_factory=list[Line], max_length=5, description="Only what a person must answer before planning"
    )
    steps: list[Step] = Field(max_length=20)


class Plan(PlanDraft):
    """One version of the plan. `fingerprint` is always computed from the steps."""

    steps: list[Step] = Field(min_length=1, max_length=20)
    version: int = Field(default=1, ge=1)
    parent_version: int | None = None
    created_by: CreatedBy = "planner"
    reason: str = ""
    fingerprint: str = ""

    @model_validator(mode="after")
    def _seal(self) -> Self:
        problems = structure_problems([(step.id, step.depends_on) for step in self.steps])
        if problems:
            raise ValueError("; ".join(problems))
        self.fingerprint = fingerprint(self.steps)
        return self

    def step(self, step_id: str) -> Step:
        """Return the step of that id.

        Raises:
            KeyError: no step has it.
        """
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)


def fingerprint(steps: Sequence[Step]) -> str:
    """Return the sha256 of the canonical JSON of the steps: what a person approves and what runs."""
    data = [step.model_dump(mode="json") for step in steps]
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def structure_problems(steps: Sequence[tuple[str, Sequence[str]]], known: Collection[str] = ()) -> list[str]:
    """Return every violation of the dependency graph, ids named.

    Args:
        steps: (id, ids it depends on) of each step.
        known: ids outside the plan that a step may depend on (passed steps of earlier versions).
    """
    ids = [step_id for step_id, _ in steps]
    problems = _id_clashes(ids)
    available = {*ids, *known}
    for step_id, needs in steps:
        if step_id in needs:
            problems.append(f"step {step_id!r} depends on itself")
        unknown = sorted(set(needs) - available)
        if unknown:
            problems.append(f"step {step_id!r} depends on unknown steps: {', '.join(map(repr, unknown))}")
    cycle = _cycle({step_id: set(needs) - {step_id} for step_id, needs in steps})
    if cycle:
        problems.append("steps depend on each other in a circle: " + " -> ".join(map(repr, cycle)))
    return problems


def _id_clashes(ids: Sequence[str]) -> list[str]:
    # " A " and "a" are one name to a reader, and on some file systems.
    counts = Counter(step_id.strip().casefold() for step_id in ids)
    clashes = [[i for i in ids if i.strip().casefold() == key] for key, n in counts.items() if n > 1]
    return [f"step ids are not unique: {', '.join(map(repr, group))}" for group in clashes]


def _cycle(needs: Mapping[str, Collection[str]]) -> list[str]:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(cast("list[str]", error.args[1]))
    return []


def parse_draft(
    raw: Any,
    *,
    tools: Collection[str],
    max_steps: int = 20,
    known: Collection[str] = (),
    taken: Collection[str] = (),
    replaceable: Collection[str] | None = None,
) -> PlanDraft:
    """Validate a plan from a model or a person, reporting every violation at once.

    Args:
        raw: what was answered: a mapping, a PlanDraft, or anything else.
        tools: names that a step may list.
        max_steps: how many steps the plan may have.
        known: ids of passed steps of earlier versions, which may be depended on.
        taken: ids used by any earlier version, which may not be used again.
        replaceable: ids that a step may stand in for; None = any but those of the plan itself.

    Raises:
        PlanInvalid: with one line for each violation.
    """
    if isinstance(raw, BaseModel):
        raw = raw.model_dump()
    problems: list[str] = []
    draft: PlanDraft | None = None
    try:
        draft = PlanDraft.model_validate(raw)
    except ValidationError as error:
        problems += validation_lines(error)
    named = _named_steps(raw)
    problems += structure_problems([(i, needs) for i, needs, _ in named], known)
    problems += _reference_problems(named, tools, taken)
    if len(named) > max_steps:
        problems.append(f"{len(named)} steps: at most {max_steps} are allowed; merge or drop some")
    problems += _replacement_problems(raw, replaceable)
    if draft is not None and not draft.steps and not any(q.strip() for q in draft.questions):
        problems.append("the plan has neither steps nor questions")
    if problems or draft is None:
        raise PlanInvalid(problems)
    return draft


def validation_lines(error: ValidationError) -> list[str]:
    """Return one line for each pydantic error: field path, message, and the beginning of what was given."""
    return [
        f"{'.'.join(map(str, item['loc'])) or 'answer'}: {item['msg']} (given: {repr(item['input'])[:80]})"
        for item in error.errors(include_url=False)
    ]


def _replacement_problems(raw: Any, replaceable: Collection[str] | None) -> list[str]:
    """Name steps that stand in for one of the same plan, whose failure that would hide, or for one they may not."""
    steps = [step for step in raw_steps(raw) if isinstance(step.get("replaces"), str)]
    own = {step_id for step_id, _, _ in _named_steps(raw)}
    which = "" if replaceable is None else f" (there are: {', '.join(sorted(replaceable)) or 'none'})"
    return [
        f"step {step.get('id')!r} replaces {step['replaces']!r}, which is not an earlier step to be replaced{which}"
        for step in steps
        if step["replaces"] in own or (replaceable is not None and step["replaces"] not in replaceable)
    ]


def raw_steps(raw: Any) -> list[Mapping[str, Any]]:
    """Return the steps of an answer that may not be valid, as far as they are mappings."""
    steps = cast("Mapping[str, Any]", raw).get("steps") if isinstance(raw, Mapping) else None
    items = cast("list[Any]", steps) if isinstance(steps, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def _named_steps(raw: Any) -> list[tuple[str, list[str], list[str]]]:
    """Read (id, depends_on, tools) from steps that may not be valid, as far as they have an id."""
    return [
        (step["id"], _texts(step.get("depends_on")), _texts(step.get("tools")))
        for step in raw_steps(raw)
        if isinstance(step.get("id"), str)
    ]


def _texts(value: Any) -> list[str]:
    return (
        [item for item in cast("list[Any]", value) if isinstance(item, str)]
        if isinstance(value, list)
        else []
    )


def _reference_problems(
    steps: Sequence[tuple[str, Sequence[str], Sequence[str]]], tools: Collection[str], taken: Collection[str]
) -> list[str]:
    problems: list[str] = []
    for step_id, _, names in steps:
        unknown = sorted(set(names) - set(tools))
        if unknown:
            have = ", ".join(sorted(tools)) or "none"
            problems.append(
                f"step {step_id!r} names unknown tools: {', '.join(map(repr, unknown))} (there are: {have})"
            )
    reused = sorted({step_id for step_id, _, _ in steps} & set(taken))
    if reused:
        problems.append(f"step ids of earlier versions are used again: {', '.join(map(repr, reused))}")
    return problems

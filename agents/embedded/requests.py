"""What each role is sent, as the embedded model reads it: a field of the wrong shape counts as absent."""

import json
from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic import field_validator as validator


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")

    @validator("*", mode="wrap")
    @classmethod
    def _default_instead_of_error(
        cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        try:
            return handler(value)
        except ValidationError:
            return cls.model_fields[str(info.field_name)].get_default(call_default_factory=True)


class DocumentEntry(_Lenient):
    """A document of the catalogue."""

    path: str = ""
    title: str = ""
    headings: list[str] = []


class DocumentGroup(_Lenient):
    """The documents of one folder; the root's own have the name ""."""

    name: str = ""
    documents: list[DocumentEntry] = []


class DocumentCatalogue(_Lenient):
    """All groups, and how many documents were left out."""

    groups: list[DocumentGroup] = []
    left_out: int = 0


class TableColumn(_Lenient):
    """A column; `distinct` values in it."""

    name: str = ""
    type: str = ""
    distinct: int = 0


class TableEntry(_Lenient):
    """A table of the catalogue."""

    name: str = ""
    path: str = ""
    rows: int = 0
    columns: list[TableColumn] = []


class Catalogue(_Lenient):
    """What the material is."""

    documents: DocumentCatalogue = Field(default_factory=DocumentCatalogue)
    tables: list[TableEntry] = []


class ToolEntry(_Lenient):
    """A tool that a step may name."""

    name: str = ""


class Limits(_Lenient):
    """What a plan may have."""

    max_steps: int = 20
    tool_budget: int = 32


class PlannerRequest(_Lenient):
    """The planner's request."""

    objective: str = ""
    tools: list[ToolEntry] = []
    catalogue: Catalogue = Field(default_factory=Catalogue)
    limits: Limits = Field(default_factory=Limits)
    feedback: list[str] = []


class Verdict(_Lenient):
    """A criterion as judged."""

    criterion: str = ""
    met: bool = False
    reason: str = ""


class PassedStep(_Lenient):
    """A step that needs no more work."""

    step_id: str = ""


class GapEntry(_Lenient):
    """A gap of the review."""

    description: str = ""
    step_id: str | None = None
    recoverable: bool = True


class TriedStep(_Lenient):
    """A step that did not pass, and what it tried."""

    step_id: str = ""
    task: str = ""
    success_criteria: list[str] = []
    error_type: str | None = None
    criteria: list[Verdict] = []
    queries: list[str] = []


class ReplannerRequest(PlannerRequest):
    """The replanner's request."""

    goal: str = ""
    passed: list[PassedStep] = []
    gaps: list[GapEntry] = []
    tried: list[TriedStep] = []
    taken_ids: list[str] = []


class WorkStep(_Lenient):
    """The worker's step."""

    id: str = "step"
    task: str = ""
    success_criteria: list[str] = []
    tool_budget: int = 4


class CarriedSource(_Lenient):
    """A source of a dependency, or of the answer (then numbered by `n`)."""

    id: str = ""
    n: int = 0
    title: str = ""
    locator: str = ""
    excerpt: str = ""


class Dependency(_Lenient):
    """The evidence of a step that this one builds on."""

    step_id: str = ""
    task: str = ""
    summary: str = ""
    source_ids: list[str] = []
    sources: list[CarriedSource] = []


class WorkerRequest(_Lenient):
    """The worker's request."""

    objective: str = ""
    step: WorkStep = Field(default_factory=WorkStep)
    dependencies: list[Dependency] = []


class JudgedStep(_Lenient):
    """A step with its evidence."""

    id: str = ""
    task: str = ""
    success_criteria: list[str] = []
    passed: bool = False
    reasoning: bool = False
    criteria: list[Verdict] = []
    missing: list[str] = []
    error_type: str | None = None
    detail: str = ""


class ReviewerRequest(_Lenient):
    """The reviewer's request."""

    objective: str = ""
    steps: list[JudgedStep] = []


class FindingEntry(_Lenient):
    """A finding for the answer; `cite` numbers its sources."""

    step_id: str = ""
    summary: str = ""
    reasoning: bool = False
    cite: list[int] = []


class WriterRequest(_Lenient):
    """The writer's request."""

    objective: str = ""
    findings: list[FindingEntry] = []
    sources: list[CarriedSource] = []
    gaps: list[str] = []
    language: str = "en"


Request = PlannerRequest | ReplannerRequest | WorkerRequest | ReviewerRequest | WriterRequest
ROLES: dict[str, type[PlannerRequest | WorkerRequest | ReviewerRequest | WriterRequest]] = {
    "planner": PlannerRequest,
    "replanner": ReplannerRequest,
    "worker": WorkerRequest,
    "reviewer": ReviewerRequest,
    "writer": WriterRequest,
}


def read_request(messages: Sequence[BaseMessage]) -> tuple[Request, list[BaseMessage]] | None:
    """Return the request, and the messages after it; None if no human message is a request."""
    for index, message in enumerate(messages):
        if isinstance(message, HumanMessage) and (data := _json_object(message.text)):
            kind = ROLES.get(str(data.get("role")))
            if kind is not None:
                return kind.model_validate(data), list(messages[index + 1 :])
    return None


def _json_object(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        data = _clean(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _clean(value: Any) -> Any:
    """Replace what cannot be written as UTF-8: JSON can escape half a surrogate pair."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {clean(str(key)): _clean(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def clean(text: str) -> str:
    """Return the text without lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")

"""The worker: one step, one small agent, hard limits; whatever happens becomes Evidence."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from pydantic import BaseModel

from agents.brief import brief_text
from agents.checks import StepVerifier, failed_checks
from agents.conclusion import concluded, unconcluded
from agents.crew import Crew
from agents.draining import Drain
from agents.entities import group_names
from agents.failures import ModelCallFailed, model_error_type, one_line
from agents.ledger import EXCERPT_CHARS, StepLedger
from agents.long_texts import read_beside
from agents.middleware.answer import usage_in
from agents.middleware.approval import Approvals
from agents.middleware.at_work import AT_WORK, StepAtWork
from agents.middleware.budget import limit_error
from agents.pass_rule import Support
from agents.passages import SourceText
from schemas.errors import LimitReached, StorageError
from schemas.evidence import ErrorType, Evidence, Finding, Source, Usage
from schemas.limits import RunLimits
from schemas.plan import Step
from schemas.state import Dependency, StepTask
from tools.artifacts import ArtifactStore
from tools.registry import ToolRegistry
from tools.web_address import unechoed

MAX_CALLS_NAMED = 10
FEW_SOURCES = 4
SHORT_EXCERPT_CHARS = 120


@dataclass(frozen=True)
class WorkerParts:
    """What every worker of an application shares.

    Attributes:
        clock: monotonic seconds.
    """

    crew: Crew
    registry: ToolRegistry
    artifacts: ArtifactStore
    verify_step: StepVerifier | None = None
    clock: Callable[[], float] = time.monotonic
    drain: Drain = field(default_factory=Drain)


@dataclass
class StepOutcome:
    """What a step leaves: its evidence, its own sources that the evidence cites, and what it cost."""

    evidence: Evidence
    sources: list[Source] = field(default_factory=list[Source])
    usage: Usage = field(default_factory=Usage)


@dataclass
class Attempt:
    """One attempt at a step, while it runs."""

    parts: WorkerParts
    task: StepTask
    ledger: StepLedger
    exclusive: asyncio.Lock
    approvals: Approvals
    emit: Callable[[BaseModel], None]
    now: Callable[[], datetime]
    tokens_left: Callable[[], int | None]
    started_at: datetime = field(init=False)
    deadline: float = field(init=False)
    seconds: float = field(init=False)
    step: Step = field(init=False)
    limits: RunLimits = field(init=False)
    work: StepAtWork = field(init=False)

    def __post_init__(self) -> None:
        self.step, self.limits = self.task["step"], self.task["limits"]
        self.started_at = self.now()
        allowed = self.limits.step_seconds(self.step.timeout_seconds)
        self.seconds = max(0.01, min(allowed, self.task["seconds_left"]) - self.ledger.worked)
        self.deadline = self.parts.clock() + self.seconds
        self.work = StepAtWork(
            ledger=self.ledger,
            task=self.step.task,
            exclusive=self.exclusive,
            emit=self.emit,
            clock=self.parts.clock,
            max_model_calls=self.limits.max_model_calls_per_step,
            max_request_chars=self.limits.max_request_chars,
            seconds=self.seconds,
            seconds_left=self.seconds_left,
            max_tokens=self.limits.max_tokens,
            tokens_left=self.tokens_left,
            approvals=self.approvals,
            sources=self._known_sources,
            known_texts=self._known_texts,
            drain=self.parts.drain,
        )

    def seconds_left(self) -> float:
        """Return the wall-clock seconds that the step still has."""
        return self.deadline - self.parts.clock()

    async def run(self, config: RunnableConfig) -> StepOutcome:
        """Run the worker and judge what it found.

        Raises:
            GraphBubbleUp, CancelledError: LangGraph's signals and cancellation pass through; nothing else does,
            but StorageError: a failed database says nothing of the step, which a resume takes up again.
        """
        try:
            return await self._run(config)
        except GraphInterrupt:
            await self.ledger.pause(self.ledger.worked + self.seconds - self.seconds_left())
            raise

    async def _run(self, config: RunnableConfig) -> StepOutcome:
        finding, error_type, detail = await self._work(config)
        texts = await self._texts() if finding is not None else []
        judged = partial(self._evidence, finding, error_type, detail, texts)
        evidence = await read_beside(judged, (source.text for source in texts))
        if evidence.passed:
            evidence = await self._checked(evidence)
        cited = {*evidence.source_ids}
        sources = [source for source in self.ledger.sources.values() if source.id in cited]
        usage = self.work.spent + Usage(tool_calls=self.ledger.used, seconds=self.ledger.worked)
        return StepOutcome(evidence, sources, usage)

    async def _work(self, config: RunnableConfig) -> tuple[Finding | None, ErrorType | None, str]:
        scope = asyncio.timeout(self.seconds)
        try:
            async with scope:
                return await self._converse(config)
        except (GraphBubbleUp, StorageError):
            raise
        except TimeoutError as error:
            if not scope.expired():
                return None, model_error_type(error), one_line(error)
            if self.seconds >= self.task["seconds_left"]:
                return None, "deadline", f"the run's deadline ended the step after {self.seconds:g} s"
            return None, "timeout", f"timeout after {self.seconds:g} s"
        except LimitReached as error:
            return None, "model_limit", str(error)
        except ModelCallFailed as error:
            return None, error.error_type, str(error)
        except Exception as error:  # noqa: BLE001 - a failure becomes evidence, never a crash
            return None, model_error_type(error), one_line(error)

    async def _converse(self, config: RunnableConfig) -> tuple[Finding | None, ErrorType | None, str]:
        # Half of the request is for what the tools will return.
        brief = HumanMessage(brief_text(self.brief(), self.limits.max_request_chars // 2))
        agent = self.parts.crew.agent(self.step.tools, self.task["grant"], self.approvals.autonomy)
        AT_WORK.set(self.work)
        state = await agent.ainvoke({"messages": [brief]}, config)
        answers = sum(isinstance(message, AIMessage) for message in state["messages"])
        if answers > self.work.spent.model_calls:  # the interrupted run had finished
            self.work.spent = usage_in(state["messages"])
        finding = cast("Finding | dict[str, Any] | None", state.get("structured_response"))
        if isinstance(finding, dict):  # a checkpoint under strict msgpack gives back a dict
            finding = Finding.model_validate(finding)
        if finding is not None:
            return finding, limit_error(self.ledger), ""
        called = any(getattr(m, "tool_calls", None) for m in state["messages"])
        detail = (
            "no valid Finding in three answers"
            if called
            else "the worker answered in prose, without a Finding"
        )
        return None, limit_error(self.ledger) or "schema", detail

    def brief(self) -> dict[str, Any]:
        """Return the step's request: the objective, the step, its direct dependencies. Nothing else of the run."""
        step = self.step
        return {
            "role": "worker",
            "objective": self.task["objective"],
            "step": {
                "id": step.id,
                "task": step.task,
                "success_criteria": step.success_criteria,
                "tool_budget": self.task["grant"],
            },
            "dependencies": [dependency_brief(d) for d in self.task["dependencies"]],
        }

    def _known_sources(self) -> dict[str, Source]:
        return {source.id: source for source in self._carried()} | self.ledger.sources

    def _carried(self) -> list[Source]:
        """Return the sources that the step's dependencies carry, in plan order."""
        return [source for dependency in self.task["dependencies"] for source in dependency["sources"]]

    async def _known_texts(self) -> list[str]:
        """Return what may name web addresses: never a text that only a model wrote, nor one that echoes a model's."""
        texts = [self.task["objective"]]
        for record in self.ledger.records.values():
            asked = f"{record.arguments}\n{record.urls}"
            texts += [unechoed(await self._text(source), asked) for source in record.sources]
        for source in self._carried():
            is_url = source.locator.startswith(("http://", "https://"))
            texts.append(unechoed(await self._text(source), "" if is_url else source.locator))
            texts += [source.locator] if is_url else []
        return texts

    async def _text(self, source: Source) -> str:
        """Return a source's full text; its excerpt where that is gone."""
        with contextlib.suppress(KeyError, OSError):
            return await self.parts.artifacts.get(source.artifact or "")
        return source.excerpt

    async def _texts(self) -> list[SourceText]:
        """Return the full texts of all sources that the step may cite."""
        return [
            SourceText(
                source.title, source.locator, f"{source.excerpt}\n{await self._text(source)}", source.id
            )
            for source in self._known_sources().values()
        ]

    def _evidence(
        self, finding: Finding | None, error_type: ErrorType | None, detail: str, texts: list[SourceText]
    ) -> Evidence:
        spent = self.work.spent
        base = Evidence(
            step_id=self.step.id,
            plan_version=self.task["plan_version"],
            attempt=self.task["attempt"],
            passed=False,
            error_type=error_type,
            detail=detail,
            calls=[f"{r.tool}({r.arguments})" for r in self.ledger.records.values()][:MAX_CALLS_NAMED],
            tool_calls=self.ledger.used,
            model_calls=spent.model_calls,
            tokens=spent.tokens,
            started_at=self.started_at,
            finished_at=self.now(),
        )
        if finding is None:
            return unconcluded(base, self.step, self.ledger)
        carried = [source.id for source in self._carried()]
        groups = group_names(self.parts.registry.catalogue())
        support = Support(self.ledger.sources, carried, self.ledger.successful_calls, texts, groups)
        return concluded(base, self.step, finding, self.ledger, support)

    async def _checked(self, evidence: Evidence) -> Evidence:
        registry = self.parts.registry
        tools = {name: registry.spec(name).tool for name in registry.names()}
        spent = self.seconds - self.seconds_left()
        if self.step.checks or self.parts.verify_step:
            await self.ledger.keep_answers()
        try:
            async with asyncio.timeout(max(0.01, self.task["seconds_left"] - spent)):
                failures = await failed_checks(self.step, evidence, tools.get, self.parts.verify_step)
        except TimeoutError:
            failures = ["the run's deadline came before the checks and verify_step had ended"]
        if not failures:
            return evidence
        return evidence.model_copy(
            update={"passed": False, "error_type": "check_failed", "detail": "; ".join(failures)[:1000]}
        )


def dependency_brief(dependency: Dependency) -> dict[str, Any]:
    """Return what a step sees of one dependency: its summary and the sources it carries."""
    # Many sources share the room of one request; the summary has what was found in them.
    most = EXCERPT_CHARS if len(dependency["sources"]) <= FEW_SOURCES else SHORT_EXCERPT_CHARS
    sources = [
        {"id": s.id, "title": s.title, "locator": s.locator, "excerpt": s.excerpt[:most]}
        for s in dependency["sources"]
    ]
    return {
        "step_id": dependency["step_id"],
        "task": dependency["task"],
        "summary": dependency["summary"],
        "source_ids": dependency["source_ids"],
        "sources": sources,
    }

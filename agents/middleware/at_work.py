"""The attempt that is at work in this task: what the middleware of a shared agent must know of it.

Building an agent costs more than a short step. So one agent serves all steps with the same tools, and holds nothing
of any of them: each attempt puts itself here, in a context variable that LangGraph's tasks inherit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from langchain_core.language_models.chat_models import BaseChatModel
from pydantic import BaseModel

from agents.calling import RoleModel
from agents.draining import Drain
from agents.ledger import StepLedger
from agents.middleware.approval import Approvals
from schemas.evidence import Source, Usage


@dataclass
class StepAtWork:
    """One attempt at a step, as its middleware sees it.

    Attributes:
        ledger: of this attempt; task: the step's.
        exclusive: held while a tool that writes or executes runs: one at a time in a run.
        emit: takes RunEvents; clock: monotonic seconds.
        max_model_calls: of the step; the last one gets no tools.
        max_request_chars: of one model request.
        seconds: wall-clock seconds of the step; seconds_left: those that remain.
        max_tokens: of the run, None = no bound; tokens_left: input and output tokens that it may still use, what all
            its steps at work have used taken off.
        approvals: what a person has allowed for the whole run.
        sources: gives what the step may cite: its own sources, and those that its dependencies carry.
        known_texts: gives what may name web addresses: the objective, and results of this step and its dependencies.
        spent: model calls and tokens of the step so far.
        requests: model requests made in this process; those that raised have left no message.
        role, model: the worker's models, and the one in use, from the first request on.
        concluding: the request that max_tokens leaves has been made.
        drain: holds tool calls back when the process is asked to stop.
    """

    ledger: StepLedger
    task: str
    exclusive: asyncio.Lock
    emit: Callable[[BaseModel], None]
    clock: Callable[[], float]
    max_model_calls: int
    max_request_chars: int
    seconds: float
    seconds_left: Callable[[], float]
    max_tokens: int | None
    tokens_left: Callable[[], int | None]
    approvals: Approvals
    sources: Callable[[], Mapping[str, Source]]
    known_texts: Callable[[], Awaitable[list[str]]]
    spent: Usage = field(default_factory=Usage)
    requests: int = 0
    role: RoleModel | None = None
    model: BaseChatModel | None = None
    concluding: bool = False
    drain: Drain = field(default_factory=Drain)

    @property
    def tokens_are_spent(self) -> bool:
        """Whether the run has no tokens left."""
        left = self.tokens_left()
        return left is not None and left <= 0

    def model_of(self, role: RoleModel) -> BaseChatModel:
        """Return the model that the step's next request goes to."""
        self.role = role
        self.model = self.model or role.first
        return self.model

    def taken_over(self, error: Exception) -> bool:
        """Return whether the fallback takes over after an error, for the rest of the step."""
        after = self.role.next_after(self.model, error) if self.role and self.model else None
        self.model = after or self.model
        return after is not None


AT_WORK: ContextVar[StepAtWork] = ContextVar("planweave_step_at_work")


def at_work() -> StepAtWork:
    """Return the attempt that the calling task works for."""
    return AT_WORK.get()

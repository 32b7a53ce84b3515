"""Carrying out runs: start, go on, answer; the exit code says how it ended."""

import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from langgraph.types import Command

from cli.board import Board
from cli.exit_codes import STATUS_CODES, ExitCode
from cli.live import LiveView
from cli.plain import JsonView, PlainView, View
from cli.printable import json_line, one_line
from cli.questions import Answer, ask, askable, how_to_answer, plan_question, show
from cli.screen import Screen
from cli.stopping import Stopped, cancelled_by_signals
from graph.persistence import open_graph
from graph.runner import Outcome, outcome, run_events, thread_config
from graph.settings import load_settings
from schemas.context import RunContext
from schemas.errors import InputError, NothingToResume
from schemas.events import RunEvent
from schemas.state import TaskInput

if TYPE_CHECKING:
    from graph.threads import TaskGraph

# Stored with a run's checkpoints, so that `resume THREAD` needs nothing else: the folders its tools work in, and its
# choices, which the state holds only once there is a plan.
_DOCS, _ROOT, _CHOICES = "planweave_docs", "planweave_root", "planweave_choices"


@dataclass(frozen=True)
class Terms:
    """What a run is started with besides its objective.

    Attributes:
        docs, root: where the tools work; None = as the settings say.
        context: the run's choices; None = the defaults.
    """

    docs: Path | None = None
    root: Path | None = None
    context: RunContext | None = None

    def metadata(self) -> dict[str, str]:
        """Return the terms as they are stored."""
        named = {_DOCS: self.docs, _ROOT: self.root}
        # Under an ascii locale a path holds surrogates, which no database takes: its bytes are what counts.
        stored = {
            name: os.fsencode(path.resolve()).decode("utf-8", "replace")
            for name, path in named.items()
            if path
        }
        return stored | (
            {_CHOICES: self.context.model_dump_json(exclude_defaults=True)}
            if self.context is not None
            else {}
        )

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the terms that a checkpoint has stored."""
        docs, root, choices = (metadata.get(name) for name in (_DOCS, _ROOT, _CHOICES))
        context = RunContext.model_validate_json(choices) if choices else None
        paths = [Path(os.fsdecode(path.encode())) if path else None for path in (docs, root)]
        return cls(paths[0], paths[1], context)


async def start(screen: Screen, objective: str, thread_id: str, terms: Terms, *, as_json: bool) -> ExitCode:
    """Work on a new objective."""
    async with open_graph(load_settings(), docs=terms.docs, root=terms.root) as graph:
        return await Run(screen, graph, thread_id, terms, as_json=as_json).go({"objective": objective})


async def resume(
    screen: Screen, thread_id: str, docs: Path | None, root: Path | None, *, as_json: bool
) -> ExitCode:
    """Go on with a run that was stopped; ask, or say how to answer, if it waits for a person.

    Raises:
        NothingToResume: the thread does not exist, or its run has ended.
    """
    async with _reopened(screen, thread_id, docs, root, as_json=as_json) as run:
        before = await run.so_far()
        if before.questions:
            return await run.settle(before)
        return await run.go(None)


async def answer(screen: Screen, thread_id: str, reply: Answer, *, as_json: bool) -> ExitCode:
    """Answer the plan that waits for approval, and go on.

    Raises:
        NothingToResume: no plan waits. InputError: the answer cannot be used; the plan still waits.
    """
    async with _reopened(screen, thread_id, None, None, as_json=as_json) as run:
        question = plan_question((await run.so_far()).questions)
        if question is None:
            raise NothingToResume(
                f"thread {thread_id} has no plan that waits for approval; planweave threads"
            )
        return await run.go(Command(resume={question.interrupt_id: reply}))


@asynccontextmanager
async def _reopened(
    screen: Screen, thread_id: str, docs: Path | None, root: Path | None, *, as_json: bool
) -> AsyncGenerator["Run"]:
    settings = load_settings()
    async with open_graph(settings) as graph:
        snapshot = await graph.aget_state(thread_config(thread_id))
    stored = Terms.of(snapshot.metadata or {})
    terms = replace(stored, docs=docs or stored.docs, root=root or stored.root)
    async with open_graph(settings, docs=terms.docs, root=terms.root) as graph:
        yield Run(screen, graph, thread_id, terms, as_json=as_json)


class Run:
    """One thread of one graph on one screen."""

    def __init__(
        self, screen: Screen, graph: "TaskGraph", thread_id: str, terms: Terms, *, as_json: bool
    ) -> None:
        self._screen, self._graph, self._thread, self._terms = screen, graph, thread_id, terms
        self._json = as_json
        self._ask = screen.can_ask and not as_json
        self._board = Board()
        self._seconds = 0.0

    async def so_far(self) -> Outcome:
        """Return what the thread has come to, and show it from now on as done.

        Raises:
            NothingToResume: there is no such thread.
        """
        found = await outcome(self._graph, self._thread)
        if not found.known:
            raise NothingToResume(self._screen.say("show.unknown", thread=one_line(self._thread)))
        self._board.seed(found.plan, found.evidence)
        return found

    async def go(self, task: "TaskInput | Command[Any] | None") -> ExitCode:
        """Run until the end, or until a question that nobody here answers.

        Raises:
            InputError: `task` is an answer that was not taken.
        """
        if self._graph.offline:
            self._screen.note(self._screen.say("run.offline"))
        try:
            await self._follow(task)
        except Stopped as stopped:
            # Before the first event nothing is stored that could go on.
            key = "run.stopped" if self._board.phase != "starting" else "run.stopped_early"
            self._screen.note(self._screen.say(key, thread=self._thread))
            return stopped.exit_code
        found = await outcome(self._graph, self._thread)
        if isinstance(task, Command) and not self._ask:
            self._complain(found)
        return await self.settle(found)

    def _complain(self, found: Outcome) -> None:
        refusals = [
            str(question.question["error"]) for question in found.questions if question.question.get("error")
        ]
        if refusals:
            self._print_output(found)
            raise InputError(self._screen.say("review.refused", error=one_line("; ".join(refusals), 2000)))

    async def settle(self, found: Outcome) -> ExitCode:
        """Show what the run has come to; put its question to the person, if there is one to ask."""
        question = askable(found.questions)
        if question is not None and self._ask:
            try:
                reply = ask(self._screen, question)
            except KeyboardInterrupt:
                self._screen.line()
                self._tell_how_to_answer(found)
                return ExitCode.INTERRUPTED
            if reply is not None:
                return await self.go(Command(resume={question.interrupt_id: reply}))
            self._screen.line(self._screen.say("review.left"))
        elif question is not None and not self._json:
            show(self._screen, question)
        if found.questions:
            return self._leave_waiting(found)
        self._close(found)
        return STATUS_CODES.get(found.status or "", ExitCode.FAILED)

    def _leave_waiting(self, found: Outcome) -> ExitCode:
        self._print_output(found)
        self._tell_how_to_answer(found)
        return ExitCode.WAITING

    def _tell_how_to_answer(self, found: Outcome) -> None:
        console = self._screen.err if self._json else self._screen.out
        for line in how_to_answer(self._screen, self._thread, found.questions):
            console.print(line, soft_wrap=True)

    async def _follow(self, task: "TaskInput | Command[Any] | None") -> None:
        view = self._view()
        began = time.monotonic()
        try:
            with cancelled_by_signals(view.stop):
                async with aclosing(self._events(task)) as events:
                    view.start()
                    async for event in events:
                        view.show(event)
        finally:
            view.stop()
            self._seconds += time.monotonic() - began

    def _events(self, task: "TaskInput | Command[Any] | None") -> AsyncGenerator[RunEvent]:
        terms = self._terms
        return run_events(
            self._graph, task, thread_id=self._thread, context=terms.context, metadata=terms.metadata()
        )

    def _view(self) -> View:
        if self._json:
            return JsonView(self._screen, self._board)
        return (
            LiveView(self._screen, self._board)
            if self._screen.terminal
            else PlainView(self._screen, self._board)
        )

    def _print_output(self, found: Outcome) -> None:
        if self._json:
            self._screen.line(json_line({"type": "output", **found.to_json()}))

    def _close(self, found: Outcome) -> None:
        self._print_output(found)
        if self._json:
            return
        screen = self._screen
        if not screen.terminal:
            screen.line()
        screen.markdown(found.final_answer or screen.say("run.no_answer"))
        screen.line()
        status = found.status or "failed"
        closing = screen.say(
            "run.closing",
            status=screen.say(f"status.{status}"),
            reason=f" ({found.stop_reason})" if found.stop_reason else "",
            calls=found.usage.tool_calls,
            seconds=f"{self._seconds:.1f}",
            thread=one_line(self._thread),
        )
        screen.line(closing, "green" if status == "completed" else "yellow" if status == "partial" else "red")

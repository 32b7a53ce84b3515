"""Carrying out runs: start, go on, answer; the exit code says how it ended."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any

from langgraph.types import Command

from cli.answers import chosen, read_answer
from cli.board import Board
from cli.desk import Desk
from cli.exit_codes import STATUS_CODES, ExitCode
from cli.kit import Kit
from cli.live import LiveView
from cli.looking import Seen, look
from cli.plain import JsonView, PlainView, View
from cli.plan_check import recheck
from cli.printable import one_line
from cli.questions import Asking, ask_all, askable, how_to_answer, plan_question, show
from cli.review import Answer
from cli.screen import Screen
from cli.spending import money
from cli.stopping import Stopped, cancelled_by_signals
from cli.terms import Terms, stored_terms
from graph.continuing import extend
from graph.runner import Outcome, run_events
from nodes.readiness import active_seconds
from schemas.errors import InputError, NothingToResume
from schemas.events import RunEvent
from schemas.limits import RunLimits
from schemas.state import TaskInput

if TYPE_CHECKING:
    from graph.threads import TaskGraph


async def start(desk: Desk, objective: str, thread_id: str, terms: Terms, *, as_json: bool) -> ExitCode:
    """Work on a new objective."""
    async with desk.open(terms.kit) as graph:
        return await Run(desk.screen, graph, thread_id, terms, as_json=as_json).go({"objective": objective})


async def resume(desk: Desk, thread_id: str, kit: Kit, more: Mapping[str, Any], *, as_json: bool) -> ExitCode:
    """Go on with a run that was stopped; ask, or say how to answer, if it waits for a person.

    Args:
        desk: where the person sits.
        thread_id: of the run.
        kit: other tools than it has been started with.
        more: what `extend` adds to the limits of a run that has ended with gaps; empty = nothing.
        as_json: whether events and output are printed as JSON.

    Raises:
        NothingToResume: the thread does not exist, or its run has ended. InputError: nothing can be added to it.
    """
    async with _reopened(desk, thread_id, kit, as_json=as_json) as run:
        if more:
            await run.extend(more)
        before = await run.so_far()
        if before.outcome.questions:
            return await run.settle(before)
        return await run.go(None)


async def answer_plan(desk: Desk, thread_id: str, reply: Answer, *, as_json: bool) -> ExitCode:
    """Answer the plan that waits for approval, and go on.

    Raises:
        NothingToResume: no plan waits. InputError: the answer cannot be used; the plan still waits.
    """
    async with _reopened(desk, thread_id, Kit(), as_json=as_json) as run:
        question = plan_question((await run.so_far()).outcome.questions)
        if question is None:
            raise NothingToResume(
                f"thread {thread_id} has no plan that waits for approval; planweave threads"
            )
        return await run.go(Command(resume={question.interrupt_id: reply}))


async def answer(
    desk: Desk, thread_id: str, words: Sequence[str], named: str | None, *, as_json: bool
) -> ExitCode:
    """Answer one question of a run, and go on; others still wait.

    Raises:
        NothingToResume: nothing is asked. InputError: the answer cannot be used; the question still waits.
    """
    say = desk.screen.say
    async with _reopened(desk, thread_id, Kit(), as_json=as_json) as run:
        question = chosen((await run.so_far()).outcome.questions, named, thread_id, say)
        return await run.go(Command(resume={question.interrupt_id: read_answer(question, words, say)}))


@asynccontextmanager
async def _reopened(desk: Desk, thread_id: str, kit: Kit, *, as_json: bool) -> AsyncGenerator["Run"]:
    async with desk.open() as graph:
        terms = (await stored_terms(graph, thread_id)).with_kit(kit)
    async with desk.open(terms.kit) as graph:
        yield Run(desk.screen, graph, thread_id, terms, as_json=as_json)


class Run:
    """One thread of one graph on one screen."""

    def __init__(
        self, screen: Screen, graph: "TaskGraph", thread_id: str, terms: Terms, *, as_json: bool
    ) -> None:
        self._screen, self._graph, self._thread, self._terms = screen, graph, thread_id, terms
        self._json = as_json
        self._ask = screen.can_ask and not as_json
        limits = terms.context.limits if terms.context is not None else RunLimits()
        self._board = Board(limits=limits)
        self._seconds = 0.0
        self._told = False

    async def extend(self, more: Mapping[str, Any]) -> None:
        """Add to the limits of a run that has ended."""
        await extend(self._graph, self._thread, **more)

    async def so_far(self) -> Seen:
        """Return what the thread has come to, and show it from now on as done.

        Raises:
            NothingToResume: there is no such thread.
        """
        seen = await look(self._graph, self._thread)
        found = seen.outcome
        if not found.known:
            raise NothingToResume(self._screen.say("show.unknown", thread=one_line(self._thread)))
        self._board.seed(found.plan, found.evidence)
        self._board.spent_seconds = active_seconds(found.evidence, found.usage)
        self._board.limits = seen.values.get("limits") if found.plan is not None else self._board.limits
        return seen

    async def go(self, task: "TaskInput | Command[Any] | None") -> ExitCode:
        """Run until the end, or until a question that nobody here answers.

        Raises:
            InputError: `task` is an answer that was not taken.
        """
        self._tell_of_the_embedded_model()
        try:
            await self._follow(task)
        except Stopped as stopped:
            # Before the first event nothing is stored that could go on.
            key = "run.stopped" if self._board.phase != "starting" else "run.stopped_early"
            self._screen.note(self._screen.say(key, thread=quote(self._thread)))
            return stopped.exit_code
        seen = await look(self._graph, self._thread)
        if isinstance(task, Command) and not self._ask:
            self._complain(seen.outcome)
        return await self.settle(seen)

    def _tell_of_the_embedded_model(self) -> None:
        if self._graph.offline and not self._told:
            self._screen.note(self._screen.say("run.offline"))
        self._told = True

    def _complain(self, found: Outcome) -> None:
        refusals = [
            str(question.question["error"]) for question in found.questions if question.question.get("error")
        ]
        if refusals:
            self._print_output(found)
            raise InputError(self._screen.say("review.refused", error=one_line("; ".join(refusals), 2000)))

    async def settle(self, seen: Seen) -> ExitCode:
        """Show what the run has come to; put its questions to the person, if there is one to ask."""
        found = seen.outcome
        questions = askable(found.questions)
        if questions and self._ask:
            asking = Asking(self._screen, recheck(self._graph, seen.values))
            try:
                answers = ask_all(asking, questions)
            except KeyboardInterrupt:
                self._screen.line()
                self._tell_how_to_answer(found)
                return ExitCode.INTERRUPTED
            if answers is not None:
                return await self.go(Command(resume=answers))
            self._screen.line(self._screen.say("review.left"))
        elif not self._json:
            for question in questions:
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
            with cancelled_by_signals(self._drain, view.stop):
                async with aclosing(self._events(task)) as events:
                    view.start()
                    async for event in events:
                        view.show(event)
        finally:
            view.stop()
            seconds = time.monotonic() - began
            self._seconds += seconds
            self._board.spent_seconds += seconds

    async def _drain(self) -> None:
        """Wait for the tool calls that run, and say so: a person may have thought that nothing happens."""
        screen, drain = self._screen, self._graph.parts.drain
        # Only the console that draws the table can print above it.
        tell = screen.line if screen.terminal and not self._json else screen.note
        if drain.at_work:
            tell(screen.say("run.stopping", calls=drain.at_work, seconds=f"{drain.grace_seconds:g}"))
        if left := await drain.finish():
            tell(screen.say("run.cut_off", calls=left))

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
            self._screen.json({"type": "output", **found.to_json()})

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
            cost=f" · {cost}" if (cost := money(found.usage)) else "",
            seconds=f"{self._seconds:.1f}",
            thread=one_line(self._thread),
        )
        screen.line(closing, "green" if status == "completed" else "yellow" if status == "partial" else "red")

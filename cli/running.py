"""The commands that carry out runs: run, resume, and the answers to what a run asks."""

import asyncio
import secrets
import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from cli.desk import Desk
from cli.kit import kit_of
from cli.limits import context_of
from cli.options import AsJson, Docs, Mcp, Own, Root, Thread, Web, Workspace
from cli.printable import from_argument
from schemas.context import Autonomy, Mode, OnGaps, ReviewPlan
from schemas.errors import InputError

commands = typer.Typer()
MOST_THREAD_CHARS = 200


def new_thread_id() -> str:
    """Return an id for a new thread: the time, and a little that makes it unique."""
    return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


@commands.command("run", help="help.run")
def _run(
    ctx: typer.Context,
    objective: Annotated[str, typer.Argument(metavar="OBJECTIVE", help="help.objective", show_default=False)],
    docs: Docs = None,
    root: Root = None,
    workspace: Workspace = None,
    web: Web = False,
    mcp: Mcp = None,
    tools: Own = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="help.thread")] = None,
    as_json: AsJson = False,
    review_plan: Annotated[ReviewPlan, typer.Option(help="help.review_plan")] = "never",
    stream_plan: Annotated[bool, typer.Option("--stream-plan", help="help.stream_plan")] = False,
    mode: Annotated[Mode, typer.Option(help="help.mode")] = "auto",
    autonomy: Annotated[Autonomy, typer.Option(help="help.autonomy")] = "ask",
    on_gaps: Annotated[OnGaps, typer.Option(help="help.on_gaps")] = "finish",
    max_tool_calls: Annotated[int | None, typer.Option(metavar="N", help="help.max_tool_calls")] = None,
    deadline: Annotated[float | None, typer.Option(metavar="SECONDS", help="help.deadline")] = None,
    max_parallel: Annotated[int | None, typer.Option(metavar="N", help="help.max_parallel")] = None,
    max_replans: Annotated[int | None, typer.Option(metavar="N", help="help.max_replans")] = None,
    max_steps: Annotated[int | None, typer.Option(metavar="N", help="help.max_steps")] = None,
    step_timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="help.step_timeout")] = None,
    max_tokens: Annotated[int | None, typer.Option(metavar="N", help="help.max_tokens")] = None,
    min_step_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="help.min_step_timeout")
    ] = None,
) -> int:
    desk: Desk = ctx.obj
    screen = desk.screen
    limits = {
        "--max-tool-calls": max_tool_calls,
        "--deadline": deadline,
        "--max-parallel": max_parallel,
        "--max-replans": max_replans,
        "--max-steps": max_steps,
        "--step-timeout": step_timeout,
        "--max-tokens": max_tokens,
        "--min-step-timeout": min_step_timeout,
    }
    choices: dict[str, Any] = {
        "review_plan": review_plan,
        "stream_plan": stream_plan,
        "mode": mode,
        "autonomy": autonomy,
        "on_gaps": on_gaps,
    }
    kit = kit_of(docs, root, workspace, web, mcp, tools)
    context = context_of(choices, limits, can_ask=screen.can_ask and not as_json)
    words = _standard_input() if objective == "-" else from_argument(objective)
    from cli.run import start
    from cli.terms import Terms

    thread = from_argument(thread) if thread is not None else None
    if thread is not None and not (thread.strip() and len(thread) <= MOST_THREAD_CHARS):
        raise InputError(screen.say("run.thread_id", most=MOST_THREAD_CHARS))
    if thread is None:
        thread = new_thread_id()
        (screen.note if as_json else screen.line)(screen.say("run.thread", thread=thread))
    return asyncio.run(start(desk, words, thread, Terms(kit, context), as_json=as_json))


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace")


@commands.command("resume", help="help.resume")
def _resume(
    ctx: typer.Context,
    thread: Thread,
    docs: Docs = None,
    root: Root = None,
    workspace: Workspace = None,
    web: Web = False,
    mcp: Mcp = None,
    tools: Own = None,
    as_json: AsJson = False,
    add_tool_calls: Annotated[int, typer.Option(metavar="N", help="help.add_tool_calls")] = 0,
    add_replans: Annotated[int, typer.Option(metavar="N", help="help.add_replans")] = 0,
    add_seconds: Annotated[float, typer.Option(metavar="SECONDS", help="help.add_seconds")] = 0,
    add_tokens: Annotated[int, typer.Option(metavar="N", help="help.add_tokens")] = 0,
    add_steps: Annotated[int, typer.Option(metavar="N", help="help.add_steps")] = 0,
) -> int:
    from cli import run as runs

    more = {
        "tool_calls": add_tool_calls,
        "replans": add_replans,
        "seconds": add_seconds,
        "tokens": add_tokens,
        "steps": add_steps,
    }
    added = more if any(more.values()) else {}
    kit = kit_of(docs, root, workspace, web, mcp, tools)
    return asyncio.run(runs.resume(ctx.obj, from_argument(thread), kit, added, as_json=as_json))


@commands.command("approve", help="help.approve")
def _approve(ctx: typer.Context, thread: Thread, as_json: AsJson = False) -> int:
    return _answer_plan(ctx, thread, {"decision": "approve"}, as_json=as_json)


@commands.command("edit", help="help.edit")
def _edit(
    ctx: typer.Context,
    thread: Thread,
    file: Annotated[str, typer.Option("--file", metavar="FILE", help="help.file", show_default=False)],
    as_json: AsJson = False,
) -> int:
    from cli.plan_text import read_plan

    return _answer_plan(ctx, thread, {"decision": "edit", "plan": read_plan(file)}, as_json=as_json)


@commands.command("revise", help="help.revise")
def _revise(
    ctx: typer.Context,
    thread: Thread,
    remark: Annotated[str, typer.Argument(metavar="REMARK", help="help.remark", show_default=False)],
    as_json: AsJson = False,
) -> int:
    reply = {"decision": "revise", "feedback": from_argument(remark)}
    return _answer_plan(ctx, thread, reply, as_json=as_json)


@commands.command("cancel", help="help.cancel")
def _cancel(ctx: typer.Context, thread: Thread, as_json: AsJson = False) -> int:
    return _answer_plan(ctx, thread, {"decision": "cancel"}, as_json=as_json)


def _answer_plan(ctx: typer.Context, thread: str, reply: dict[str, Any], *, as_json: bool) -> int:
    from cli import run as runs

    return asyncio.run(runs.answer_plan(ctx.obj, from_argument(thread), reply, as_json=as_json))


@commands.command("answer", help="help.answer", epilog="help.answer_epilog")
def _answer(
    ctx: typer.Context,
    thread: Thread,
    words: Annotated[list[str], typer.Argument(metavar="ANSWER...", help="help.words", show_default=False)],
    question: Annotated[str | None, typer.Option("--id", metavar="ID", help="help.question")] = None,
    as_json: AsJson = False,
) -> int:
    from cli import run as runs

    said = [from_argument(word) for word in words]
    return asyncio.run(runs.answer(ctx.obj, from_argument(thread), said, question, as_json=as_json))

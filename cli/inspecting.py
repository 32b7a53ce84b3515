"""The commands that look at threads and look after them, and at what the program has."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.desk import Desk
from cli.kit import kit_of
from cli.options import Docs, Mcp, OneJson, Own, Root, Thread, Web, Workspace, Yes
from cli.printable import from_argument

commands = typer.Typer()


@commands.command("threads", help="help.threads")
def _threads(ctx: typer.Context, as_json: OneJson = False) -> int:
    from cli import threads as listing

    return asyncio.run(listing.threads(ctx.obj, as_json=as_json))


@commands.command("show", help="help.show")
def _show(
    ctx: typer.Context,
    thread: Thread,
    evidence: Annotated[bool, typer.Option("--evidence", help="help.evidence")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="help.plan")] = False,
    plans: Annotated[bool, typer.Option("--plans", help="help.plans")] = False,
    history: Annotated[bool, typer.Option("--history", help="help.history")] = False,
    as_json: OneJson = False,
) -> int:
    from cli import show as shows

    if sum((plan, plans, history)) > 1:
        raise typer.BadParameter("--plan, --plans, --history: one at a time")
    part: shows.Part = "plan" if plan else "plans" if plans else "history" if history else "thread"
    return asyncio.run(shows.show(ctx.obj, from_argument(thread), part, evidence=evidence, as_json=as_json))


@commands.command("fork", help="help.fork")
def _fork(
    ctx: typer.Context,
    thread: Thread,
    at: Annotated[str, typer.Option("--at", metavar="CHECKPOINT", help="help.at", show_default=False)],
    edit: Annotated[str | None, typer.Option("--edit", metavar="FILE", help="help.fork_edit")] = None,
    to: Annotated[str | None, typer.Option("--thread", metavar="ID", help="help.fork_thread")] = None,
    as_json: OneJson = False,
) -> int:
    from cli import forks
    from cli.running import new_thread_id

    name = from_argument(to) if to is not None else new_thread_id()
    return asyncio.run(forks.fork(ctx.obj, from_argument(thread), at, edit, to=name, as_json=as_json))


@commands.command("rm", help="help.rm")
def _rm(ctx: typer.Context, thread: Thread, yes: Yes = False) -> int:
    from cli import forks

    return asyncio.run(forks.remove(ctx.obj, from_argument(thread), sure=yes))


@commands.command("prune", help="help.prune")
def _prune(
    ctx: typer.Context,
    history: Annotated[bool, typer.Option("--history", help="help.prune_history")] = False,
    yes: Yes = False,
    as_json: OneJson = False,
) -> int:
    from cli import forks

    return asyncio.run(forks.prune(ctx.obj, history=history, sure=yes, as_json=as_json))


@commands.command("report", help="help.report")
def _report(
    ctx: typer.Context,
    thread: Thread,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="help.output")] = None,
) -> int:
    from cli import report as reports

    # Without --lang a report speaks the objective's language, whatever the terminal's is.
    language = ctx.parent.params.get("lang") if ctx.parent is not None else None
    return asyncio.run(reports.report(ctx.obj, from_argument(thread), output, language))


@commands.command("graph", help="help.graph")
def _graph(
    ctx: typer.Context, mermaid: Annotated[bool, typer.Option("--mermaid", help="help.mermaid")] = False
) -> int:
    from cli import drawing

    return drawing.draw(ctx.obj.screen, mermaid=mermaid)


@commands.command("tools", help="help.tools")
def _tools(
    ctx: typer.Context,
    docs: Docs = None,
    root: Root = None,
    workspace: Workspace = None,
    web: Web = False,
    mcp: Mcp = None,
    tools: Own = None,
    as_json: OneJson = False,
) -> int:
    from cli import drawing

    kit = kit_of(docs, root, workspace, web, mcp, tools)
    return asyncio.run(drawing.tools(ctx.obj, kit, as_json=as_json))


@commands.command("doctor", help="help.doctor")
def _doctor(ctx: typer.Context) -> int:
    from cli import doctor as doctors

    desk: Desk = ctx.obj
    return asyncio.run(doctors.doctor(desk.screen))

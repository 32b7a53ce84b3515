"""The command `planweave`: what can be typed.

Importing this module, and `planweave --help`, load neither LangChain nor LangGraph: each command imports its own
work when it runs.
"""

import asyncio
import secrets
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from cli.arguments import read
from cli.errors import report
from cli.exit_codes import ExitCode
from cli.limits import context_of
from cli.printable import from_argument
from cli.screen import Screen, open_streams
from cli.texts import CATALOGUE, Language, Texts, language_of_locale
from schemas.context import Mode, ReviewPlan

app = typer.Typer(help="help.app", epilog="help.epilog", rich_markup_mode=None)

# Help texts are keys of the catalogue; `_parser` puts the words of the chosen language in their place.
Thread = Annotated[str, typer.Argument(metavar="THREAD", help="help.thread_argument", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="help.json")]
OneJson = Annotated[bool, typer.Option("--json", help="help.json_one")]
Docs = Annotated[Path | None, typer.Option("--docs", metavar="DIR", help="help.docs")]
Root = Annotated[Path | None, typer.Option("--root", metavar="DIR", help="help.root")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: this process's) and return its exit code."""
    open_streams()
    typed = read((sys.argv[1:] if arguments is None else list(arguments)) or ["--help"])
    say = Texts(typed.language or language_of_locale())
    screen = Screen.open(say, debug=typed.debug)
    try:
        code = _parser(say).main(
            args=typed.arguments, prog_name="planweave", standalone_mode=False, obj=screen
        )
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost frame: whatever it is becomes one line
        return report(error, screen)
    return int(code or 0)


def _parser(say: Texts) -> TyperGroup:
    # With --install-completion and --show-completion, unlike typer.main.get_group().
    group = cast("TyperGroup", typer.main.get_command(app))
    words = CATALOGUE[say.language]
    for command in (group, *group.commands.values()):
        command.help = words.get(command.help or "", command.help)
        command.epilog = words["help.epilog"]
        for parameter in command.params:
            key = getattr(parameter, "help", None)
            if key in words:
                setattr(parameter, "help", words[key])  # noqa: B010 - typer's base class does not declare it
    return group


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"planweave {version('planweave')}")
        raise typer.Exit


@app.callback()
def _options(
    lang: Annotated[Language | None, typer.Option(help="help.lang")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="help.debug")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="help.version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    # All three act before anything is parsed further; see cli/arguments.py.
    del lang, debug, version


@app.command("run", help="help.run")
def _run(
    ctx: typer.Context,
    objective: Annotated[str, typer.Argument(metavar="OBJECTIVE", help="help.objective", show_default=False)],
    docs: Docs = None,
    root: Root = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="help.thread")] = None,
    as_json: AsJson = False,
    review_plan: Annotated[ReviewPlan, typer.Option(help="help.review_plan")] = "never",
    mode: Annotated[Mode, typer.Option(help="help.mode")] = "auto",
    max_tool_calls: Annotated[int | None, typer.Option(metavar="N", help="help.max_tool_calls")] = None,
    deadline: Annotated[float | None, typer.Option(metavar="SECONDS", help="help.deadline")] = None,
    max_parallel: Annotated[int | None, typer.Option(metavar="N", help="help.max_parallel")] = None,
    max_replans: Annotated[int | None, typer.Option(metavar="N", help="help.max_replans")] = None,
    max_steps: Annotated[int | None, typer.Option(metavar="N", help="help.max_steps")] = None,
    step_timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="help.step_timeout")] = None,
) -> int:
    screen: Screen = ctx.obj
    limits = {
        "--max-tool-calls": max_tool_calls,
        "--deadline": deadline,
        "--max-parallel": max_parallel,
        "--max-replans": max_replans,
        "--max-steps": max_steps,
        "--step-timeout": step_timeout,
    }
    context = context_of(review_plan, mode, limits, can_ask=screen.can_ask and not as_json)
    words = _standard_input() if objective == "-" else from_argument(objective)
    from cli.run import Terms, start

    thread = from_argument(thread) if thread is not None else None
    if thread is None:
        thread = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        (screen.note if as_json else screen.line)(screen.say("run.thread", thread=thread))
    return asyncio.run(start(screen, words, thread, Terms(docs, root, context), as_json=as_json))


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace")


@app.command("resume", help="help.resume")
def _resume(
    ctx: typer.Context, thread: Thread, docs: Docs = None, root: Root = None, as_json: AsJson = False
) -> int:
    from cli import run as runs

    return asyncio.run(runs.resume(ctx.obj, from_argument(thread), docs, root, as_json=as_json))


@app.command("approve", help="help.approve")
def _approve(ctx: typer.Context, thread: Thread, as_json: AsJson = False) -> int:
    return _answer(ctx, thread, {"decision": "approve"}, as_json=as_json)


@app.command("edit", help="help.edit")
def _edit(
    ctx: typer.Context,
    thread: Thread,
    file: Annotated[str, typer.Option("--file", metavar="FILE", help="help.file", show_default=False)],
    as_json: AsJson = False,
) -> int:
    from cli.review import read_plan

    return _answer(ctx, thread, {"decision": "edit", "plan": read_plan(file)}, as_json=as_json)


@app.command("revise", help="help.revise")
def _revise(
    ctx: typer.Context,
    thread: Thread,
    remark: Annotated[str, typer.Argument(metavar="REMARK", help="help.remark", show_default=False)],
    as_json: AsJson = False,
) -> int:
    return _answer(ctx, thread, {"decision": "revise", "feedback": from_argument(remark)}, as_json=as_json)


@app.command("cancel", help="help.cancel")
def _cancel(ctx: typer.Context, thread: Thread, as_json: AsJson = False) -> int:
    return _answer(ctx, thread, {"decision": "cancel"}, as_json=as_json)


def _answer(ctx: typer.Context, thread: str, reply: dict[str, Any], *, as_json: bool) -> int:
    from cli import run as runs

    return asyncio.run(runs.answer(ctx.obj, from_argument(thread), reply, as_json=as_json))


@app.command("threads", help="help.threads")
def _threads(ctx: typer.Context, as_json: OneJson = False) -> int:
    from cli import show as shows

    return asyncio.run(shows.threads(ctx.obj, as_json=as_json))


@app.command("show", help="help.show")
def _show(
    ctx: typer.Context,
    thread: Thread,
    evidence: Annotated[bool, typer.Option("--evidence", help="help.evidence")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="help.plan")] = False,
    as_json: OneJson = False,
) -> int:
    from cli import show as shows

    return asyncio.run(
        shows.show(ctx.obj, from_argument(thread), evidence=evidence, plan=plan, as_json=as_json)
    )


@app.command("graph", help="help.graph")
def _graph(
    ctx: typer.Context, mermaid: Annotated[bool, typer.Option("--mermaid", help="help.mermaid")] = False
) -> int:
    from cli import show as shows

    return shows.draw(ctx.obj, mermaid=mermaid)


@app.command("tools", help="help.tools")
def _tools(ctx: typer.Context, docs: Docs = None, root: Root = None, as_json: OneJson = False) -> int:
    from cli import show as shows

    return asyncio.run(shows.tools(ctx.obj, docs, root, as_json=as_json))


@app.command("doctor", help="help.doctor")
def _doctor(ctx: typer.Context) -> int:
    from cli import doctor as doctors

    return asyncio.run(doctors.doctor(ctx.obj))


if __name__ == "__main__":
    sys.exit(main())

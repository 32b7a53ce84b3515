"""The command `planweave`: what can be typed.

Importing this module, and `planweave --help`, load neither LangChain nor LangGraph: each command imports its own
work when it runs.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, cast

import typer
from typer.core import TyperGroup

from cli import inspecting, running
from cli.arguments import read
from cli.desk import Desk
from cli.errors import report
from cli.exit_codes import ExitCode
from cli.screen import Screen, open_streams
from cli.texts import CATALOGUE, Language, Texts, language_of_locale

# Help texts are keys of the catalogue; `_parser` puts the words of the chosen language in their place.
app = typer.Typer(help="help.app", epilog="help.epilog", rich_markup_mode=None)
app.add_typer(running.commands)
app.add_typer(inspecting.commands)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: this process's) and return its exit code."""
    open_streams()
    typed = read((sys.argv[1:] if arguments is None else list(arguments)) or ["--help"])
    say = Texts(typed.language or language_of_locale())
    screen = Screen.open(say, debug=typed.debug)
    try:
        code = _parser(say).main(
            args=typed.arguments, prog_name="planweave", standalone_mode=False, obj=Desk(screen)
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
        command.epilog = words[command.epilog or "help.epilog"]
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


if __name__ == "__main__":
    sys.exit(main())

"""What an error says on standard error, and which exit code it gives."""

import sys
import traceback

import typer

from cli.exit_codes import ExitCode
from cli.printable import one_line
from cli.screen import Screen
from schemas.errors import PlanweaveError, UserError

_LINE_CHARS = 2000


def report(error: Exception, screen: Screen) -> ExitCode:
    """Print the error on one line; with --debug its traceback as well."""
    if screen.debug:
        traceback.print_exception(error, file=sys.stderr)
    screen.note("planweave: " + _words(error, screen))
    usage = isinstance(error, UserError | typer.TyperException)
    return ExitCode.USAGE if usage else ExitCode.FAILED


def _words(error: Exception, screen: Screen) -> str:
    if isinstance(error, typer.TyperException):
        return screen.say("run.usage_hint", message=one_line(error.format_message(), _LINE_CHARS))
    message = one_line(str(error), _LINE_CHARS)
    if isinstance(error, PlanweaveError):
        return message or type(error).__name__
    return screen.say("run.unexpected", kind=type(error).__name__, message=message)

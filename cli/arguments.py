"""The command line as typed, brought into the form that the parser knows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, get_args

from cli.texts import Language
from schemas.context import ReviewPlan

_LANG, _DEBUG, _REVIEW, _EDIT = "--lang", "--debug", "--review-plan", "--edit"


@dataclass(frozen=True)
class Typed:
    """A command line.

    Attributes:
        arguments: options that every command takes stand first; an option whose value may be left out has one.
        language: asked for by --lang, if it is one that there is.
        debug: whether --debug was given.
    """

    arguments: list[str]
    language: Language | None
    debug: bool


def read(arguments: Sequence[str]) -> Typed:
    """Bring a command line into the parser's form.

    --lang and --debug may stand anywhere: both are needed before anything is parsed, for help texts and errors.
    What follows "--" is left alone.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    front: list[str] = []
    rest: list[str] = []
    items = iter(range(end))
    for number in items:
        item = arguments[number]
        following = arguments[number + 1] if number + 1 < end else None
        if item == _DEBUG or item.startswith(_LANG + "="):
            front.append(item)
        elif item == _LANG and following is not None:
            front.append(f"{_LANG}={following}")
            next(items)
        elif item == _REVIEW and following not in get_args(ReviewPlan):
            rest.append(f"{_REVIEW}=first")
        elif item == _EDIT and (following is None or following.startswith("--")):
            rest.append(f"{_EDIT}=")
        else:
            rest.append(item)
    asked = next((item.partition("=")[2] for item in reversed(front) if item != _DEBUG), None)
    language = cast("Language", asked) if asked in get_args(Language) else None
    return Typed([*front, *rest, *arguments[end:]], language, _DEBUG in front)

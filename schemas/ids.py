"""Ids of steps: new ones made of those that are used already."""

from collections.abc import Collection

MAX_ID_CHARS = 64


def free_id(step_id: str, used: Collection[str], joint: str = ".") -> str:
    """Return an id made of another one, with a number behind the joint, that is not among the casefolded ones in use."""
    number = 2
    while (name := f"{step_id[: MAX_ID_CHARS - 4]}{joint}{number}").casefold() in used:
        number += 1
    return name

"""A run's choices (RunContext), kept with its checkpoints.

The state has them only from `plan` on, and a run that is killed before that must not lose them.
"""

from collections.abc import Mapping
from typing import Any, cast

from langgraph.types import StateSnapshot
from pydantic import ValidationError

from schemas.context import RunContext
from schemas.errors import InputError
from schemas.plan import validation_lines

# Their key in the metadata of checkpoints.
CHOICES = "planweave_choices"


def keep_choices(config: dict[str, Any], kwargs: dict[str, Any]) -> None:
    """Store a new run's choices with its checkpoints; change `config` and `kwargs`.

    Raises:
        InputError: the context is not a RunContext, and cannot be read as one.
    """
    if kwargs.get("context") is None:
        return
    try:
        context = RunContext.model_validate(kwargs["context"])
    except ValidationError as error:
        raise InputError("context: " + "; ".join(validation_lines(error))) from None
    _note(config, context.model_dump_json(exclude_defaults=True))
    kwargs["context"] = context


def repeated_choices(config: dict[str, Any], state: StateSnapshot) -> RunContext | None:
    """Return the choices that a run was started with, None where it had none; change `config`.

    They are stored with this life's checkpoints, too: the next life may find only those.
    """
    stored = cast("Mapping[str, Any]", state.metadata or {}).get(CHOICES)
    if not stored:
        return None
    _note(config, stored)
    return RunContext.model_validate_json(stored)


def _note(config: dict[str, Any], choices: str) -> None:
    config["metadata"] = {**(config.get("metadata") or {}), CHOICES: choices}

"""A run's choices, from the options that set them."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from schemas.context import RunContext
from schemas.errors import InputError
from schemas.limits import RunLimits

_FIELDS = {
    "--max-tool-calls": "total_tool_budget",
    "--deadline": "deadline_seconds",
    "--max-parallel": "max_parallel_steps",
    "--max-replans": "max_replans",
    "--max-steps": "max_plan_steps",
    "--step-timeout": "step_timeout_cap",
    "--max-tokens": "max_tokens",
    "--min-step-timeout": "step_timeout_floor",
}


def context_of(
    choices: Mapping[str, Any], limits: Mapping[str, float | None], *, can_ask: bool = True
) -> RunContext:
    """Return the run's context.

    Args:
        choices: fields of RunContext.
        limits: values by option; None = not given.
        can_ask: whether somebody is there to answer the planner's questions; if not, it goes on with assumptions.

    Raises:
        InputError: a value is out of range; every such option is named.
    """
    given = {_FIELDS[option]: value for option, value in limits.items() if value is not None}
    try:
        chosen = {**choices, "limits": RunLimits.model_validate(given)}
        return RunContext.model_validate(chosen | {"questions": "ask" if can_ask else "assume"})
    except ValidationError as error:
        options = {field: option for option, field in _FIELDS.items()}
        lines = [
            f"{options.get(str(item['loc'][0]), item['loc'][0])}: {item['msg']} (given: {item['input']})"
            for item in error.errors(include_url=False)
        ]
        raise InputError("; ".join(lines)) from None

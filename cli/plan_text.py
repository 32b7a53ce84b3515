"""A plan as YAML: what a person may edit of it, and reading it back."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from cli.printable import BIDI, one_line
from schemas.errors import InputError
from schemas.plan import Plan, PlanDraft

# What the program computes: a person's edit of a printed plan may carry it along, and it is not theirs to set.
_COMPUTED = frozenset(Plan.model_fields) - frozenset(PlanDraft.model_fields)
_WIDTH = 100


def plan_yaml(plan: Mapping[str, Any]) -> str:
    """Return what a person may edit of a plan, as YAML."""
    return yaml_text({key: plan[key] for key in PlanDraft.model_fields if key in plan})


def yaml_text(value: Mapping[str, Any]) -> str:
    """Return JSON values as YAML, in their order, fit to print and to edit: it reads back as exactly the same."""
    text = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
    # YAML escapes control characters itself, but not the marks that reorder what is read.
    return BIDI.sub(lambda mark: f"\\u{ord(mark[0]):04X}", text)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are read, where YAML can."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if BIDI.search(value) else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def read_yaml(file: str) -> Any:
    """Read YAML or JSON from a file, or from standard input if it is "-".

    Raises:
        InputError: the file cannot be read; the message gives the line.
    """
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return yaml.safe_load(raw.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 at byte {error.start}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{file}: {one_line(yaml_problem(error))}") from None


def read_plan(file: str) -> dict[str, Any]:
    """Read a plan from a YAML or JSON file, or from standard input if it is "-".

    Raises:
        InputError: the file cannot be read, or holds no mapping; the message gives the line.
    """
    value = read_yaml(file)
    if not isinstance(value, dict):
        raise InputError(f"{file}: a plan is a mapping with steps, not {type(value).__name__}")
    return without_computed(cast("dict[str, Any]", value))


def without_computed(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan without what the program computes."""
    return {key: item for key, item in plan.items() if key not in _COMPUTED}


def yaml_problem(error: Exception) -> str:
    """Return what is wrong with a YAML text, with the place."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error)

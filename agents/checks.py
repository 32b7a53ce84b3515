"""Machine checks and Python verifiers: rule 3 of the pass rule."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from agents.bodies import run_body
from agents.failures import one_line
from agents.patterns import matches
from schemas.errors import StorageError
from schemas.evidence import Evidence
from schemas.plan import (
    Check,
    FileContains,
    FileExists,
    JsonPathEquals,
    MinSources,
    SqlReturns,
    Step,
    TextMatches,
)
from tools.own_thread import staying, threaded

StepVerifier = Callable[[Step, Evidence], bool | Awaitable[bool]]
Tools = Callable[[str], BaseTool | None]
_MISSING = object()


async def failed_checks(
    step: Step, evidence: Evidence, tools: Tools, verify: StepVerifier | None
) -> list[str]:
    """Return one line for each check and verifier that is not true.

    Args:
        step: with its checks.
        evidence: of the step, passed by rules 1 and 2.
        tools: gives the tool of a name, or None; file and SQL checks look through the run's own tools.
        verify: the application's verifier.
    """
    failures: list[str] = []
    for check in step.checks:
        try:
            reason = await _check(check, evidence, tools)
        except (GraphBubbleUp, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - a check that cannot run has not passed
            reason = one_line(error)
        if reason:
            failures.append(f"check {check.type}: {reason}")
    if verify is not None:
        reason = await verdict_of("verify_step", verify, step, evidence)
        if reason:
            failures.append(reason)
    return failures


async def verdict_of(name: str, verify: Callable[..., Any], *args: Any) -> str:
    """Call a verifier; return "" when it says True, else why it does not pass. Anything but a bool is an error.

    Raises:
        GraphBubbleUp, StorageError: LangGraph's signals, and a failed database, pass through.
    """
    try:
        answer = await run_body(partial(staying(_answer), verify, *args), name)
    except (GraphBubbleUp, StorageError):
        raise
    except Exception as error:  # noqa: BLE001 - a verifier is foreign code
        return f"{name} failed: {one_line(error)}"
    if not isinstance(answer, bool):
        return f"{name} returned {type(answer).__name__}, not a bool"
    return "" if answer else f"{name} said no"


async def _answer(verify: Callable[..., Any], *args: Any) -> Any:
    """Return what a verifier answers: a sync one works in a thread, where it holds up no other step."""
    is_async = inspect.iscoroutinefunction(verify) or inspect.iscoroutinefunction(type(verify).__call__)
    answer = verify(*args) if is_async else await threaded(verify)(*args)
    return await answer if inspect.isawaitable(answer) else answer


async def _check(check: Check, evidence: Evidence, tools: Tools) -> str:
    match check:
        case MinSources():
            have = len(evidence.source_ids)
            return "" if have >= check.count else f"{have} sources, {check.count} wanted"
        case TextMatches():
            found = await matches(check.pattern, evidence.summary[:8000])
            return "" if found else f"nothing matches {check.pattern!r}"
        case JsonPathEquals():
            value = _at_path(evidence.summary, check.path)
            equal = value == check.value and type(value) is type(check.value)
            return "" if equal else f"{check.path} is not equal"
        case FileExists():
            await _read(tools, check.path)
            return ""
        case FileContains():
            text = await _read(tools, check.path)
            return "" if check.text in text else f"{check.path} does not contain the text"
        case SqlReturns():
            return await _sql(tools, check)


def _at_path(summary: str, path: str) -> Any:
    value: Any = json.loads(summary)
    for part in path.removeprefix("$").strip(".").split("."):
        value = cast("list[Any]", value)[int(part)] if isinstance(value, list) else value.get(part, _MISSING)
    return value


async def _read(tools: Tools, path: str) -> str:
    tool = tools("read_file")
    if tool is None:
        raise LookupError("there is no read_file tool: give the run a root folder")
    return str(await tool.ainvoke({"path": path}))


async def _sql(tools: Tools, check: SqlReturns) -> str:
    tool = tools("query_tables")
    if tool is None:
        raise LookupError("there is no query_tables tool: give the run a folder with tables")
    sql = f"SELECT count(*) AS n FROM ({check.sql.rstrip().rstrip(';')}) AS checked"
    text = str(await tool.ainvoke({"sql": sql}))
    numbers = [int(line.strip(" |")) for line in text.splitlines() if re.fullmatch(r"[|\s]*\d+[|\s]*", line)]
    rows = numbers[0] if numbers else 0
    return "" if rows >= check.min_rows else f"{rows} rows, {check.min_rows} wanted"

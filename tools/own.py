"""A person's own tools: "module:attribute", "path/to/file.py:attribute", or the name of an entry point.

The attribute is a LangChain tool, a list of them, or a function without arguments that returns either. Entry points
are those of the group `planweave.tools`; the group's name stands for all of them.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from langchain_core.tools import BaseTool

from schemas.errors import SettingsError
from tools.own_thread import in_own_thread
from tools.rate_limit import RateLimit, limited, shared_limit

GROUP = "planweave.tools"
RATE = "calls_per_minute"


class _Unusable(Exception):
    """A spec names no tools; the message is the rest of its line."""


def own_tools(specs: Sequence[str]) -> list[BaseTool]:
    """Load tools.

    A tool's metadata may say `permission`, `idempotent` and `timeout_seconds`, as for any tool, and
    `calls_per_minute`: how often its body may start in this process, whichever run asks. What is too early waits.

    Args:
        specs: in the order in which the tools are offered.

    Raises:
        SettingsError: with a line for each spec that cannot be used.
    """
    tools: list[BaseTool] = []
    problems: list[str] = []
    for spec in specs:
        try:
            tools += [_with_limit(tool, spec) for tool in _loaded(spec.strip())]
        except _Unusable as error:
            problems.append(f"own tools {spec!r}: {error}")
    if problems:
        raise SettingsError("; ".join(problems))
    return tools


def _loaded(spec: str) -> list[BaseTool]:
    name, colon, attribute = spec.rpartition(":")
    if colon:
        module = _module(name)
        value: Any = module
        for part in attribute.split("."):
            value = getattr(value, part, None)
            if value is None:
                raise _Unusable(f"{name} has no {attribute!r}")
        return _tools_in(value)
    points = [point for point in entry_points(group=GROUP) if spec in (point.name, GROUP)]
    if not points:
        raise _Unusable(
            f'there is no such entry point in the group {GROUP}; a module\'s tools are named "module:attribute"'
        )
    return [tool for point in points for tool in _tools_in(_guarded(point.load, point.value))]


def _module(name: str) -> ModuleType:
    if name.endswith(".py"):
        return _module_of_file(Path(name))
    folder = str(Path.cwd())
    try:
        found = name.split(".")[0] in sys.modules or importlib.util.find_spec(name.split(".")[0]) is not None
    except (ImportError, ValueError):
        found = False
    if not found and folder not in sys.path:
        # Last, so that no file of the working folder takes the place of a library.
        sys.path.append(folder)
    return _guarded(lambda: importlib.import_module(name), name)


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise _Unusable(f"there is no file {str(path)!r}")
    name = f"planweave_own_{path.stem}_{sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _Unusable(f"{str(path)!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations of its tools are looked up there
    try:
        _guarded(lambda: cast("Any", spec.loader).exec_module(module), str(path))
    except _Unusable:
        del sys.modules[name]
        raise
    return module


def _guarded(load: Callable[[], Any], name: str) -> Any:
    """Return `load()`; whatever a person's module raises becomes one line."""
    try:
        return load()
    except ModuleNotFoundError as error:
        missing = error.name or name
        raise _Unusable(
            f"there is no module {missing!r}" + (f" (imported by {name})" if missing != name else "")
        ) from error
    except Exception as error:
        raise _Unusable(f"{name} fails: {_line(error)}") from error


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def _tools_in(value: Any) -> list[BaseTool]:
    if isinstance(value, BaseTool):
        return [value]
    if inspect.isroutine(value) or inspect.isclass(value):
        value = _made(value)
    items = [value] if isinstance(value, BaseTool) else value
    if not isinstance(items, list | tuple):
        raise _Unusable(f"it gives {_kind(items)}, not a tool or a list of tools")
    wrong = [item for item in cast("Sequence[Any]", items) if not isinstance(item, BaseTool)]
    if wrong:
        raise _Unusable(
            f"{_kind(wrong[0])} is not a LangChain tool: decorate it with langchain_core.tools.tool"
        )
    return list(cast("Sequence[BaseTool]", items))


def _made(function: Callable[..., Any]) -> Any:
    try:
        needed = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
    except ValueError:  # built in, without a signature
        needed = []
    if needed or inspect.iscoroutinefunction(function):
        raise _Unusable(
            f"{_kind(function)} is not a LangChain tool: decorate it with langchain_core.tools.tool, "
            "or give a function without arguments that returns tools"
        )
    return _guarded(function, _kind(function))


def _kind(value: Any) -> str:
    name = getattr(value, "__name__", None)
    return (
        f"the function {name}"
        if name and inspect.isroutine(value)
        else f"a value of type {type(value).__name__}"
    )


def _with_limit(tool: BaseTool, spec: str) -> BaseTool:
    rate = (tool.metadata or {}).get(RATE)
    if rate is None:
        return tool
    if isinstance(rate, bool) or not isinstance(rate, int) or rate < 1:
        raise _Unusable(
            f"tool {tool.name!r}: metadata {RATE!r} is {rate!r}; it must be a whole number above 0"
        )
    limit: RateLimit = shared_limit(f"{spec}/{tool.name}", rate)
    return limited(in_own_thread(tool), limit)

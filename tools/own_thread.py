"""Tools that cannot hold up or end the process: blocking ones in threads of their own, and SystemExit as an error.

LangChain runs a sync tool in the event loop's shared thread pool: a few that block would keep all others waiting,
and the interpreter waits for that pool's threads when it exits. These threads are daemons, one for each call.
"""

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

_BODIES: ContextVar["list[asyncio.Future[None]] | None"] = ContextVar("planweave_tool_bodies", default=None)


@contextmanager
def bodies_noted() -> Generator["list[asyncio.Future[None]]"]:
    """Give a list that gets a future for each thread that is begun in here, also by tasks: done when its body has ended."""
    noted: list[asyncio.Future[None]] = []
    token = _BODIES.set(noted)
    try:
        yield noted
    finally:
        _BODIES.reset(token)


def in_own_thread(tool: BaseTool) -> BaseTool:
    """Return the tool, its sync body moved to a thread of its own where it has no async one."""
    if isinstance(tool, StructuredTool) and tool.coroutine is not None:
        return tool.model_copy(update={"coroutine": staying(tool.coroutine)})
    if isinstance(tool, StructuredTool) and tool.func is not None:
        return tool.model_copy(update={"coroutine": threaded(tool.func)})
    return tool


def staying(body: Callable[..., Awaitable[Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a body that raises only what a tool may: see `as_error`."""

    @functools.wraps(body)
    async def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return await body(*args, **kwargs)
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - through a task it would end the process
            raise as_error(error) from None

    return run


def as_error(error: BaseException) -> Exception:
    """Return what is no ordinary error as one: SystemExit, a command-line parser's say, would end the whole process."""
    if isinstance(error, Exception):
        return error
    if isinstance(error, SystemExit):
        return RuntimeError(f"it tried to end the process: exit({error.code})")
    return RuntimeError(f"it raised {type(error).__name__}: {error}")


def threaded(func: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a coroutine function that runs `func` in a daemon thread; a late result is dropped."""

    @functools.wraps(func)
    async def run(*args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Any] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()
        noted = _BODIES.get()
        if noted is not None:
            noted.append(ended)
        context = contextvars.copy_context()

        def settle(value: Any, error: BaseException | None) -> None:
            ended.set_result(None)
            if result.done():
                return  # nobody waits any more
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)

        def body() -> None:
            value: Any = None
            failure: BaseException | None = None
            try:
                value = context.run(func, *args, **kwargs)
            except StopIteration as error:
                failure = RuntimeError(f"the tool raised StopIteration: {error}")  # a future refuses this one
            except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
                failure = as_error(error)
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(settle, value, failure)

        threading.Thread(target=body, name=f"tool-{getattr(func, '__name__', 'body')}", daemon=True).start()
        return await result

    return run

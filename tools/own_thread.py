"""Blocking tools in threads of their own, so that one that never returns holds up nothing else.

LangChain runs a sync tool in the event loop's shared thread pool: a few that block would keep all others waiting,
and the interpreter waits for that pool's threads when it exits. These threads are daemons, one for each call.
"""

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool


def in_own_thread(tool: BaseTool) -> BaseTool:
    """Return the tool, its sync body moved to a thread of its own where it has no async one."""
    if isinstance(tool, StructuredTool) and tool.func is not None and tool.coroutine is None:
        return tool.model_copy(update={"coroutine": threaded(tool.func)})
    return tool


def threaded(func: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a coroutine function that runs `func` in a daemon thread; a late result is dropped."""

    @functools.wraps(func)
    async def run(*args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def settle(value: Any, error: BaseException | None) -> None:
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
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(settle, value, failure)

        threading.Thread(target=body, name=f"tool-{getattr(func, '__name__', 'body')}", daemon=True).start()
        return await result

    return run

"""Programs run in a folder: an argument list and no shell, a time limit, a bounded output, no secrets in reach."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.tools import ToolException

from tools.folder import NotText, decode
from tools.results import clean_text, cut

MAX_SECONDS = 600
MAX_OUTPUT_BYTES = 200_000
"""Of longer output the beginning and the end are kept, half of this each."""
INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "JAVA_HOME")
"""What a program sees of the environment. A list of names: a list of secrets is never complete."""
_READ_BYTES = 65_536
_GRACE_SECONDS = 2
_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Finished:
    """A program that has ended: its exit code (negative: the signal), and its output, errors among it."""

    code: int
    output: str


def environment_for(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a program sees of an environment: INHERITED, and the folder as its home."""
    kept = {name: environment[name] for name in INHERITED if name in environment}
    return {"PATH": os.defpath, "LANG": "C.UTF-8"} | kept | {"HOME": str(root)}


async def run(
    arguments: Sequence[str], seconds: float, root: Path, environment: Mapping[str, str]
) -> Finished:
    """Run a program to its end, and end whatever it has started with it.

    Args:
        arguments: the program and its arguments.
        seconds: after which its process group is killed.
        root: its working folder.
        environment: all that it sees of one.

    Raises:
        ToolException: it cannot be started, or did not end in time; the message quotes its last output.
    """
    output = _Output(MAX_OUTPUT_BYTES)
    # A pipe of our own: asyncio waits, with one of its, for whatever a program has left behind.
    reading, writing = os.pipe()
    try:
        transport, stream = await _connected(reading)
    except BaseException:
        os.close(writing)
        raise
    drained = asyncio.ensure_future(_read(stream, output))
    try:
        try:
            process = await _start(arguments, root, environment, writing)
        finally:
            os.close(writing)
        code = await _watched(process, seconds, drained)
    finally:
        drained.cancel()
        transport.close()
    if code is None:
        tail = f"; its last output: {output.text()[-_SHOWN_CHARS:]}" if output.size else ""
        raise ToolException(f"{arguments[0]!r} was stopped after {seconds:g} s{tail}")
    return Finished(code, output.text())


async def _connected(reading: int) -> tuple[asyncio.ReadTransport, asyncio.StreamReader]:
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb")
    )
    return transport, stream


async def _watched(
    process: asyncio.subprocess.Process, seconds: float, drained: "asyncio.Future[None]"
) -> int | None:
    """Return the exit code, or None if the program had to be killed; nothing of its group is left either way."""
    try:
        return await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return None
    finally:
        _kill(process)
        await asyncio.shield(process.wait())
        # A process that has left the group may keep the output open for ever.
        await asyncio.wait({drained}, timeout=_GRACE_SECONDS)


async def _start(
    arguments: Sequence[str], root: Path, environment: Mapping[str, str], output: int
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *arguments,
            cwd=root,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError):
        raise ToolException(f"there is no program {arguments[0]!r}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolException(f"{arguments[0]!r} cannot be started: {reason}") from None


async def _read(stream: asyncio.StreamReader, output: "_Output") -> None:
    while data := await stream.read(_READ_BYTES):
        output.take(data)


def _kill(process: asyncio.subprocess.Process) -> None:
    # start_new_session made the process its group's leader.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Output:
    """Keeps the beginning and the end of what a program prints."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0

    def take(self, data: bytes) -> None:
        self.size += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
            while self._tail_size - len(self._tail[0]) >= self._half:
                self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        tail = b"".join(self._tail)[-self._half :]
        left_out = self.size - len(self._head) - len(tail)
        note = f"\n… [{left_out} bytes of output left out]\n" if left_out else ""
        return (
            _decoded(bytes(self._head)) + note + _decoded(tail) if left_out else _decoded(self._head + tail)
        )


def _decoded(data: bytes | bytearray) -> str:
    try:
        return clean_text(decode(bytes(data), partial=True))
    except NotText:
        return clean_text(bytes(data).decode("utf-8", "replace"))


def shown(arguments: Sequence[str]) -> str:
    """Return a command as one short line, for people."""
    return cut(
        " ".join(clean_text(argument) for argument in arguments), _SHOWN_CHARS, "the rest is not shown"
    )

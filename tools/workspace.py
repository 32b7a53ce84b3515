"""Writing files and running programs in one folder. Each call needs a person's approval, and they run one at a time.

The files are confined to the folder. A program is not: it may do what its user may. What guards against it is the
approval of its exact arguments, and that it sees nothing of the environment.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from tools import commands
from tools.folder import NotText, existing_folder, inside
from tools.results import SourceDraft, clean_text, draft, render, source_id
from tools.writing import TextFile, held, place_for, read_text_file, replace_file

MAX_WRITTEN_CHARS = 1_000_000
_CONTEXT_LINES = 3
_QUOTED_CHARS = 80

Result = tuple[str, list[SourceDraft]]


def workspace_tools(root: Path, environment: Mapping[str, str] = MappingProxyType({})) -> list[BaseTool]:
    """Return write_file, edit_file and run_command for a folder.

    Args:
        root: the folder; also the working folder and the home of programs.
        environment: from which programs see a few harmless names, PATH among them (commands.INHERITED).

    Raises:
        SettingsError: there is no such folder.
    """
    bench = _Bench(existing_folder(root), environment)

    # Sync bodies: the application runs each in a thread of its own.
    def write_file(
        path: Annotated[str, "Path of the file, relative to the folder; folders on the way are made"],
        text: Annotated[str, "The whole text of the file"],
    ) -> Result:
        return bench.write(path, text)

    def edit_file(
        path: Annotated[str, "Path of a text file"],
        old: Annotated[str, "The text to replace, exactly as it stands in the file, and there only once"],
        new: Annotated[str, "What to put in its place"],
    ) -> Result:
        return bench.edit(path, old, new)

    async def run_command(
        arguments: Annotated[list[str], 'The program and its arguments, such as ["python", "-m", "pytest"]'],
        timeout_seconds: Annotated[float, "Seconds after which it is stopped, up to 600"] = 60,
    ) -> Result:
        return await bench.run(arguments, timeout_seconds)

    return [
        _tool("write", "Write a text file: a new one, or in place of the old one.", func=write_file),
        _tool("write", "Replace one passage of a text file.", func=edit_file),
        _tool(
            "execute",
            "Run a program in the folder, without a shell, and return its exit code and output.",
            coroutine=run_command,
        ),
    ]


def _tool(
    permission: str,
    description: str,
    func: Callable[..., Result] | None = None,
    coroutine: Callable[..., Awaitable[Result]] | None = None,
) -> BaseTool:
    return StructuredTool.from_function(
        func,
        coroutine,
        description=description,
        response_format="content_and_artifact",
        metadata={"permission": permission, "idempotent": False},
    )


class _Bench:
    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = commands.environment_for(root, environment)

    def write(self, given: str, text: str) -> Result:
        text = _text(text)
        path = place_for(self._root, given)
        data = text.encode()
        with held(path):
            before = path.read_bytes() if path.is_file() else None
            if before != data:  # a call that is made again finds its work done
                _replace(path, data, given)
        done = {None: "Written, a new file", data: "It held exactly this text already"}.get(
            before, "Replaced"
        )
        name = path.relative_to(self._root).as_posix()
        return _result(name, 1, text, f"{done}: {_count(text)}.")

    def edit(self, given: str, old: str, new: str) -> Result:
        old, new = _text(old).replace("\r\n", "\n"), _text(new).replace("\r\n", "\n")
        path = inside(self._root, given)
        if not path.is_file():
            raise ToolException(f"path {given!r} is not a file")
        with held(path):
            file = _read(path, given)
            _check_once(file.text, old, new, given)
            start = file.text.index(old)
            text = file.text[:start] + new + file.text[start + len(old) :]
            try:
                data = file.encoded(text)
            except UnicodeEncodeError as error:
                character = error.object[error.start : error.end][:1]
                raise ToolException(
                    f"{given!r} is encoded as {file.encoding}, which has no {character!r}"
                ) from None
            _replace(path, data, given)
        first, passage = _around(text, start, start + len(new))
        return _result(path.relative_to(self._root).as_posix(), first, passage, "Edited.")

    async def run(self, arguments: list[str], seconds: float) -> Result:
        if not arguments or not arguments[0].strip():
            raise ToolException('give a program and its arguments, such as ["python", "-m", "pytest"]')
        if not 0 < seconds <= commands.MAX_SECONDS:
            raise ToolException(f"timeout_seconds {seconds!r} is outside 0 to {commands.MAX_SECONDS}")
        ended = await commands.run(arguments, seconds, self._root, self._environment)
        line = commands.shown(arguments)
        text = f"exit code {ended.code}\n{ended.output}".rstrip()
        item = draft(source_id("run", *arguments, text), locator=line, title=f"Output of {line}", text=text)
        return render([item]), [item]


def _text(text: str) -> str:
    if len(text) > MAX_WRITTEN_CHARS:
        raise ToolException(f"the text is longer than {MAX_WRITTEN_CHARS:,} characters")
    return clean_text(text)


def _read(path: Path, given: str) -> TextFile:
    try:
        return read_text_file(path)
    except NotText:
        raise ToolException(f"{given!r} is no text that can be edited: binary, or too large") from None
    except OSError as error:
        raise ToolException(f"{given!r} cannot be read: {error.strerror}") from None


def _replace(path: Path, data: bytes, given: str) -> None:
    try:
        replace_file(path, data)
    except OSError as error:
        raise ToolException(f"{given!r} cannot be written: {error.strerror}") from None


def _check_once(text: str, old: str, new: str, given: str) -> None:
    if not old:
        raise ToolException("`old` is empty: quote the passage to replace; write_file writes a whole file")
    if old == new:
        raise ToolException("`old` and `new` are the same: there is nothing to change")
    count = text.count(old)
    if count == 1:
        return
    quoted = repr(old if len(old) <= _QUOTED_CHARS else old[:_QUOTED_CHARS] + "…")
    if count:
        raise ToolException(f"{given!r} holds {quoted} {count} times: quote more of the lines around it")
    done = "; `new` stands there already" if new and new in text else "; read_file shows what does"
    raise ToolException(f"{given!r} does not hold {quoted}{done}")


def _around(text: str, start: int, end: int) -> tuple[int, str]:
    """Return the lines from start to end with a few before and after, and the number of the first."""
    lines = text.split("\n")
    first = max(0, text.count("\n", 0, start) - _CONTEXT_LINES)
    last = text.count("\n", 0, end) + _CONTEXT_LINES + 1
    return first + 1, "\n".join(lines[first:last])


def _count(text: str) -> str:
    lines = len(text.removesuffix("\n").split("\n")) if text else 0
    return f"{lines} line{'' if lines == 1 else 's'}, {len(text.encode())} bytes"


def _result(name: str, line: int, text: str, note: str) -> Result:
    item = draft(source_id("written", name, line, text), locator=f"{name}#L{line}", title=name, text=text)
    head = f"[{item['source_id']}] {item['title']} ({item['locator']})"
    return f"{note}\n{head}", [item]

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from cli.main import main

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "cli.main"]
Ran = subprocess.CompletedProcess[bytes]
Here = Callable[..., tuple[int, str, str]]
Spawn = Callable[..., "pexpect.spawn[str]"]
# What may stand between two words of a table.
GAP = r"(?:\x1b\[[\d;]*m|\s)+"
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment with nothing of the developer's own in it."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "PLANWEAVE_HOME": str(tmp_path / "runs"),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        "COLUMNS": "100",
    }


@pytest.fixture
def planweave(env: dict[str, str], tmp_path: Path) -> Callable[..., Ran]:
    """The command in a process of its own, its output piped."""

    def run(*arguments: str, stdin: bytes = b"", **more: str) -> Ran:
        return subprocess.run(
            [*COMMAND, *arguments], input=stdin, capture_output=True, env=env | more, cwd=tmp_path, timeout=90
        )

    return run


@pytest.fixture
def here(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command in this process: exit code, standard output, standard error."""
    for name in (
        "AGENT_MODEL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "PLANWEAVE_DATABASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLANWEAVE_HOME", env["PLANWEAVE_HOME"])
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **more: str) -> tuple[int, str, str]:
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = main(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def terminal(env: dict[str, str], tmp_path: Path) -> Iterator[Spawn]:
    children: list[pexpect.spawn[str]] = []

    def spawn(*arguments: str, **more: Any) -> "pexpect.spawn[str]":
        child = pexpect.spawn(
            sys.executable,
            [*COMMAND[1:], *arguments],
            env=env | more,
            cwd=str(tmp_path),
            dimensions=(30, 100),
            encoding="utf-8",
            timeout=30,
        )
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.close(force=True)


def rest(child: "pexpect.spawn[str]") -> str:
    """Wait for the end and return what was still printed."""
    child.expect(pexpect.EOF)
    child.wait()
    return child.before or ""

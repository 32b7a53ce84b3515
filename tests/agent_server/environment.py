"""A virtual environment for the Agent Server: made once, then kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
CONSTRAINTS = ROOT / "constraints.txt"
NAMES = ("python3.12", "python3.13", "python3.14")
WANTED = "PLANWEAVE_AGENT_SERVER_TESTS"
INSTALL_SECONDS = 600


class Unavailable(Exception):
    """The Agent Server cannot be had here; the message says why."""


def interpreter() -> Path:
    """Return a Python that is new enough: the one that PLANWEAVE_PYTHON312 names, or one found on PATH.

    Raises:
        Unavailable: there is none.
    """
    given = os.environ.get("PLANWEAVE_PYTHON312")
    for name in [given] if given else NAMES:
        for found in found_as(name):
            if says(found, "import sys; print(sys.version_info >= (3, 12))") == "True":
                return found
    looked = given or ", ".join(NAMES)
    raise Unavailable(f"no Python >= 3.12 found ({looked}): set PLANWEAVE_PYTHON312 to one")


def found_as(name: str) -> list[Path]:
    """Return what a name may stand for: what PATH says, and where that is a shim of pyenv, what stands behind it."""
    found = shutil.which(name)
    if found is None:
        return []
    path = Path(found)
    behind = path.parents[1].glob(f"versions/*/bin/{name}") if path.parent.name == "shims" else ()
    return [path, *sorted(behind)]


def says(python: str | Path, code: str) -> str:
    ended = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return ended.stdout.strip()


def own_requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["dependencies"]


def place(python: Path) -> Path:
    """Return the folder of the environment: another one whenever what is in it would be another."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    contents = [says(python, "import sys; print(sys.version)"), *own_requirements()]
    contents += [REQUIREMENTS.read_text(encoding="utf-8"), CONSTRAINTS.read_text(encoding="utf-8")]
    return cache / "planweave-tests" / hashlib.sha256("\n".join(contents).encode()).hexdigest()[:16]


def agent_server_python() -> Path:
    """Return the interpreter of the environment; make it where PLANWEAVE_AGENT_SERVER_TESTS asks for it.

    Raises:
        Unavailable: no Python, nothing asked for and nothing there, or installing has failed.
    """
    python = interpreter()
    folder = place(python)
    ready, own = folder / "ready", folder / "bin" / "python"
    if ready.exists():
        return own
    if os.environ.get(WANTED) != "1":
        raise Unavailable(f"the Agent Server is not installed: `make scale`, or {WANTED}=1, installs it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not ready.exists():
            make(python, folder)
            ready.touch()
    return own


def make(python: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    install = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    install += ["-c", CONSTRAINTS, "-r", REQUIREMENTS, *own_requirements()]
    for command in ([python, "-m", "venv", folder], install):
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"the Agent Server was not installed within {INSTALL_SECONDS} s") from None
        if ended.returncode != 0:
            last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(f"the Agent Server cannot be installed: {last}")

"""doctor: whether everything that a run needs is there, and what to do if it is not."""

import importlib.util
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import SecretStr
from rich.text import Text

from agents.models import PROVIDERS, ModelSettings, named_model
from cli.exit_codes import ExitCode
from cli.printable import one_line
from cli.screen import Screen
from cli.texts import Texts
from graph.settings import Settings, load_settings
from schemas.errors import SettingsError

Level = Literal["ok", "warn", "fail"]
_STYLES: dict[Level, str] = {"ok": "green", "warn": "yellow", "fail": "red"}
_EXTRAS = {"tables": "duckdb", "docs": "markitdown", "studio": "langgraph_api"}
_PACKAGES = ("langgraph", "langchain", "langchain-openai")
_ENDPOINT_SECONDS = 20.0


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    name: str
    level: Level
    detail: str


async def doctor(screen: Screen) -> ExitCode:
    """Print every check; exit 0, or 4 if something does not work."""
    say = screen.say
    checks = [python_version(sys.version_info[:3], say), _packages(say)]
    try:
        settings = load_settings()
    except SettingsError as error:
        checks.append(Check(say("doctor.settings"), "fail", str(error)))
    else:
        checks += [settings_found(settings, say), home_folder(settings.home, say), sqlite(settings, say)]
        checks += _extras(say)
        checks += model_and_key(settings, say)
        checks += [await endpoint(name, settings, say) for name in _model_names(settings)]
    for check in checks:
        level = (say(f"doctor.{check.level}"), _STYLES[check.level])
        screen.out.print(
            Text.assemble(level, "  ", (check.name, "bold"), f"  {one_line(check.detail, 1000)}"),
            soft_wrap=True,
        )
    return ExitCode.FAILED if any(check.level == "fail" for check in checks) else ExitCode.COMPLETED


def python_version(found: tuple[int, ...], say: Texts) -> Check:
    """Check the interpreter."""
    text = ".".join(map(str, found))
    if found < (3, 11):
        return Check(say("doctor.python"), "fail", say("doctor.python_old", version=text))
    return Check(say("doctor.python"), "ok", f"{text} ({platform.system()} {platform.machine()})")


def _packages(say: Texts) -> Check:
    return Check(say("doctor.packages"), "ok", ", ".join(f"{name} {version(name)}" for name in _PACKAGES))


def settings_found(settings: Settings, say: Texts) -> Check:
    """List what is set; of a secret, only that it is."""
    found = {name: getattr(settings, name) for name in settings.model_fields_set}
    shown = ", ".join(
        f"{name}={_masked(value, say)}" for name, value in sorted(found.items()) if value is not None
    )
    return Check(say("doctor.settings"), "ok", shown or say("doctor.defaults"))


def _masked(value: Any, say: Texts) -> str:
    if isinstance(value, SecretStr):
        return f"({say('doctor.set')})"
    text = str(value)
    # An address may carry a password or a token; its scheme, host and path do not.
    if "://" in text:
        parts = urlsplit(text)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return text


def home_folder(home: Path, say: Texts) -> Check:
    """Check that files can be written where runs are kept, or where that folder would be made."""
    place = _existing(home)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".planweave-doctor-"):
            pass
    except OSError as error:
        detail = say("doctor.not_writable", path=home, error=error.strerror or str(error))
        return Check(say("doctor.home"), "fail", detail)
    return Check(say("doctor.home"), "ok", say("doctor.writable", path=home))


def _existing(path: Path) -> Path:
    path = path.absolute()
    return next((place for place in (path, *path.parents) if place.exists()), path)


def sqlite(settings: Settings, say: Texts) -> Check:
    """Check SQLite's version, and that its write-ahead log works on the file system of the home folder."""
    name = say("doctor.sqlite")
    if settings.database_url is not None:
        return Check(name, "ok", say("doctor.postgres"))
    try:
        with (
            tempfile.TemporaryDirectory(dir=_existing(settings.home), prefix=".planweave-doctor-") as folder,
            closing(sqlite3.connect(Path(folder) / "probe.sqlite")) as connection,
        ):
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            connection.execute("CREATE TABLE probe (x)")
    except (OSError, sqlite3.Error) as error:
        return Check(
            name, "fail", say("doctor.no_wal", version=sqlite3.sqlite_version, mode=error, path=settings.home)
        )
    level, key = ("ok", "doctor.wal") if mode == "wal" else ("fail", "doctor.no_wal")
    detail = say(key, version=sqlite3.sqlite_version, mode=mode, path=settings.home)
    return Check(name, "ok" if level == "ok" else "fail", detail)


def _extras(say: Texts) -> Iterator[Check]:
    for extra, module in _EXTRAS.items():
        name = say("doctor.extras", extra=extra)
        if importlib.util.find_spec(module) is not None:
            yield Check(name, "ok", say("doctor.present"))
        else:
            yield Check(name, "warn", say("doctor.absent", extra=extra, what=say(f"doctor.what.{extra}")))


def _model_names(settings: Settings) -> list[str]:
    names = (
        settings.agent_model,
        settings.planner_model,
        settings.worker_model,
        settings.reviewer_model,
        settings.writer_model,
    )
    return list(dict.fromkeys(name for name in names if name))


def model_and_key(settings: Settings, say: Texts) -> list[Check]:
    """Check whether a model is configured, and whether the key it needs is."""
    names = _model_names(settings)
    if not names:
        key = say("doctor.key_unused" if settings.openai_api_key is None else "doctor.set")
        return [
            Check(say("doctor.model"), "warn", say("doctor.no_model")),
            Check(say("doctor.key"), "ok", key),
        ]
    model = Check(say("doctor.model"), "ok", ", ".join(names))
    if settings.openai_api_key is not None:
        return [model, Check(say("doctor.key"), "ok", say("doctor.set"))]
    if all(name.partition(":")[0] in PROVIDERS - {"openai"} for name in names):
        return [model, Check(say("doctor.key"), "ok", say("doctor.key_other"))]
    return [model, Check(say("doctor.key"), "warn", say("doctor.no_key"))]


async def endpoint(name: str, settings: Settings, say: Texts) -> Check:
    """Send the model one tiny request."""
    secret = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    began = time.monotonic()
    try:
        model = named_model(
            name,
            ModelSettings(
                base_url=settings.openai_base_url,
                api_key=secret,
                max_tokens=64,
                timeout_seconds=min(_ENDPOINT_SECONDS, settings.model_timeout_seconds),
            ),
        )
        await model.ainvoke("Answer with the one word: ok")
    except Exception as error:  # noqa: BLE001 - each provider has its own errors, and any of them is the answer here
        text = one_line(str(error) or type(error).__name__, 300)
        if secret:
            text = text.replace(secret, "…")
        return Check(say("doctor.endpoint"), "fail", say("doctor.no_answer", model=name, error=text))
    seconds = f"{time.monotonic() - began:.1f}"
    return Check(say("doctor.endpoint"), "ok", say("doctor.answers", model=name, seconds=seconds))

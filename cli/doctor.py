"""doctor: whether everything that a run needs is there, and what to do if it is not."""

import importlib.util
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr
from rich.text import Text

from agents.models import PROVIDERS, named_model
from agents.pricing import load_prices
from agents.probing import Abilities, abilities
from cli.check import Check, Level
from cli.exit_codes import ExitCode
from cli.printable import one_line
from cli.screen import Screen
from cli.storage_checks import home_folder, postgres, sqlite
from cli.texts import Texts
from graph.builder import model_settings
from graph.settings import Settings, load_settings
from schemas.errors import SettingsError

_STYLES: dict[Level, str] = {"ok": "green", "warn": "yellow", "fail": "red"}
_EXTRAS = {"tables": "duckdb", "docs": "markitdown", "studio": "langgraph_api"}
_PACKAGES = ("langgraph", "langchain", "langchain-openai")
_ENDPOINT_SECONDS = 20.0
_PROBE_TOKENS = 256


@dataclass(frozen=True)
class Reached:
    """A model's endpoint: whether it answers, and what it can do if it does."""

    check: Check
    model: str = ""
    abilities: Abilities | None = None


async def doctor(screen: Screen) -> ExitCode:
    """Print every check; exit 0, or 4 if something does not work."""
    say = screen.say
    endpoints: list[Reached] = []
    checks = [python_version(sys.version_info[:3], say), _packages(say)]
    try:
        settings = load_settings()
    except SettingsError as error:
        checks.append(Check(say("doctor.settings"), "fail", str(error)))
    else:
        checks += [settings_found(settings, say), home_folder(settings.home, say)]
        checks.append(await postgres(settings, say) if settings.database_url else sqlite(settings, say))
        checks += _extras(say)
        checks += model_and_key(settings, say)
        endpoints = [await endpoint(name, settings, say) for name in _model_names(settings)]
        endpoints += [
            await endpoint(name, settings, say, fallback=True) for name in _fallback_names(settings)
        ]
        checks += [reached.check for reached in endpoints]
        checks += prices_found(settings, say)
        _print(screen, checks)
        for reached in endpoints:
            show_abilities(screen, reached, settings)
            advice = advised(reached, settings, say)
            _print(screen, advice)
            checks += advice
        return ExitCode.FAILED if any(check.level == "fail" for check in checks) else ExitCode.COMPLETED
    _print(screen, checks)
    return ExitCode.FAILED


def _print(screen: Screen, checks: Iterable[Check]) -> None:
    say = screen.say
    for check in checks:
        level = (say(f"doctor.{check.level}"), _STYLES[check.level])
        screen.out.print(
            Text.assemble(level, "  ", (check.name, "bold"), f"  {one_line(check.detail, 1000)}"),
            soft_wrap=True,
        )


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


def _fallback_names(settings: Settings) -> list[str]:
    names = (
        settings.fallback_model,
        settings.planner_fallback_model,
        settings.worker_fallback_model,
        settings.reviewer_fallback_model,
        settings.writer_fallback_model,
    )
    return list(dict.fromkeys(name for name in names if name))


def prices_found(settings: Settings, say: Texts) -> list[Check]:
    """Check the file of prices, if one is set, and that it knows the models."""
    if settings.prices is None:
        return []
    try:
        prices = load_prices(settings.prices)
    except SettingsError as error:
        return [Check(say("doctor.prices"), "fail", str(error))]
    unknown = [name for name in _model_names(settings) if prices.of(name) is None]
    if unknown:
        return [Check(say("doctor.prices"), "warn", say("doctor.unpriced", models=", ".join(unknown)))]
    return [Check(say("doctor.prices"), "ok", prices.currency)]


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


async def endpoint(name: str, settings: Settings, say: Texts, *, fallback: bool = False) -> Reached:
    """Send the model one tiny request and, if it answers, find out in which ways it can be asked."""
    began = time.monotonic()
    # Who has set a timeout knows the model: a slow one is not to be called unable.
    own = "model_timeout_seconds" in settings.model_fields_set
    patience = settings.model_timeout_seconds if own else _ENDPOINT_SECONDS
    try:
        reached = replace(model_settings(settings), max_tokens=_PROBE_TOKENS, timeout_seconds=patience)
        model = named_model(name, reached.of_fallbacks() if fallback else reached)
        await model.ainvoke("Answer with the one word: ok")
    except Exception as error:  # noqa: BLE001 - each provider has its own errors, and any of them is the answer here
        text = _without_keys(one_line(str(error) or type(error).__name__, 300), settings)
        return Reached(Check(say("doctor.endpoint"), "fail", say("doctor.no_answer", model=name, error=text)))
    seconds = f"{time.monotonic() - began:.1f}"
    check = Check(say("doctor.endpoint"), "ok", say("doctor.answers", model=name, seconds=seconds))
    return Reached(check, name, await abilities(model))


def _without_keys(text: str, settings: Settings) -> str:
    for secret in (settings.openai_api_key, settings.fallback_api_key):
        if secret is not None and secret.get_secret_value():
            text = text.replace(secret.get_secret_value(), "…")
    return text


def show_abilities(screen: Screen, reached: Reached, settings: Settings) -> None:
    """Print what an endpoint can do, as a table, and what to set."""
    found, say = reached.abilities, screen.say
    if found is None:
        return
    rows = [(say(f"doctor.way.{method}"), probe) for method, probe in found.methods.items()]
    rows.append((say("doctor.way.tools", count=found.parallel), found.tools))
    screen.line()
    screen.table(
        [
            say("doctor.way", model=reached.model),
            say("doctor.result"),
            say("doctor.seconds"),
            say("doctor.said"),
        ],
        [
            (
                way,
                say(f"doctor.{probe.verdict}"),
                f"{probe.seconds:.1f}",
                _without_keys(probe.detail, settings),
            )
            for way, probe in rows
        ],
    )
    screen.line()


def advised(reached: Reached, settings: Settings, say: Texts) -> list[Check]:
    """Return what to set for an endpoint, and what will not work with it."""
    found = reached.abilities
    if found is None:
        return []
    checks: list[Check] = []
    name = say("doctor.advice")
    if found.advice is None:
        checks.append(Check(name, "warn", say("doctor.no_way", model=reached.model)))
    elif found.advice == settings.structured or (found.advice == "auto" and settings.structured == "tool"):
        checks.append(Check(name, "ok", say("doctor.nothing_to_set", value=settings.structured)))
    else:
        checks.append(Check(name, "warn", say("doctor.to_set", value=found.advice, now=settings.structured)))
    if found.tools.verdict != "works":
        checks.append(Check(name, "warn", say("doctor.no_tools", model=reached.model)))
    return checks

"""MCP servers as a `.mcp.json` lists them: {"mcpServers": {name: {command, args, env} | {url, type, headers}}}."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from schemas.errors import SettingsError

SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KINDS = {"streamable-http": "http", "streamable_http": "http", "streamablehttp": "http"}


def _kind(value: Any) -> Any:
    return _KINDS.get(value.lower(), value.lower()) if isinstance(value, str) else value


class ServerConfig(BaseModel):
    """One server. Keys that other programs put beside these are passed over.

    Attributes:
        kind: "stdio" starts `command`; "http" (streamable) and "sse" connect to `url`.
        env: added to the few harmless variables that a server started by us sees.
    """

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    kind: Annotated[Literal["stdio", "http", "sse"] | None, BeforeValidator(_kind)] = Field(
        None, alias="type"
    )
    command: str = ""
    args: list[str] = Field(default_factory=list[str])
    env: dict[str, str] = Field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    disabled: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either a command or a url")
        kind = self.kind or ("stdio" if self.command else "http")
        if (kind == "stdio") != bool(self.command):
            raise ValueError(f"type {kind!r} needs a {'command' if kind == 'stdio' else 'url'}")
        if self.url and not self.url.lower().startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://")
        self.kind = kind
        return self

    def secrets(self) -> list[str]:
        """Return the values that must not stand in any message, the longest first."""
        return sorted({v for v in (*self.env.values(), *self.headers.values()) if len(v) >= 4}, key=len)[::-1]


def read_servers(path: Path, environment: Mapping[str, str]) -> dict[str, ServerConfig]:
    """Read a file of servers; those that are disabled are left out.

    Args:
        path: the file.
        environment: for ${NAME} and ${NAME:-default} in commands, arguments, variables, URLs and headers.

    Raises:
        SettingsError: with a line for each thing that is wrong. No value of the file is quoted: it may be a key.
    """
    entries = _entries(path)
    problems: list[str] = []
    servers: dict[str, ServerConfig] = {}
    for name, entry in entries.items():
        unset: set[str] = set()
        if not SERVER_NAME.fullmatch(name):
            problems.append(f"server name {name[:60]!r} is not 1 to 40 of the characters A-Z a-z 0-9 _ -")
            continue
        try:
            config = ServerConfig.model_validate(_expanded(entry, environment, unset))
        except ValidationError as error:
            problems += (f"server {name!r}: {line}" for line in _lines(error))
            continue
        if config.disabled:
            continue
        problems += (f"server {name!r}: the variable {variable} is not set" for variable in sorted(unset))
        servers[name] = config
    if problems:
        raise SettingsError(f"{path}: " + "; ".join(problems))
    return servers


def _entries(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise SettingsError(f"there is no file {str(path)!r} of MCP servers") from None
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{path} cannot be read ({type(error).__name__})") from None
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise SettingsError(f"{path} is not JSON{where}") from None
    entries = cast("dict[str, Any]", content).get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise SettingsError(f'{path} has no object "mcpServers" of server names and their settings')
    return cast("dict[str, Any]", entries)


def _expanded(value: Any, environment: Mapping[str, str], unset: set[str]) -> Any:
    """Return a JSON value with its variables replaced; names of those that are not set are added to `unset`."""
    if isinstance(value, str):

        def replace(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if name in environment:
                return environment[name]
            if default is None:
                unset.add(name)
            return default or ""

        return _VARIABLE.sub(replace, value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _expanded(item, environment, unset) for key, item in items}
    if isinstance(value, list):
        return [_expanded(item, environment, unset) for item in cast("Sequence[Any]", value)]
    return value


def _lines(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, item['loc']))}: {item['msg']}".removeprefix(": ").replace("Value error, ", "")
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    ]

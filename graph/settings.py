"""Settings: the only place that reads the environment (and a .env file in the working folder)."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from agents.ladder import Structured
from schemas.errors import SettingsError


def _either(*names: str) -> AliasChoices:
    return AliasChoices(*names)


class Settings(BaseSettings):
    """Everything that is set from outside. Each field can be set as PLANWEAVE_<NAME>, or as noted."""

    model_config = SettingsConfigDict(
        env_prefix="PLANWEAVE_", env_file=".env", env_ignore_empty=True, extra="ignore", populate_by_name=True
    )

    home: Path = Field(
        default=Path(".planweave"), description="Folder of checkpoints, store, artifacts and locks"
    )
    database_url: SecretStr | None = Field(
        default=None, description="postgresql:// URL; empty = SQLite files in home"
    )
    database_connections: int = Field(
        default=10, ge=1, description="Most connections to Postgres; one more holds the locks"
    )
    artifacts: str | None = Field(
        default=None,
        description="Where full texts of results are kept: a folder, a URL for fsspec (s3://bucket/path), or 'store' "
        "for the database; empty = the database with Postgres, a folder in home otherwise",
    )
    busy_timeout_seconds: float = Field(
        default=30,
        gt=0,
        description="Seconds to wait for a locked SQLite database, or for a connection to Postgres",
    )
    grace_seconds: float = Field(
        default=20,
        ge=0,
        description="Seconds that running tool calls have to end in, when the process is asked to stop",
    )
    agent_model: Annotated[
        str | None, Field(validation_alias=_either("AGENT_MODEL", "PLANWEAVE_AGENT_MODEL"))
    ] = None
    planner_model: str | None = Field(
        default=None, description="Model of the planner role; empty = AGENT_MODEL"
    )
    worker_model: str | None = Field(default=None, description="Model of the worker role")
    reviewer_model: str | None = Field(default=None, description="Model of the reviewer role")
    writer_model: str | None = Field(default=None, description="Model of the writer role")
    fallback_model: str | None = Field(
        default=None, description="Model that takes over where a role's own cannot be reached"
    )
    planner_fallback_model: str | None = Field(default=None, description="The planner's fallback")
    worker_fallback_model: str | None = Field(default=None, description="The worker's fallback")
    reviewer_fallback_model: str | None = Field(default=None, description="The reviewer's fallback")
    writer_fallback_model: str | None = Field(default=None, description="The writer's fallback")
    fallback_base_url: str | None = Field(
        default=None, description="Server of the fallback models; empty = OPENAI_BASE_URL"
    )
    fallback_api_key: SecretStr | None = Field(default=None, description="Key for the fallbacks' server")
    structured: Structured = Field(
        default="auto",
        description="How a model is asked for plans, findings and reviews: auto, json_schema, tool or prompt; "
        "planweave doctor says what to set",
    )
    max_model_concurrency: int = Field(
        default=16, ge=1, description="Model requests to one endpoint at the same time"
    )
    model_requests_per_minute: int | None = Field(
        default=None, ge=1, description="Model requests to one endpoint in any minute; empty = no bound"
    )
    prices: Path | None = Field(
        default=None, description="YAML or JSON file of prices: then runs say what they have cost"
    )
    openai_api_key: Annotated[SecretStr | None, Field(validation_alias=_either("OPENAI_API_KEY"))] = None
    openai_base_url: Annotated[
        str | None, Field(validation_alias=_either("OPENAI_BASE_URL", "OPENAI_API_BASE"))
    ] = None
    max_output_tokens: int = Field(default=4096, ge=64, description="max_tokens of each model request")
    model_timeout_seconds: float = Field(default=120, gt=0, description="Timeout of one model request")
    docs: Path | None = Field(
        default=None, description="Folder for search_documents, read_document and query_tables"
    )
    root: Path | None = Field(default=None, description="Folder for list_files, read_file and search_files")
    workspace: Path | None = Field(
        default=None,
        description="Folder in which write_file, edit_file and run_command work, after a person's yes",
    )
    web: bool = Field(default=False, description="Whether fetch_url and search_web are offered")
    tavily_api_key: Annotated[SecretStr | None, Field(validation_alias=_either("TAVILY_API_KEY"))] = None
    mcp: Path | None = Field(default=None, description="A .mcp.json that lists MCP servers")
    tools: Annotated[list[str], NoDecode] = Field(
        default_factory=list[str],
        description="Tools of your own, comma-separated: module:attribute, or entry points of planweave.tools",
    )

    @field_validator("tools", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return (
            [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        )


def environment() -> dict[str, str]:
    """Return the process's environment, for the few variables that programs and MCP servers are given of it."""
    return dict(os.environ)


def load_settings() -> Settings:
    """Read the settings.

    Raises:
        SettingsError: a value cannot be used; the message names the setting.
    """
    try:
        return Settings()
    except ValidationError as error:
        item = error.errors(include_url=False, include_input=False)[0]
        raise SettingsError(f"setting {'.'.join(map(str, item['loc']))}: {item['msg']}") from None

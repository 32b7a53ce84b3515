"""Where the Postgres database is, and what its errors say. Needs the [postgres] extra."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from psycopg import AsyncConnection, Error, OperationalError, ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DiskFull, DivisionByZero
from psycopg_pool import PoolTimeout
from pydantic import SecretStr

from graph.advisory_locks import Connection
from schemas.errors import SettingsError, StorageError

# A connection that nothing is sent over for minutes is dropped by many networks.
KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
UNREADABLE = (
    "PLANWEAVE_DATABASE_URL cannot be read: use postgresql://user:password@host:port/database, "
    "with special characters of the password percent-encoded"
)

T = TypeVar("T")


class Database:
    """Where the database is; errors about it name the place, and never the password.

    Args:
        url: postgresql://...
        patience: seconds to wait for a connection.

    Raises:
        SettingsError: the URL cannot be read.
    """

    def __init__(self, url: SecretStr, patience: float) -> None:
        self.conninfo = url.get_secret_value()
        self.patience = patience
        try:
            self._parts = conninfo_to_dict(self.conninfo)
        except ProgrammingError:
            raise SettingsError(UNREADABLE) from None
        if not self.conninfo.startswith(("postgresql://", "postgres://")) or "@" in self.place:
            raise SettingsError(UNREADABLE)

    @property
    def place(self) -> str:
        """The database and its server."""
        host = self._parts.get("host") or self._parts.get("hostaddr") or "localhost"
        return f"{self._parts.get('dbname') or 'default'} on {host}"

    @property
    def options(self) -> dict[str, Any]:
        """What every connection is made with."""
        named = {} if "application_name" in self._parts else {"application_name": "planweave"}
        return {"autocommit": True, "connect_timeout": max(2, round(self.patience)), **named, **KEEPALIVE}

    async def connect(self) -> Connection:
        """Return a new connection.

        Raises:
            StorageError: there is none to be had.
        """
        async with self.errors():
            return await AsyncConnection.connect(self.conninfo, **self.options)

    @asynccontextmanager
    async def errors(self) -> AsyncGenerator[None]:
        """Turn errors of Postgres into StorageError."""
        try:
            yield
        except Error as error:
            raise StorageError(self.line(error)) from error

    async def call(self, action: Callable[[], Awaitable[T]]) -> T:
        """Do what may be done twice, and do it again if the connection broke meanwhile: the pool has another one.

        Raises:
            StorageError: it did not work the second time either.
        """
        async with self.errors():
            try:
                return await action()
            except OperationalError as error:
                if not connection_broke(error):
                    raise
            return await action()

    def line(self, error: Error) -> str:
        """Return one line about an error: what, where, and what to do."""
        if isinstance(error, DivisionByZero):
            # See advisory_locks.STANDS.
            return "another process has taken over the thread: it goes on there, and this run ends"
        if isinstance(error, PoolTimeout):
            text = f"no connection within {self.patience:g} s"
        else:
            text = " ".join(str(error).split())
        if isinstance(error, DiskFull):
            advice = "free some room on its disk, then resume the run"
        elif isinstance(error, OperationalError):
            advice = "when it is back the run can be resumed; otherwise check PLANWEAVE_DATABASE_URL"
        else:
            advice = "see the message of the database"
        return f"the database {self.place} cannot be used ({text}): {advice}"


async def looked_at(url: SecretStr, patience: float) -> tuple[str, str, bool]:
    """Connect to a database, once.

    Args:
        url: postgresql://...
        patience: seconds to wait for a connection.

    Returns:
        Its place, the server's version, and whether the user may make the tables.

    Raises:
        SettingsError: the URL cannot be read. StorageError: there is no connection to be had.
    """
    database = Database(url, patience)
    sql = b"SELECT current_setting('server_version'), has_schema_privilege(current_schema(), 'CREATE')"
    async with await database.connect() as conn, database.errors():
        row = await (await conn.execute(sql)).fetchone()
    version, may_create = row or ("", False)
    return database.place, str(version), bool(may_create)


def connection_broke(error: OperationalError) -> bool:
    """Return whether the server, or the network, has ended a connection that was in use."""
    code = error.sqlstate
    if isinstance(error, PoolTimeout):
        return False
    # 57P: the server goes down, or an administrator has cut the connection; 08: the connection itself.
    return code is None or code.startswith(("57P", "08"))

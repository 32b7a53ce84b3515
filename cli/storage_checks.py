"""Whether runs can be kept: the home folder, SQLite, Postgres."""

import importlib.util
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from cli.check import Check
from cli.texts import Texts
from graph.settings import Settings
from schemas.errors import SettingsError, StorageError

_DATABASE_SECONDS = 10.0


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


async def postgres(settings: Settings, say: Texts) -> Check:
    """Check that the database that is set can be reached, and that tables may be made in it."""
    name, url = say("doctor.postgres"), settings.database_url
    if url is None or importlib.util.find_spec("psycopg") is None:
        return Check(name, "fail", say("doctor.no_psycopg"))
    from graph.database import looked_at

    try:
        place, found, may_create = await looked_at(url, min(_DATABASE_SECONDS, settings.busy_timeout_seconds))
    except (SettingsError, StorageError) as error:
        return Check(name, "fail", str(error))
    key = "doctor.database" if may_create else "doctor.no_create"
    return Check(name, "ok" if may_create else "fail", say(key, version=found, place=place))

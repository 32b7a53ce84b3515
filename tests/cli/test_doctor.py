import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.endpoint import Endpoint, step
from tests.postgres.test_database import run_sql

Here = Callable[..., tuple[int, str, str]]


def test_without_a_model_it_says_what_to_set_and_all_is_well(here: Here) -> None:
    code, out, _ = here("doctor")
    assert code == 0
    assert "AGENT_MODEL" in out
    assert "write-ahead log works" in out


def test_it_asks_the_model_and_shows_no_secret(here: Here) -> None:
    with Endpoint({"steps": [step("a")]}) as endpoint:
        code, out, _ = here("doctor", **endpoint.environment)
    assert code == 0
    assert "openai:scripted answers" in out
    assert endpoint.environment["OPENAI_API_KEY"] not in out


def test_an_address_is_shown_without_its_password(here: Here) -> None:
    code, out, _ = here(
        "doctor",
        AGENT_MODEL="openai:m",
        OPENAI_BASE_URL="http://me:hidden@127.0.0.1:9/v1",
        OPENAI_API_KEY="sk-hidden",
    )
    assert code == 4
    assert "FAIL" in out
    assert "hidden" not in out


def test_a_home_that_cannot_be_written_fails_and_says_what_to_do(here: Here, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    code, out, _ = here("doctor", PLANWEAVE_HOME=str(file))
    assert code == 4
    assert "set PLANWEAVE_HOME" in out


def test_a_wrong_setting_is_named(here: Here) -> None:
    code, out, _ = here("doctor", PLANWEAVE_BUSY_TIMEOUT_SECONDS="soon")
    assert code == 4
    assert "busy_timeout_seconds" in out


def test_the_database_that_is_set_is_connected_to(here: Here, postgres_url: str) -> None:
    code, out, _ = here("doctor", PLANWEAVE_DATABASE_URL=postgres_url)
    assert code == 0
    (row,) = [line for line in out.splitlines() if "Postgres" in line]
    assert re.search(r"ok +Postgres +\d+.*connected to test_\d+ on ", row)
    assert "SQLite" not in out


@pytest.mark.usefixtures("postgres_server")
@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("postgresql://me:hidden@127.0.0.1:1/kept", "kept on 127.0.0.1"),
        ("postgresql://me:a@hidden@h/d", "percent"),
    ],
)
def test_a_database_that_cannot_be_reached_fails_and_shows_no_password(
    here: Here, url: str, word: str
) -> None:
    code, out, _ = here("doctor", PLANWEAVE_DATABASE_URL=url)
    assert code == 4
    assert word in next(line for line in out.splitlines() if "FAIL" in line)
    assert "hidden" not in out.replace("PLANWEAVE", "")


def test_a_user_who_may_not_make_tables_is_told(here: Here, postgres_url: str) -> None:
    for sql in (
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "REVOKE CREATE ON SCHEMA public FROM public",
    ):
        run_sql(postgres_url, sql)
    code, out, _ = here("doctor", PLANWEAVE_DATABASE_URL=postgres_url.replace("postgres:@", "reader:@"))
    run_sql(postgres_url, "DROP ROLE reader")
    assert code == 4
    assert "GRANT CREATE" in out

from collections.abc import Callable
from pathlib import Path

from tests.cli.endpoint import Endpoint, step

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

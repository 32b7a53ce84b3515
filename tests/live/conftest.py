from __future__ import annotations

import sys
from collections.abc import Callable

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live: asks the model that AGENT_MODEL and OPENAI_BASE_URL name")


@pytest.fixture
def tell(capfd: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a line of the tally at once, past pytest's capture: it is what a person runs these tests for."""

    def say(text: str) -> None:
        with capfd.disabled():
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    return say

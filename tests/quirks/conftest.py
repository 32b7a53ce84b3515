from collections.abc import Iterator

import pytest

from agents.endpoints import forget


@pytest.fixture(autouse=True)
def _nothing_is_known_of_any_server() -> Iterator[None]:
    forget()
    yield
    forget()

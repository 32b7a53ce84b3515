from __future__ import annotations

from typing import Any

import pytest

from tests.kill.lives import Nursery, Order


@pytest.fixture(scope="session")
def nursery() -> Nursery:
    return Nursery()


@pytest.fixture(scope="session")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the run comes to when nobody kills it, and the "seconds" it takes."""
    found = nursery.live(Order(tmp_path_factory.mktemp("undisturbed")))
    return found["done"] | {"seconds": found["seconds"]}

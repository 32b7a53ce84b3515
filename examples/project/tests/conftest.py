"""The timetable that comes with the project."""

from pathlib import Path

import pytest
from ferrytimes.timetable import Timetable, read_timetable

DATA = Path(__file__).parents[1] / "data" / "harbours.csv"


@pytest.fixture
def table() -> Timetable:
    """Return the timetable of data/harbours.csv."""
    return read_timetable(DATA)

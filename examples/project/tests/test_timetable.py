"""Reading a timetable, and what leaves when."""

from datetime import date, time
from pathlib import Path

import pytest
from ferrytimes.timetable import Timetable, TimetableError, read_timetable

MONDAY, SUNDAY = date(2027, 3, 1), date(2027, 3, 7)
HEAD = "line,from,to,departs,arrives,days\n"


def test_harbours_are_known(table: Timetable) -> None:
    """Every name in the file is a harbour."""
    assert table.harbours() == ["Aldness", "Brae", "Corrie", "Dunvay"]


def test_days_decide_what_sails(table: Timetable) -> None:
    """The early ferry is for weekdays only."""
    assert table.departures("Aldness", MONDAY, time(0))[0].departs == time(6, 40)
    assert table.departures("Aldness", SUNDAY, time(0))[0].departs == time(9, 10)


def test_a_ferry_that_leaves_at_the_minute_is_caught(table: Timetable) -> None:
    """Departures at the given time count."""
    assert table.departures("Aldness", SUNDAY, time(16, 30))[0].departs == time(16, 30)


@pytest.mark.parametrize(
    "row",
    ["1,A,B,25:00,26:00,daily", "1,A,B,10:00,09:00,daily", "1,A,B,10:00,11:00,mondays", "1,A,B"],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: str) -> None:
    """The message tells the file and the line."""
    path = tmp_path / "t.csv"
    path.write_text(f"{HEAD}{row}\n")
    with pytest.raises(TimetableError, match=r"t\.csv, line 2"):
        read_timetable(path)

"""The way that arrives first."""

from datetime import date, time, timedelta

from ferrytimes.route import fastest, later
from ferrytimes.timetable import Timetable

MONDAY, SUNDAY = date(2027, 3, 1), date(2027, 3, 7)


def test_a_way_with_two_changes(table: Timetable) -> None:
    """Three lines lead from Aldness to Dunvay."""
    way = fastest(table, "Aldness", "Dunvay", MONDAY, time(6))
    assert [sailing.line for sailing in way] == ["1", "2", "3"]
    assert way[-1].arrives == time(12, 35)


def test_a_change_takes_ten_minutes(table: Timetable) -> None:
    """On a weekday 07:15 to 07:25 in Brae is just enough."""
    way = fastest(table, "Aldness", "Corrie", MONDAY, time(6))
    assert [sailing.departs for sailing in way] == [time(6, 40), time(7, 25)]


def test_weekends_have_their_own_ferry(table: Timetable) -> None:
    """The 11:30 to Dunvay sails at weekends."""
    assert fastest(table, "Aldness", "Dunvay", SUNDAY, time(6))[-1].arrives == time(11, 55)


def test_no_way_back_at_night(table: Timetable) -> None:
    """After the last ferry there is none."""
    assert fastest(table, "Dunvay", "Aldness", MONDAY, time(15)) == []


def test_midnight_ends_the_day() -> None:
    """A change past midnight is none."""
    assert later(time(23, 55), timedelta(minutes=10)) is None

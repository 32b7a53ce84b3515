"""A timetable: reading it, and what leaves when."""

import csv
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path

DAYS = ("daily", "weekdays", "weekends")


class TimetableError(ValueError):
    """A timetable cannot be used; the message names the file and the line."""


@dataclass(frozen=True, order=True)
class Sailing:
    """One crossing. No ferry sails over midnight.

    Attributes:
        days: "daily", "weekdays" or "weekends".
    """

    departs: time
    arrives: time
    line: str
    origin: str
    target: str
    days: str = "daily"

    def runs_on(self, day: date) -> bool:
        """Return whether it sails on that day."""
        weekend = day.weekday() >= 5
        return self.days == "daily" or (self.days == "weekends") == weekend


class Timetable:
    """All sailings, in the order of their departures."""

    def __init__(self, sailings: list[Sailing]) -> None:
        self.sailings = sorted(sailings)

    def harbours(self) -> list[str]:
        """Return the names of all harbours, sorted."""
        return sorted({name for sailing in self.sailings for name in (sailing.origin, sailing.target)})

    def departures(self, origin: str, day: date, after: time) -> list[Sailing]:
        """Return what leaves a harbour on a day, at or after a time."""
        return [
            sailing
            for sailing in self.sailings
            if sailing.origin == origin and sailing.departs >= after and sailing.runs_on(day)
        ]


def read_timetable(path: Path) -> Timetable:
    """Read a CSV file with the columns line, from, to, departs, arrives, days.

    Raises:
        TimetableError: a row is wrong.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sailings: list[Sailing] = []
    for number, row in enumerate(rows, start=2):
        try:
            sailing = Sailing(
                departs=time.fromisoformat(row["departs"]),
                arrives=time.fromisoformat(row["arrives"]),
                line=row["line"],
                origin=row["from"],
                target=row["to"],
                days=row["days"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise TimetableError(f"{path.name}, line {number}: {error}") from error
        if sailing.arrives <= sailing.departs or sailing.days not in DAYS:
            raise TimetableError(f"{path.name}, line {number}: times or days are wrong")
        sailings.append(sailing)
    return Timetable(sailings)

"""The way from one harbour to another that arrives first."""

from datetime import date, datetime, time, timedelta

from ferrytimes.timetable import Sailing, Timetable

CHANGE = timedelta(minutes=10)
"""At least so long between two ferries."""


def fastest(table: Timetable, origin: str, target: str, day: date, after: time) -> list[Sailing]:
    """Return the sailings of the way that arrives first on that day; [] if there is none.

    Harbours are settled in the order of arrival, so the first way that reaches a harbour is its fastest.
    """
    ways: dict[str, list[Sailing]] = {}
    open_ways: list[tuple[time, int, str, list[Sailing]]] = [(after, 0, origin, [])]
    while open_ways:
        open_ways.sort(key=lambda way: way[:3])
        reached, changes, harbour, way = open_ways.pop(0)
        if harbour in ways:
            continue
        ways[harbour] = way
        if harbour == target:
            return way
        ready = later(reached, CHANGE) if way else reached
        for sailing in table.departures(harbour, day, ready) if ready else []:
            if sailing.target not in ways:
                open_ways.append((sailing.arrives, changes + 1, sailing.target, [*way, sailing]))
    return []


def later(moment: time, by: timedelta) -> time | None:
    """Return a time of the same day, or None past midnight."""
    moved = datetime.combine(date.min, moment) + by
    return moved.time() if moved.date() == date.min else None

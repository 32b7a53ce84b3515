"""A small MCP server: the office almanac of a company that does not exist. No network, always the same answers.

python examples/mcp_server/server.py                  over stdin and stdout
python examples/mcp_server/server.py --http 8765      over HTTP, at http://127.0.0.1:8765/mcp
"""

import argparse
import re
from typing import Annotated

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

OFFICES = {
    "Aldermere": ("UTC+0", "09:00 to 17:30", "British pound", 40),
    "Brixholt": ("UTC+1", "08:00 to 16:30", "euro", 25),
    "Calderón": ("UTC-6", "08:30 to 17:00", "Mexican peso", 60),
    "Dunmarrow": ("UTC+0", "09:30 to 18:00", "euro", 15),
    "东浦": ("UTC+8", "09:00 to 18:00", "yuan", 80),
}
"""Office: time zone, opening hours, currency of its expenses, desks."""

CLOSED = {
    "Aldermere": {"2027-01-01": "New Year", "2027-05-03": "Early May", "2027-12-27": "Christmas, moved"},
    "Brixholt": {"2027-01-01": "New Year", "2027-05-06": "Ascension", "2027-12-24": "Christmas Eve"},
    "Calderón": {"2027-02-01": "Constitution", "2027-03-15": "Juárez", "2027-09-16": "Independence"},
    "Dunmarrow": {"2027-02-01": "St Brigid", "2027-03-17": "St Patrick", "2027-10-25": "October"},
    "东浦": {"2027-02-06": "春节", "2027-05-01": "劳动节", "2027-10-01": "国庆节"},
}
"""Office: the days on which it is closed, and why."""

READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
BOOKS = ToolAnnotations(readOnlyHint=False, destructiveHint=False, idempotentHint=True, openWorldHint=False)


def build(port: int = 8765) -> FastMCP:
    """Return the server; its bookings live as long as it does."""
    server = FastMCP("almanac", host="127.0.0.1", port=port, log_level="WARNING")
    booked: dict[tuple[str, str], int] = {}

    @server.tool(annotations=READS)
    def search(
        query: Annotated[str, Field(description="Words to look for: an office, a date, a holiday, hours")],
    ) -> str:
        """Search the office almanac: opening hours, time zones, currencies, desks and closing days."""
        words = [word for word in re.findall(r"[\w-]+", query.casefold()) if len(word) > 1]
        scored = [(sum(word in line.casefold() for word in words), line) for line in entries()]
        best = max((score for score, _ in scored), default=0)
        found = [line for score, line in scored if best and score == best]
        return "\n".join(found[:10]) or f"The almanac has nothing on {query[:100]!r}."

    @server.tool(annotations=READS)
    def working_days(
        office: Annotated[str, Field(description="Name of the office")],
        month: Annotated[str, Field(description="As 2027-05", pattern=r"^\d{4}-\d{2}$")],
    ) -> dict[str, str | list[str]]:
        """List the days of a month on which an office is closed, apart from weekends."""
        days = CLOSED[known(office)]
        closed = [f"{day} {why}" for day, why in days.items() if day.startswith(month)]
        return {"office": known(office), "month": month, "closed": closed}

    @server.tool(annotations=BOOKS)
    def book_desks(office: str, day: str, desks: Annotated[int, Field(ge=1, le=100)]) -> str:
        """Book desks in an office for a day; another call for that day takes the place of the first."""
        name = known(office)
        if day in CLOSED[name]:
            raise ToolError(f"{name} is closed on {day}: {CLOSED[name][day]}")
        if desks > OFFICES[name][3]:
            raise ToolError(f"{name} has {OFFICES[name][3]} desks")
        booked[name, day] = desks
        return f"{desks} desks booked in {name} on {day}."

    return server


def entries() -> list[str]:
    """Return the almanac, a line for each fact."""
    lines = [
        f"Office {name}: open {hours} ({zone}), expenses in {currency}, {desks} desks."
        for name, (zone, hours, currency, desks) in OFFICES.items()
    ]
    return lines + [
        f"Office {name} is closed on {day}: {why}."
        for name, days in CLOSED.items()
        for day, why in days.items()
    ]


def known(office: str) -> str:
    """Return an office's name as the almanac writes it."""
    names = {name.casefold(): name for name in OFFICES}
    if office.strip().casefold() not in names:
        raise ToolError(f"there is no office {office[:60]!r}; there are: {', '.join(OFFICES)}")
    return names[office.strip().casefold()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The office almanac, as an MCP server.")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on 127.0.0.1 instead of stdio")
    port = parser.parse_args().http
    build(port or 8765).run("streamable-http" if port else "stdio")

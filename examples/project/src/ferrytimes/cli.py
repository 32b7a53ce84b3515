"""The command `ferrytimes`."""

import argparse
import sys
from collections.abc import Sequence
from datetime import date, time
from pathlib import Path

from ferrytimes.route import fastest
from ferrytimes.timetable import Sailing, TimetableError, read_timetable


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the way; return 0, 1 if there is none, or 2 if the timetable cannot be used."""
    asked = _parser().parse_args(arguments)
    try:
        table = read_timetable(asked.timetable)
    except (OSError, TimetableError) as error:
        sys.stderr.write(f"ferrytimes: {error}\n")
        return 2
    unknown = [name for name in (asked.origin, asked.target) if name not in table.harbours()]
    if unknown:
        sys.stderr.write(f"ferrytimes: no harbour {unknown[0]}; there are {', '.join(table.harbours())}\n")
        return 2
    way = fastest(table, asked.origin, asked.target, asked.day, asked.after)
    sys.stdout.writelines(f"{_line(sailing)}\n" for sailing in way)
    return 0 if way else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ferrytimes", description="Find the ferry that arrives first.")
    parser.add_argument("origin")
    parser.add_argument("target")
    parser.add_argument("--timetable", type=Path, default=Path("data/harbours.csv"))
    parser.add_argument("--day", type=date.fromisoformat, default=date.today())  # noqa: DTZ011 - harbour time
    parser.add_argument("--after", type=time.fromisoformat, default=time(0, 0))
    return parser


def _line(sailing: Sailing) -> str:
    return (
        f"{sailing.departs:%H:%M} {sailing.origin} -> {sailing.arrives:%H:%M} {sailing.target} "
        f"(line {sailing.line})"
    )


if __name__ == "__main__":
    raise SystemExit(main())

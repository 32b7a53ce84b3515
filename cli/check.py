"""One thing that doctor looks at."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    name: str
    level: Level
    detail: str

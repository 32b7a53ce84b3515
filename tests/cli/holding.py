"""A tool for runs in processes of their own: it says when it begins and ends, and waits to be let go.

HOLD_FOLDER holds the log `calls`, one "start <query>" or "end <query>" a line, and one empty file for each query let go.
"""

import os
import time
from pathlib import Path

from langchain_core.tools import BaseTool, tool

SPEC = f"{__file__}:tools"


def lines(folder: Path) -> list[str]:
    log = folder / "calls"
    return log.read_text().splitlines() if log.exists() else []


def _say(folder: Path, line: str) -> None:
    with (folder / "calls").open("a") as log:
        log.write(line + "\n")


@tool
def hold(query: str) -> dict[str, str]:
    """Look something up, slowly."""
    folder = Path(os.environ["HOLD_FOLDER"])
    _say(folder, f"start {query}")
    while not (folder / query).exists():
        time.sleep(0.01)
    _say(folder, f"end {query}")
    return {"source_id": f"s-{query}", "text": f"text of {query}"}


tools: list[BaseTool] = [hold]

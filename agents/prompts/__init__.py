"""The roles' prompts: short Markdown files; values never enter them, they travel as JSON in their own message."""

from functools import cache
from importlib.resources import files


@cache
def prompt(role: str) -> str:
    """Return the system prompt of a role: planner, replanner, worker, reviewer, writer."""
    return files(__name__).joinpath(f"{role}.md").read_text(encoding="utf-8").strip()

"""Tools of a person's own, for runs in processes of their own: one that only reads, and one that writes to a file."""

from pathlib import Path

from langchain_core.tools import BaseTool, tool

SPEC = f"{__file__}:tools"


@tool
def look(query: str) -> dict[str, str]:
    """Look something up."""
    return {"source_id": f"s-{query}", "text": f"<script>about</script> \x1b[31m{query}\x1b[0m \u202e end"}


@tool
def save(path: str, content: str) -> dict[str, str]:
    """Add a line to a file."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(content + "\n")
    return {"source_id": "s-save", "text": f"saved {path}"}


save.metadata = {"permission": "write"}
tools: list[BaseTool] = [look, save]

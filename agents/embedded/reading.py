"""The embedded worker's steps over files: what to list, read and search, and what to quote of it."""

from collections.abc import Sequence

from agents.embedded import phrases
from agents.embedded.files import (
    FileTask,
    best_name,
    names_in,
    read_files_objective,
    scope_of,
    telling_sections,
)
from agents.embedded.match import Block
from agents.embedded.past import FILE_NAMES, Call, Past
from agents.embedded.text import Unit, units

LIST, READ_FILE, FIND = FILE_NAMES
ALL: Call = (LIST, {"folder": ".", "pattern": "**/*"})
MAX_LISTED = 25
Quoted = tuple[str, str]
"""A line of a summary, and the id of its source."""


def calls(task: FileTask, past: Past) -> list[Call]:
    """Return the next calls: all names first, then what is meant."""
    if ALL not in past.calls:
        return [ALL]
    aim = _aim(task, past)
    return [aim] if aim else []


def _aim(task: FileTask, past: Past) -> Call | None:
    """Return the call whose result is the answer."""
    paths = _paths(past)
    if task.listing:
        scope = scope_of(task.what, paths)
        return (LIST, {"folder": scope[0], "pattern": scope[1]}) if scope else None
    name = best_name(task.what, paths)
    return (READ_FILE, {"path": name, **({"max_lines": task.lines} if task.lines else {})}) if name else None


def _paths(past: Past) -> list[str]:
    return [p for call, blocks in past.results if call == ALL for b in blocks for p in names_in(b.text)]


def lines(task: FileTask, past: Past, objective: str, chinese: bool) -> list[Quoted]:
    """Return what to quote of a listing, or of the file that was read."""
    aim = _aim(task, past)
    blocks = [block for call, found in past.results if call == aim for block in found]
    if task.listing:
        return [_listed(task, block, chinese) for block in blocks if names_in(block.text)]
    asked = units(" ".join(read_files_objective(objective)[1]))
    return [line for block in blocks for line in _read(block, asked)]


def _listed(task: FileTask, block: Block, chinese: bool) -> Quoted:
    label = f"{phrases.said(phrases.LAYOUT, chinese)}: {task.what}"
    shown = "” / “".join(names_in(block.text)[:MAX_LISTED])
    return phrases.line(label, shown, block.locator or block.id), block.id


def _read(block: Block, asked: Sequence[Unit]) -> list[Quoted]:
    found: list[Quoted] = []
    for section in telling_sections(block.path, block.text, asked):
        label = (
            f"{block.path or block.title}: {section.heading}"
            if section.heading
            else block.path or block.title
        )
        found.append((phrases.line(label, "” / “".join(section.shown), block.locator or block.id), block.id))
    return found


def search_calls(wanted: Sequence[Unit], past: Past) -> list[Call]:
    """Return searches of the files' lines for the longest words wanted, then the file in which most of them stand."""
    searched = [(call, blocks) for call, blocks in past.results if call[0] == FIND]
    if not any(name == FIND for name, _ in past.calls):
        texts = sorted({u.text for u in wanted}, key=lambda t: (-len(t), t))
        return [(FIND, {"text": text, "folder": "."}) for text in texts[:3]]
    counts: dict[str, int] = {}
    for _, blocks in searched:
        for path in {b.path for b in blocks if b.path}:
            counts[path] = counts.get(path, 0) + 1
    best = sorted(counts, key=lambda p: (-counts[p], p.count("/"), p))[:1]
    return [(READ_FILE, {"path": path}) for path in best if (READ_FILE, {"path": path}) not in past.calls]

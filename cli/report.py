"""`planweave report`: a thread written to one file, to send on."""

import re
import secrets
from pathlib import Path

from cli.desk import Desk
from cli.exit_codes import ExitCode
from cli.printable import one_line
from cli.report_facts import Facts, facts_of
from cli.report_page import page
from cli.report_plain import as_json, markdown
from cli.texts import Language, Texts
from graph.runner import thread_config
from graph.threads import TaskGraph
from nodes.briefs import language_of
from schemas.errors import InputError, StorageError

_ENDINGS = (".html", ".md", ".json")


async def report(desk: Desk, thread_id: str, output: Path | None, language: Language | None) -> ExitCode:
    """Write the report of a thread.

    Args:
        desk: whose graph is read, and on whose screen the file's name is printed.
        thread_id: of the thread.
        output: its ending says the format; None = report-THREAD.html in the working folder.
        language: of the report; None = that of the objective.

    Raises:
        InputError: the ending is unknown, or there is no such thread.
        StorageError: the file cannot be written.
    """
    screen = desk.screen
    path = output or Path(f"report-{_file_name(thread_id)}.html")
    if path.suffix.lower() not in _ENDINGS:
        raise InputError(screen.say("report.ending", path=one_line(str(path), 500)))
    async with desk.open() as graph:
        facts = await read_facts(graph, thread_id)
    if not facts.found.known:
        raise InputError(screen.say("show.unknown", thread=one_line(thread_id)))
    say = Texts(language or ("zh" if language_of(facts.found.objective) == "zh" else "en"))
    try:
        write_atomically(path, rendered(facts, path.suffix.lower(), say))
    except OSError as error:
        problem = one_line(error.strerror or str(error))
        raise StorageError(
            screen.say("report.unwritable", path=one_line(str(path), 500), problem=problem)
        ) from error
    screen.line(screen.say("report.written", path=one_line(str(path), 500)))
    return ExitCode.COMPLETED


async def read_facts(graph: TaskGraph, thread_id: str) -> Facts:
    """Return what the thread's latest checkpoint tells."""
    snapshot = await graph.aget_state(thread_config(thread_id))
    # The list of threads knows whether a running one still has a process.
    listed = {thread.thread_id: thread.status for thread in await graph.threads()}
    status = listed.get(thread_id) or (snapshot.values or {}).get("status") or "running"
    return facts_of(snapshot, thread_id, status)


def rendered(facts: Facts, ending: str, say: Texts) -> str:
    """Return the text of a report whose file has that ending."""
    if ending == ".json":
        return as_json(facts)
    return page(facts, say) if ending == ".html" else markdown(facts, say)


def write_atomically(path: Path, text: str) -> None:
    """Write a file that is either whole or, if that fails, as it was before.

    Raises:
        OSError: it cannot be written.
    """
    # Not tempfile: its files are private to the person, and this one is for sending on.
    part = path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _file_name(thread_id: str) -> str:
    return re.sub(r"[^\w.-]+", "-", one_line(thread_id)).strip("-.")[:80] or "thread"

"""What an embedded worker may call, and what it has called so far: read from bound tools and messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from agents.embedded.match import Block, blocks_in
from agents.embedded.offered import Offered
from agents.embedded.requests import clean
from tools.results import drafts_from

Call = tuple[str, dict[str, Any]]
SQL, READ = "sql", "source_id"  # the parameters that tell such a tool
FILE_NAMES = ("list_files", "read_file", "search_files")
QUERY_NAMES = ("query", "q", "question", "search", "keywords", "search_query", "pattern", "text")


@dataclass(frozen=True)
class Toolbox:
    """The bound tools that the embedded worker knows how to use: (name, name of the parameter).

    `counted`: whether the search takes the number of passages as `k`.
    `files`: whether files can be listed and read; `find`: whether their lines can be searched.
    `others`: further tools that may be called unasked, known by what they say of themselves.
    """

    search: tuple[str, str] | None = None
    counted: bool = False
    read: tuple[str, str] | None = None
    sql: tuple[str, str] | None = None
    files: bool = False
    find: bool = False
    others: list[Offered] = field(default_factory=list[Offered])

    @classmethod
    def of(cls, bound: Mapping[str, Offered]) -> "Toolbox":
        """Choose among the bound tools, by name and parameter names."""
        names = {name: tool.names for name, tool in bound.items()}
        ordered = sorted(names)
        search = _first(names, ["search_documents"] if "search_documents" in names else [], QUERY_NAMES)
        read = _first(names, [n for n in ordered if "read" in n], (READ,))
        sql = _first(names, ordered, (SQL,))
        known = {*FILE_NAMES, *(pair[0] for pair in (search, read, sql) if pair)}
        return cls(
            search=search,
            counted=search is not None and "k" in names[search[0]],
            read=read,
            sql=sql,
            files=all(name in names for name in FILE_NAMES[:2]),
            find=FILE_NAMES[2] in names,
            others=[t for name, t in bound.items() if t.unasked and name not in known],
        )


def _first(
    bound: Mapping[str, Sequence[str]], ordered: Sequence[str], parameters: Sequence[str]
) -> tuple[str, str] | None:
    pairs = ((name, p) for name in ordered for p in parameters if p in bound[name])
    return next(pairs, None)


@dataclass
class Past:
    """What the step has done so far, read from its conversation."""

    calls: list[Call] = field(default_factory=list[Call])
    rounds: int = 0
    answered: int = 0
    results: list[tuple[Call, list[Block]]] = field(default_factory=list[tuple[Call, list[Block]]])
    closed: bool = False

    @property
    def blocks(self) -> list[Block]:
        """All sources returned, each once."""
        return list({block.id: block for _, found in self.results for block in found}.values())


def read_past(messages: Sequence[BaseMessage]) -> Past:
    """Read calls and results out of the messages after the request."""
    past = Past()
    by_id: dict[str, Call] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls = [c for c in message.tool_calls if c["name"] != "Finding"]
            by_id |= {str(c["id"]): (c["name"], c["args"]) for c in calls}
            past.calls += [(c["name"], c["args"]) for c in calls]
            past.rounds += bool(calls)
        elif isinstance(message, ToolMessage) and message.tool_call_id in by_id:
            past.answered += 1
            past.closed |= message.text.startswith("Not run: ")
            if message.status != "error":
                past.results.append((by_id[message.tool_call_id], _blocks(message)))
    return past


def _blocks(message: ToolMessage) -> list[Block]:
    """Return a result's sources; where its artifact lists them, a header that the text merely quotes is none."""
    # A tool of one's own answers with objects.
    found = blocks_in(clean(message.text)) or [
        Block(d["source_id"], d["title"], d["locator"], clean(d["text"]))
        for d in drafts_from(message.text, None)
    ]
    artifact = message.artifact
    if isinstance(artifact, list) and artifact:
        listed: set[str] = {str(d.get("source_id")) for d in artifact if isinstance(d, dict)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return [b for b in found if b.id in listed] if listed - {"None"} else found
    return found

"""What every command works with."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.kit import Kit
from cli.screen import Screen

if TYPE_CHECKING:
    from graph.threads import TaskGraph


@dataclass(frozen=True)
class Desk:
    """A screen, and the way to the graph."""

    screen: Screen

    def open(self, kit: Kit | None = None) -> AbstractAsyncContextManager["TaskGraph"]:
        """Open the graph that the settings describe; `kit` = other tools than they say."""
        # Not before it is needed: `--help` shall not wait for LangGraph.
        from graph.persistence import open_graph
        from graph.settings import load_settings

        given = vars(kit) if kit is not None else {}
        return open_graph(load_settings(), **given)

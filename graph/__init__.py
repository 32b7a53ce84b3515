"""The whole application wired: build_graph for any checkpointer, open_graph for the durable default."""

from graph.builder import build_graph
from graph.persistence import open_graph
from schemas.context import RunContext

__all__ = ["RunContext", "build_graph", "open_graph"]

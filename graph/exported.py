"""The graph that langgraph.json exports: no key, no network, no checkpointer; an Agent Server brings its own."""

from pathlib import Path

from graph.builder import build_graph
from graph.persistence import folder_tools
from graph.settings import load_settings

_EXAMPLE = Path(__file__).parents[1] / "examples" / "competitors"
_settings = load_settings()

graph = build_graph(
    tools=folder_tools(_settings.docs or _EXAMPLE, _settings.root),
    settings=_settings,
)

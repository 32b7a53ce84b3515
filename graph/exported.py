"""The graph that langgraph.json exports, for an Agent Server and Studio. Importing it opens nothing and needs no key.

It has no checkpointer and no store: the server brings its own. Where AGENT_MODEL is not set, the embedded model works.
The tools work on PLANWEAVE_DOCS and PLANWEAVE_ROOT; where PLANWEAVE_DOCS is not set, on examples/competitors of this
checkout, so that Studio has something to show.
"""

from pathlib import Path

from graph.builder import build_graph
from graph.persistence import artifacts_in
from graph.settings import load_settings
from graph.threads import TaskGraph
from graph.toolbox import folder_tools
from tools.artifacts import FileArtifacts

EXAMPLE = Path(__file__).parents[1] / "examples" / "competitors"


def export() -> TaskGraph:
    """Return the graph as the settings say.

    Raises:
        SettingsError: AGENT_MODEL is set and cannot be used, or a folder does not exist.
    """
    settings = load_settings()
    docs = settings.docs or (EXAMPLE if EXAMPLE.is_dir() else None)
    tools = folder_tools(docs, settings.root)
    # Made when the first result is stored, not here.
    artifacts = artifacts_in(settings.artifacts, None) or FileArtifacts(settings.home / "artifacts")
    return build_graph(tools=tools, artifacts=artifacts, settings=settings)


graph = export()

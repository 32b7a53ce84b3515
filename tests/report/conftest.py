import asyncio
from pathlib import Path

import pytest

from cli.report import read_facts
from cli.report_facts import Facts
from graph.persistence import open_graph
from graph.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples"
OBJECTIVES = {
    "competitors": "Compare the latest release, the price per seat and the main user complaints of the five vendors",
    "churn": "分析上个季度的客户流失，找出主要原因并提出改进建议",
}


async def run(thread_id: str, objective: str, home: Path, docs: Path) -> Facts:
    """Run an objective with the embedded model, and return what it has come to."""
    settings = Settings(home=home, _env_file=None)  # type: ignore[call-arg]
    async with open_graph(settings, docs=docs) as graph:
        await graph.ainvoke({"objective": objective}, {"configurable": {"thread_id": thread_id}})
        return await read_facts(graph, thread_id)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Facts]:
    """What real runs of the embedded model over the examples have come to."""
    home = tmp_path_factory.mktemp("runs")
    return {n: asyncio.run(run(n, words, home / n, EXAMPLES / n)) for n, words in OBJECTIVES.items()}

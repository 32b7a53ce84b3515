"""Without a language model: a folder of files, an MCP server, and a tool of one's own, asked from end to end."""

import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from agents.models import Models
from agents.offline import OfflineChatModel
from graph import open_graph
from graph.settings import Settings

REPOSITORY = Path(__file__).parents[2]
PROJECT = REPOSITORY / "examples" / "project"
SERVERS = Path("examples/mcp_server/.mcp.json")
ENGLISH = (
    "read the build file, list the sources and the tests in parallel, read the first 80 lines of the README, "
    "then tell me how to build it, how it is laid out and how it is tested"
)
CHINESE = "读取构建文件，并行列出源码和测试，读取 README 的前 80 行，然后告诉我如何构建、如何组织、如何测试"


@pytest.fixture(autouse=True)
def _the_server_starts_with_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)  # where the server's command is looked up
    monkeypatch.setenv("PLANWEAVE_PYTHON", sys.executable)


async def run(objective: str, home: Path, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a run gives, and the state it ends in."""
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    async with open_graph(Settings(home=home), models=Models.single(OfflineChatModel()), **given) as graph:
        output = await graph.ainvoke({"objective": objective}, config)
        return output, (await graph.aget_state(config)).values


@pytest.mark.parametrize("objective", [ENGLISH, CHINESE])
async def test_a_project_is_read_in_four_parallel_steps_and_then_explained(
    objective: str, tmp_path: Path
) -> None:
    output, state = await run(objective, tmp_path, root=PROJECT)
    *reads, last = state["plan"].steps
    assert [s.id for s in reads] == ["read-build-file", "list-sources", "list-tests", "read-readme"]
    assert not any(s.depends_on for s in reads)
    assert last.depends_on == [s.id for s in reads]
    evidence = {e.step_id: e for e in state["evidence"]}
    assert all(e.passed and e.source_ids for e in evidence.values())
    assert max(evidence[s.id].started_at for s in reads) < min(evidence[s.id].finished_at for s in reads)
    assert any('"max_lines": 80' in call for call in evidence["read-readme"].calls)
    assert output["status"] == "completed"
    for said in (
        "setuptools",
        "src/ferrytimes/route.py",
        "tests/test_route.py",
        "-m pytest",
        "python -m venv .venv",
    ):
        assert said in output["final_answer"]
    assert "[1]" in output["final_answer"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("When is the Brixholt office closed?", ["2027-01-01", "2027-05-06", "2027-12-24"]),
        ("What are the opening hours of the Dunmarrow office?", ["09:30 to 18:00"]),
    ],
)
async def test_an_mcp_server_answers_a_question(question: str, said: list[str], tmp_path: Path) -> None:
    output, _ = await run(question, tmp_path, mcp=SERVERS)
    assert output["status"] == "completed"
    body = output["final_answer"].partition("## Sources")[0]
    assert all(f"{day}" in body for day in said)
    assert "Aldermere" not in body
    assert "[1]" in body


async def test_an_mcp_server_that_does_not_know_leaves_the_question_open(tmp_path: Path) -> None:
    output, _ = await run("What is the wifi password of the Ostrand canteen?", tmp_path, mcp=SERVERS)
    assert output["status"] != "completed"
    assert "open 09" not in output["final_answer"]


def stock(asked: list[str], permission: str) -> BaseTool:
    def look_up(article: str) -> str:
        """Look up how many pieces of an article are in stock."""
        asked.append(article)
        return "17 on the shelf"

    return StructuredTool.from_function(look_up, metadata={"permission": permission})


async def test_an_own_tool_is_called_with_the_value_that_the_question_names(tmp_path: Path) -> None:
    asked: list[str] = []
    output, _ = await run("How many pieces of A-17 are in stock?", tmp_path, tools=[stock(asked, "read")])
    assert asked == ["A-17"]
    assert output["status"] == "completed"
    assert "“17 on the shelf” [1]" in output["final_answer"]


async def test_a_tool_that_needs_approval_is_never_called_on_a_guess(tmp_path: Path) -> None:
    asked: list[str] = []
    output, _ = await run("How many pieces of A-17 are in stock?", tmp_path, tools=[stock(asked, "network")])
    assert asked == []
    assert output["status"] != "completed"

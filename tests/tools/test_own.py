from __future__ import annotations

import asyncio
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent

import pytest
from langchain_core.tools import BaseTool, StructuredTool, tool

from graph import build_graph
from graph.settings import Settings
from schemas.errors import SettingsError
from tools import own
from tools.own import own_tools
from tools.rate_limit import RateLimit, limited, shared_limit
from tools.registry import ToolRegistry

TOOLS = dedent(
    """
    from langchain_core.tools import BaseTool, tool

    @tool
    def price(product: str) -> str:
        \"\"\"Look up a price.\"\"\"
        return f"{product} costs 39"

    price.metadata = {"permission": "read", "idempotent": True, "timeout_seconds": 5}

    @tool
    async def order(product: str) -> str:
        \"\"\"Order something.\"\"\"
        return f"ordered {product}"

    order.metadata = {"permission": "network"}

    class Sized(BaseTool):
        name: str = "sized"
        description: str = "Tell the length."

        def _run(self, text: str) -> str:
            return str(len(text))

    def everything():
        return [price, order, Sized(metadata={"calls_per_minute": 5})]

    async def later():
        return [price]

    def plain(a, b):
        return a

    def failing():
        raise ValueError("no licence file")

    mixed = [price, plain]
    nothing = None
    number = 7

    class Box:
        tools = [price]
    """
)


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    """A module in the working folder, as a person puts it there."""
    name = f"my_tools_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


def names(tools: list[BaseTool]) -> list[str]:
    return [tool.name for tool in tools]


def test_a_tool_a_list_and_a_function_are_taken_in_order(module):
    found = own_tools([f"{module}:order", f"{module}:everything", f"{module}:Box.tools"])
    assert names(found) == ["order", "price", "order", "sized", "price"]
    registry = ToolRegistry(own_tools([f"{module}:everything"]))
    assert registry.unasked() == ["price", "sized"]
    assert registry.spec("price").timeout_seconds == 5


def test_a_file_is_named_by_its_path(module, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.py").write_text(TOOLS)
    first, again = own_tools(["sub/mine.py:price", f"{tmp_path}/sub/mine.py:price"])
    assert first is again
    assert first.invoke({"product": "Basic"}) == "Basic costs 39"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("no_such_module_here:tools", "there is no module 'no_such_module_here'"),
        ("nowhere.py:tools", "there is no file 'nowhere.py'"),
        ("{m}:missing", "has no 'missing'"),
        ("{m}:nothing", "has no 'nothing'"),
        ("{m}:number", "it gives a value of type int, not a tool"),
        ("{m}:plain", "the function plain is not a LangChain tool: decorate it"),
        ("{m}:later", "the function later is not a LangChain tool"),
        ("{m}:mixed", "the function plain is not a LangChain tool"),
        ("{m}:failing", "the function failing fails: ValueError: no licence file"),
        ("broken.py:tools", "broken.py fails: SyntaxError"),
        ("needs.py:tools", r"there is no module 'absent_library' \(imported by needs.py\)"),
        ("limit.py:t", "metadata 'calls_per_minute' is 0; it must be a whole number above 0"),
        ("no-such-entry-point", "there is no such entry point in the group planweave.tools"),
        ("", "there is no such entry point"),
        (":", "no module|fails"),
    ],
)
def test_what_cannot_be_used_is_a_line_that_names_it(module, spec, why):
    Path("broken.py").write_text("def (")
    Path("needs.py").write_text("import absent_library")
    Path("limit.py").write_text(f"from {module} import price as t\nt.metadata = {{'calls_per_minute': 0}}")
    own_tools([f"{module}:price"])  # so that limit.py finds its folder
    spec = spec.replace("{m}", module)
    with pytest.raises(SettingsError, match=why) as caught:
        own_tools([spec])
    assert str(caught.value).startswith(f"own tools {spec!r}: ")
    assert "\n" not in str(caught.value)


def test_all_faults_are_told_at_once(module):
    with pytest.raises(SettingsError, match=r"'a\.py:x'.*; .*has no 'y'"):
        own_tools(["a.py:x", f"{module}:y", f"{module}:price"])


def test_entry_points_are_found_by_name_or_all_together(module, monkeypatch):
    points = [
        EntryPoint("shop", f"{module}:price", own.GROUP),
        EntryPoint("lengths", f"{module}:Box.tools", own.GROUP),
    ]
    monkeypatch.setattr(own, "entry_points", lambda group: points if group == own.GROUP else [])
    sys.path.append(str(Path.cwd()))
    assert names(own_tools(["shop"])) == ["price"]
    assert names(own_tools(["planweave.tools"])) == ["price", "price"]


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)
        self.now = max(self.now, self.now + seconds)


async def test_a_limit_lets_so_many_start_in_any_minute():
    clock = Clock()
    limit = RateLimit(2, clock, clock.pause)
    starts = []
    for _ in range(5):
        await limit.turn()
        starts.append(clock.now)
        clock.now += 10
    assert starts == [100, 110, 160, 170, 220]


async def test_parallel_callers_get_turns_of_their_own():
    clock = Clock()
    limit = RateLimit(3, clock, clock.pause)
    started: list[float] = []

    async def one() -> None:
        await limit.turn()
        started.append(clock.now)

    await asyncio.gather(*(one() for _ in range(7)))
    assert sorted(clock.waits)[:3] == [60, 60, 60]
    assert len(started) == 7


async def test_a_caller_that_is_cancelled_gives_its_turn_back():
    limit = RateLimit(1, lambda: 100.0, lambda seconds: asyncio.Event().wait())
    await limit.turn()
    waiting = [asyncio.create_task(limit.turn()) for _ in range(2)]
    await asyncio.sleep(0)
    assert sorted(limit._turns) == [100, 160, 220]
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    assert sorted(limit._turns) == [100, 220]
    waiting[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]


class Turns(RateLimit):
    """Counts turns."""

    def __init__(self) -> None:
        super().__init__(1)
        self.count = 0

    async def turn(self) -> None:
        self.count += 1


async def test_a_limited_tool_works_as_before(module):
    turns = Turns()
    found = {tool.name: limited(tool, turns) for tool in own_tools([f"{module}:everything"])}
    call = {"type": "tool_call", "id": "1", "name": "x", "args": {"product": "Basic"}}
    assert (await found["order"].ainvoke(call)).content == "ordered Basic"
    assert (await found["sized"].ainvoke({"text": "four"})) == "4"
    assert turns.count == 2
    assert found["order"].args == {"product": {"title": "Product", "type": "string"}}


async def test_runs_of_one_process_share_a_limit():
    assert shared_limit("k", 3) is shared_limit("k", 3)
    assert shared_limit("k", 4) is not shared_limit("other", 4)


async def test_the_metadata_of_a_tool_limits_it():
    @tool
    def look(query: str) -> str:
        """Look."""
        return query

    look.metadata = {"calls_per_minute": 1000, "permission": "read"}
    sys.modules["its_module"] = type(sys)("its_module")
    sys.modules["its_module"].look = look  # type: ignore[attr-defined]
    try:
        (found,) = own_tools(["its_module:look"])
    finally:
        del sys.modules["its_module"]
    assert found is not look
    assert await found.ainvoke({"query": "q"}) == "q"
    assert len(shared_limit("its_module:look/look", 1000)._turns) == 1


async def test_a_tool_of_ones_own_that_answers_with_an_object_is_understood_without_a_model() -> None:
    def stock(article: str) -> dict[str, str]:
        """Look up how many pieces of an article are in stock."""
        return {"source_id": f"stock-{article}", "text": "17 pieces"}

    graph = build_graph(tools=[StructuredTool.from_function(stock)], settings=Settings(agent_model=None))
    out = await graph.ainvoke({"objective": "How many pieces of A-17 are there?"})
    assert (out["status"], [s.id for s in out["sources"]]) == ("completed", ["stock-A-17"])
    assert "“17 pieces” [1]" in out["final_answer"]

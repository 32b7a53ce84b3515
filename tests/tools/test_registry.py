from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, tool

from schemas.errors import ToolDefinitionError
from tools.registry import ToolRegistry


def _search(query: str) -> str:
    return query


def _other_search(query: str) -> str:
    return query


def make(
    name: str = "look", description: str = "Look.", function: Any = _search, **metadata: Any
) -> BaseTool:
    return StructuredTool.from_function(
        function, name=name, description=description, metadata=metadata or None
    )


def test_a_tool_without_metadata_is_read_and_not_idempotent():
    spec = ToolRegistry([make()]).spec("look")
    assert (spec.permission, spec.idempotent, spec.timeout_seconds) == ("read", False, None)


def test_the_rules_of_a_tool_are_those_of_its_metadata():
    spec = ToolRegistry([make(permission="network", idempotent=True, timeout_seconds=2.5)]).spec("look")
    assert (spec.permission, spec.idempotent, spec.timeout_seconds) == ("network", True, 2.5)


def test_only_reading_tools_run_unasked():
    registry = ToolRegistry(
        [make("a"), make("b", permission="write"), make("c", permission="network"), make("d")]
    )
    assert registry.names() == ["a", "b", "c", "d"]
    assert registry.unasked() == ["a", "d"]
    assert [t.name for t in registry.for_step(None)] == ["a", "d"]
    assert registry.for_step([]) == []
    assert [t.name for t in registry.for_step(["d", "b", "d"])] == ["b", "d"]
    with pytest.raises(KeyError):
        registry.for_step(["nope"])


def test_c21_two_tools_of_one_name_are_refused_naming_both():
    with pytest.raises(ToolDefinitionError) as caught:
        ToolRegistry([make(), make(function=_other_search)])
    assert "'look'" in str(caught.value)
    assert "_search" in str(caught.value)
    assert "_other_search" in str(caught.value)


@pytest.mark.parametrize("name", ["a b", "a.b", "定价", "x" * 65, "a\n", "Finding"])
def test_a_name_that_no_provider_takes_is_refused(name):
    with pytest.raises(ToolDefinitionError, match="name"):
        ToolRegistry([make(name)])


@pytest.mark.parametrize(
    ("key", "value"),
    [("permission", "admin"), ("permission", 1), ("permission", []), ("idempotent", "yes"), ("idempotent", 1)]
    + [("timeout_seconds", value) for value in (0, -1, "5", True, float("inf"), float("nan"))]
    + [("catalogue", [])],
)
def test_wrong_metadata_is_refused_naming_tool_and_key(key, value):
    with pytest.raises(ToolDefinitionError, match=f"'look'.*'{key}'"):
        ToolRegistry([make(**{key: value})])


def test_every_fault_is_named_at_once():
    with pytest.raises(ToolDefinitionError) as caught:
        ToolRegistry([make("a b"), make("c", permission="admin", idempotent=3), make("d"), make("d")])
    assert all(part in str(caught.value) for part in ("'a b'", "'permission'", "'idempotent'", "'d'"))


def test_a_plain_function_is_refused_in_words():
    with pytest.raises(ToolDefinitionError, match="_search is not a LangChain tool"):
        ToolRegistry([_search])  # type: ignore[list-item]


def test_describe_gives_the_first_paragraph_bounded():
    registry = ToolRegistry(
        [make(description="One {x}\nline.\n\nMore."), make("long", description="word " * 200)]
    )
    one, long = registry.describe()
    assert one == {"name": "look", "description": "One {x} line.", "permission": "read"}
    assert len(long["description"]) == 300


def test_catalogues_of_several_tools_are_merged():
    def group(name: str) -> dict[str, Any]:
        return {"name": name, "documents": []}

    first = make("a", catalogue={"documents": {"groups": [group("x")], "left_out": 2}})
    second = make(
        "b", catalogue={"documents": {"groups": [group("y")], "left_out": 3}, "tables": [{"name": "t"}]}
    )
    assert ToolRegistry([first, second, make("c")]).catalogue() == {
        "documents": {"groups": [group("x"), group("y")], "left_out": 5},
        "tables": [{"name": "t"}],
    }
    assert ToolRegistry([]).catalogue() == {"documents": {"groups": [], "left_out": 0}, "tables": []}


def test_tools_made_by_the_decorator_are_taken():
    @tool
    async def fetch(url: str) -> str:
        """Fetch a page."""
        return url

    assert ToolRegistry([fetch]).describe()[0]["description"] == "Fetch a page."

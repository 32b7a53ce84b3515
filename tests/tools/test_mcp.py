from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import Command
from mcp.types import ToolAnnotations

from schemas.errors import SettingsError, ToolDefinitionError
from tests.running import bench, of
from tests.scripted import call as tool_call
from tests.scripted import calls, finding, step
from tools.artifacts import MemoryArtifacts
from tools.mcp import is_idempotent, mcp_tools, permission_of
from tools.registry import ToolRegistry

SERVERS = str(Path(__file__).with_name("mcp_servers.py"))
ALMANAC = str(Path(__file__).parents[2] / "examples" / "mcp_server" / "server.py")


def started(*arguments: str, **env: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": list(arguments), "env": env}


def written(folder: Path, **servers: Any) -> Path:
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


async def ask(tools: list[BaseTool], name: str, **arguments: Any) -> ToolMessage:
    tool = next(tool for tool in tools if tool.name == name)
    return await tool.ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})


@contextmanager
def serving(port: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server over HTTP; it is ready when its port takes connections."""
    process = subprocess.Popen([sys.executable, *arguments, "--http", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        select.select([], [], [], 0.02)
    raise AssertionError("the server has ended")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def odd(tmp_path) -> Path:
    return written(tmp_path, odd=started(SERVERS, "odd"))


async def test_c22_answers_are_text_or_json_and_never_a_repr(odd):
    artifacts = MemoryArtifacts()
    async with mcp_tools(odd, artifacts=artifacts) as tools:
        blocks = await ask(tools, "odd_blocks")
        (source,) = blocks.artifact
        assert source["text"] == "first\nsecond {x}"
        assert blocks.content == f"[{source['source_id']}] odd_blocks (odd_blocks())\nfirst\nsecond {{x}}"

        structured = await ask(tools, "odd_structured")
        assert json.loads(structured.artifact[0]["text"]) == {"价格": 39, "list": [1, None]}
        assert "价格" in structured.content

        named = await ask(tools, "odd_sources")
        assert named.content == "[doc-1] (https://e.test/1)\nBasic costs 39"

        picture = await ask(tools, "odd_picture")
        text, image = picture.artifact
        assert text["text"] == "a chart"
        assert (image["title"], image["text"]) == ("image/png, 4 bytes", "(image/png, not shown)")
        assert "iVBORw" not in picture.content
        kept = image["locator"].rpartition("kept as ")[2]
        assert await artifacts.get(kept) == "data:image/png;base64,iVBORw=="

        other = await ask(tools, "odd_other")
        assert "the list: https://e.test/list\ninner text" in other.content
        assert "audio/wav, 3 bytes" in other.content
        assert "application/x, 3 bytes" in other.content
        assert len({item["source_id"] for item in other.artifact}) == 3

        nothing = await ask(tools, "odd_nothing")
        assert (nothing.content, nothing.artifact) == ("", [])

        with pytest.raises(ToolException, match="the ledger is closed"):
            await ask(tools, "odd_fails")


async def test_arguments_may_have_any_name_and_any_text(odd):
    async with mcp_tools(odd) as tools:
        answer = await ask(tools, "odd_echo", config="a\ud800\0", self="价格", run_manager="{c}")
        assert answer.artifact[0]["text"] == "a\ufffd/价格/{c}"
        with pytest.raises(ToolException, match="validation error"):
            await ask(tools, "odd_echo", config={"not": "text"})


async def test_what_a_server_says_of_its_tools_sets_the_rules(odd):
    async with mcp_tools(odd) as tools:
        registry = ToolRegistry(tools)
    rules = {
        name: (registry.spec(name).permission, registry.spec(name).idempotent) for name in registry.names()
    }
    assert rules["odd_blocks"] == ("read", True)
    assert rules["odd_unhinted"] == ("network", False)
    assert rules["odd_deletes"] == ("write", True)
    assert rules["odd_closed"] == ("network", True)
    assert registry.spec("odd_blocks").description == "Two text blocks."


@pytest.mark.parametrize(
    ("hints", "permission", "idempotent"),
    [
        ({"readOnlyHint": True, "destructiveHint": True}, "read", True),
        ({"readOnlyHint": True, "idempotentHint": False}, "read", False),
        ({"readOnlyHint": False}, "write", False),
        ({"destructiveHint": False}, "write", False),
        ({"openWorldHint": True}, "network", False),
        ({}, "network", False),
    ],
)
def test_hints(hints, permission, idempotent):
    annotations = ToolAnnotations(**hints)
    assert (permission_of(annotations), is_idempotent(annotations)) == (permission, idempotent)


async def test_a_server_that_dies_during_a_call_is_a_passing_fault_and_is_started_anew(odd, tmp_path):
    async with mcp_tools(odd) as tools:
        first = (await ask(tools, "odd_pid")).artifact[0]["text"]
        mark = str(tmp_path / "mark")
        with pytest.raises(ConnectionError, match="MCP server 'odd': it went away during the call"):
            await ask(tools, "odd_dies_once", mark=mark)
        both = await asyncio.gather(ask(tools, "odd_dies_once", mark=mark), ask(tools, "odd_pid"))
        assert both[0].artifact[0]["text"] == "alive again"
        assert both[1].artifact[0]["text"] != first


async def test_a_server_that_died_between_two_calls_is_started_anew(odd):
    async with mcp_tools(odd) as tools:
        pid = int((await ask(tools, "odd_pid")).artifact[0]["text"])
        await killed(pid)
        for _ in range(20):  # the end of its output may not have been read yet
            with suppress(ConnectionError):
                assert int((await ask(tools, "odd_pid")).artifact[0]["text"]) != pid
                return
    raise AssertionError("never reconnected")


async def killed(pid: int) -> None:
    handle = os.pidfd_open(pid)
    os.kill(pid, 9)
    await asyncio.to_thread(select.select, [handle], [], [], 10)
    os.close(handle)


async def test_servers_end_with_the_run(odd):
    async with mcp_tools(odd) as tools:
        pid = int((await ask(tools, "odd_pid")).artifact[0]["text"])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_servers_end_with_a_run_that_is_cancelled_in_the_middle_of_a_call(odd):
    asked = asyncio.Event()
    pids: list[int] = []

    async def run() -> None:
        async with mcp_tools(odd) as tools:
            pids.append(int((await ask(tools, "odd_pid")).artifact[0]["text"]))
            asked.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_over_http_with_a_restart_in_between(tmp_path, port):
    path = written(tmp_path, almanac={"type": "http", "url": f"http://127.0.0.1:{port}/mcp"})
    with serving(port, ALMANAC) as first:
        async with mcp_tools(path) as tools:
            answer = await ask(tools, "almanac_search", query="Dunmarrow hours")
            assert "Office Dunmarrow: open 09:30 to 18:00" in answer.content
            with pytest.raises(ToolException, match="there is no office 'Nowhere'"):
                await ask(tools, "almanac_working_days", office="Nowhere", month="2027-05")
            first.kill()
            first.wait()
            with pytest.raises(ConnectionError, match="'almanac'"):
                await ask(tools, "almanac_search", query="x")
            with pytest.raises(ConnectionError, match="cannot be reached"):
                await ask(tools, "almanac_search", query="x")
            with serving(port, ALMANAC):
                answer = await ask(tools, "almanac_search", query="东浦 春节")
                assert "2027-02-06" in answer.content


async def test_servers_that_do_not_start_are_all_named_with_their_last_words_and_no_secret(tmp_path, port):
    path = written(
        tmp_path,
        fine=started(SERVERS, "odd"),
        broken=started(SERVERS, "broken", LEDGER_KEY="s3cret-key"),
        absent={"command": "no-such-program"},
        deaf={"url": f"http://127.0.0.1:{port}/mcp?key=s3cret-key"},
    )
    with pytest.raises(SettingsError) as caught:
        async with mcp_tools(path):
            pass
    text = str(caught.value)
    assert "'broken'" in text
    assert "last words: cannot open the ledger with …" in text
    assert "MCP server 'absent': there is no such program" in text
    assert "MCP server 'deaf': it cannot be reached" in text
    assert "'fine'" not in text
    assert "s3cret" not in text


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("get.data,ok", r"tool 'get.data' of MCP server 'named': 'named_get.data' is not"),
        ("查价", "is not 1 to 64"),
        ("n" * 60, "is not 1 to 64"),
    ],
)
async def test_names_that_models_cannot_call_are_refused(tmp_path, names, why):
    with pytest.raises(ToolDefinitionError, match=why):
        async with mcp_tools(written(tmp_path, named=started(SERVERS, "named", TOOL_NAMES=names))):
            pass


async def test_two_tools_of_one_name_are_refused_naming_both_servers(tmp_path):
    path = written(
        tmp_path,
        a=started(SERVERS, "named", TOOL_NAMES="b_c"),
        a_b=started(SERVERS, "named", TOOL_NAMES="c"),
    )
    with pytest.raises(
        ToolDefinitionError, match=r"'a_b_c' is the name of two tools: 'b_c' of .* 'a' and 'c' of .* 'a_b'"
    ):
        async with mcp_tools(path):
            pass


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", r"is not JSON \(line 1\)"),
        ("[]", 'no object "mcpServers"'),
        ('{"mcpServers": []}', 'no object "mcpServers"'),
        ('{"mcpServers": {"a b": {}}}', "server name 'a b'"),
        ('{"mcpServers": {"a": {}}}', "server 'a': give either a command or a url"),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}', "either a command or a url"),
        ('{"mcpServers": {"a": {"type": "http", "command": "x"}}}', "type 'http' needs a url"),
        ('{"mcpServers": {"a": {"type": "carrier", "command": "x"}}}', "server 'a': type: "),
        ('{"mcpServers": {"a": {"url": "ftp://y"}}}', "must begin with http"),
        ('{"mcpServers": {"a": {"command": "x", "args": "s3cret"}}}', "server 'a': args: "),
        ('{"mcpServers": {"a": 7}}', "server 'a'"),
        (
            '{"mcpServers": {"a": {"url": "http://y", "headers": {"x": "${S3CRET_NAME}"}}}}',
            "S3CRET_NAME is not set",
        ),
    ],
)
async def test_a_wrong_file_is_told_without_its_values(tmp_path, content, why):
    path = tmp_path / ".mcp.json"
    path.write_text(content)
    with pytest.raises(SettingsError, match=why) as caught:
        async with mcp_tools(path):
            pass
    assert "s3cret" not in str(caught.value)


async def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"there is no file .*none\.json"):
        async with mcp_tools(tmp_path / "none.json"):
            pass


async def test_variables_are_filled_in_and_disabled_servers_left_out(tmp_path):
    odd = {
        "command": "${PYTHON}",
        "args": ["${SERVERS}", "${WHICH:-odd}"],
        "type": "stdio",
        "alwaysAllow": [],
    }
    path = written(tmp_path, odd=odd, off={"command": "no-such-program", "disabled": True})
    async with mcp_tools(path, environment={"PYTHON": sys.executable, "SERVERS": SERVERS}) as tools:
        assert all(tool.name.startswith("odd_") for tool in tools)


async def test_a_step_uses_a_server_and_cites_it(tmp_path):
    path = written(tmp_path, almanac=started(ALMANAC))
    async with mcp_tools(path) as tools:
        work = bench(
            step("a"),
            work={"a": [calls(tool_call("almanac_search", "c1", query="Brixholt")), cite]},
            tools=tools,
        )
        out = await work.run()
    assert of(out, "a").passed
    assert out["sources"][0].locator == 'almanac_search("query": "Brixholt")'
    assert "almanac_book_desks" not in work.worker.asked[0].tools


async def test_a_server_that_dies_costs_a_step_a_second_run_of_the_tool_and_no_more(odd, tmp_path):
    dying = tool_call("odd_dies_once", "c1", mark=str(tmp_path / "mark"))
    async with mcp_tools(odd) as tools:
        work = bench(step("a"), work={"a": [calls(dying), cite]}, tools=tools)
        out = await work.run()
    assert of(out, "a").passed
    assert of(out, "a").tool_calls == 2


async def test_booking_waits_for_a_person(tmp_path):
    path = written(tmp_path, almanac=started(ALMANAC))
    booking = tool_call("almanac_book_desks", "c1", office="Aldermere", day="2027-01-04", desks=3)
    async with mcp_tools(path) as tools:
        work = bench(step("a", tools=["almanac_book_desks"]), work={"a": [calls(booking), cite]}, tools=tools)
        out = await work.run()
        (asked,) = out["__interrupt__"]
        assert asked.value["permission"] == "write"
        out = await work.go_on(Command(resume={asked.id: {"decision": "approve"}}))
    assert of(out, "a").passed
    assert "3 desks booked in Aldermere" in work.worker.asked[-1].text


def cite(asked: Any) -> Any:
    last = next(message for message in reversed(asked.messages) if isinstance(message, ToolMessage))
    return finding("a", last.text[1:8])


async def test_the_example_starts_as_its_file_says(monkeypatch):
    folder = Path(ALMANAC).parent
    monkeypatch.chdir(folder.parents[1])
    async with mcp_tools(folder / ".mcp.json", environment={"PLANWEAVE_PYTHON": sys.executable}) as tools:
        answer = await ask(tools, "almanac_working_days", office="brixholt", month="2027-05")
    assert json.loads(answer.artifact[0]["text"]) == {
        "office": "Brixholt",
        "month": "2027-05",
        "closed": ["2027-05-06 Ascension"],
    }

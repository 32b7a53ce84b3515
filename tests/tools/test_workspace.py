from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import Command

from schemas.errors import SettingsError
from tests.running import bench, of
from tests.scripted import call as tool_call
from tests.scripted import calls, finding, step
from tools.registry import ToolRegistry
from tools.workspace import workspace_tools


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "notes.md").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (tmp_path / "outside.md").write_text("outside")
    (folder / "out.md").symlink_to(tmp_path / "outside.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "dangling").symlink_to(tmp_path / "new.md")
    (folder / "in").symlink_to(folder / "sub")
    return folder


def tool(root: Path, name: str, **environment: str) -> BaseTool:
    return next(tool for tool in workspace_tools(root, environment) if tool.name == name)


def call(root: Path, name: str, **arguments: Any) -> tuple[str, list[dict[str, Any]]]:
    message = tool(root, name).invoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
    return message.content, message.artifact


async def run(root: Path, *arguments: str, seconds: float = 30, **environment: str) -> str:
    args = {"arguments": list(arguments), "timeout_seconds": seconds}
    return (await tool(root, "run_command", **environment).ainvoke(args)).partition("\n")[2]


def python(root: Path, code: str, **more: Any) -> Any:
    return run(root, sys.executable, "-c", code, **more)


def test_every_tool_needs_approval_and_none_is_repeated(root):
    registry = ToolRegistry(workspace_tools(root))
    assert registry.unasked() == []
    assert [(s.name, s.permission, s.idempotent) for s in map(registry.spec, registry.names())] == [
        ("write_file", "write", False),
        ("edit_file", "write", False),
        ("run_command", "execute", False),
    ]


def test_a_folder_that_is_not_there_is_a_setting_to_mend(tmp_path):
    with pytest.raises(SettingsError, match="no folder"):
        workspace_tools(tmp_path / "none")


# Writing


def test_a_file_is_written_whole_with_folders_on_the_way(root):
    content, (source,) = call(root, "write_file", path="a/b/报告.md", text="价格\nthree\n")
    assert (root / "a/b/报告.md").read_text(encoding="utf-8") == "价格\nthree\n"
    assert (
        content
        == f"Written, a new file: 2 lines, 13 bytes.\n[{source['source_id']}] a/b/报告.md (a/b/报告.md#L1)"
    )
    assert (source["locator"], source["text"]) == ("a/b/报告.md#L1", "价格\nthree\n")


def test_writing_the_same_again_is_safe(root):
    first = call(root, "write_file", path="a.md", text="x")
    stamp = (root / "a.md").stat().st_mtime_ns
    again = call(root, "write_file", path="a.md", text="x")
    assert again[0].startswith("It held exactly this text already")
    assert again[1] == first[1]
    assert (root / "a.md").stat().st_mtime_ns == stamp
    assert call(root, "write_file", path="a.md", text="y")[0].startswith("Replaced")


def test_the_mode_stays_and_a_new_file_has_the_usual_one(root):
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o751)
    call(root, "write_file", path="run.sh", text="new")
    call(root, "edit_file", path="run.sh", old="new", new="newer")
    assert (script.read_text(), stat.S_IMODE(script.stat().st_mode)) == ("newer", 0o751)
    call(root, "write_file", path="fresh.txt", text="x")
    (root / "usual.txt").write_text("x")
    assert (root / "fresh.txt").stat().st_mode == (root / "usual.txt").stat().st_mode


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(root, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolException, match="cannot be written: No space left"):
        call(root, "write_file", path="notes.md", text="new")
    assert (root / "notes.md").read_text() == "one\ntwo\nthree\n"
    assert not [path for path in root.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/etc/x",
            "../x",
            "a/../../x",
            "up/x.md",
            "up/new/x.md",
            "out.md",
            "dangling",
            ".env",
            ".git/hooks/x",
            "a/.b",
        ),
        *("", ".", "sub", "notes.md/x", "C:\\x", "a\\b", "x\0y", "x\ny", "n" * 300, "none/../../x", "~/.x/y"),
    ],
)
def test_nothing_is_written_outside_or_hidden(root, path):
    before = sorted(root.parent.rglob("*"))
    for name, arguments in (("write_file", {"text": "x"}), ("edit_file", {"old": "outside", "new": "x"})):
        with pytest.raises(ToolException, match=r"path .* (is|cannot)"):
            call(root, name, path=path, **arguments)
    assert sorted(root.parent.rglob("*")) == before
    assert (root.parent / "outside.md").read_text() == "outside"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.text(max_size=40) | st.lists(st.sampled_from(["..", "up", "a", "/", ".", "in", "~"])).map("/".join))
def test_no_path_leads_out(root, path):
    try:
        call(root, "write_file", path=path, text="x")
    except ToolException:
        return
    assert {p.name for p in root.parent.iterdir()} == {"root", "outside.md"}


def test_a_link_inside_the_folder_is_followed(root):
    call(root, "write_file", path="in/x.md", text="x")
    assert (root / "sub/x.md").read_text() == "x"


def test_text_that_no_file_can_hold_is_made_clean_and_too_much_is_refused(root):
    call(root, "write_file", path="a.md", text="a\ud800b\0{}")
    assert (root / "a.md").read_text(encoding="utf-8") == "a\ufffdb{}"
    with pytest.raises(ToolException, match="longer than 1,000,000"):
        call(root, "write_file", path="a.md", text="x" * 1_000_001)


# Editing


def test_one_passage_is_replaced_and_shown_with_its_lines(root):
    content, (source,) = call(root, "edit_file", path="notes.md", old="two\n", new="2\n2½\n")
    assert (root / "notes.md").read_text(encoding="utf-8") == "one\n2\n2½\nthree\n"
    assert source["text"].startswith("one\n2\n2½\nthree")
    assert content.startswith("Edited.\n[")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("four", "4", "does not hold 'four'; read_file shows"),
        ("2", "two", "`new` stands there already"),
        ("e", "E", "3 times: quote more"),
        ("", "x", "`old` is empty"),
        ("two", "two", "the same"),
    ],
)
def test_a_passage_that_is_not_there_exactly_once_is_refused(root, old, new, why):
    with pytest.raises(ToolException, match=why):
        call(root, "edit_file", path="notes.md", old=old, new=new)
    assert (root / "notes.md").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("encoding", "line_end"),
    [("utf-8", "\r\n"), ("utf-8-sig", "\n"), ("gb18030", "\n"), ("utf-16", "\r\n"), ("utf-16-be-sig", "\n")],
)
def test_encoding_and_line_ends_stay(root, encoding, line_end):
    path = root / "a.txt"

    def encoded(text: str) -> bytes:
        text = text.replace("\n", line_end)
        return (
            b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-sig" else text.encode(encoding)
        )

    path.write_bytes(encoded("第一行\n价格是九十九元\n第三行\n"))
    call(root, "edit_file", path="a.txt", old="九十九元\n第三", new="八十八元\n\n第四")
    assert path.read_bytes() == encoded("第一行\n价格是八十八元\n\n第四行\n")


def test_a_binary_file_and_a_character_that_the_encoding_lacks_are_refused(root):
    (root / "a.bin").write_bytes(b"old\0")
    with pytest.raises(ToolException, match="no text that can be edited"):
        call(root, "edit_file", path="a.bin", old="old", new="new")
    (root / "latin.txt").write_bytes("café crème brûlée old".encode("cp1252"))
    with pytest.raises(ToolException, match="cp1252, which has no '价'"):
        call(root, "edit_file", path="latin.txt", old="old", new="价")


@pytest.mark.parametrize("attempt", range(50))
async def test_parallel_edits_of_one_file_never_lose_one_another(root, attempt):
    (root / "n.txt").write_text("".join(f"<{n}>\n" for n in range(8)))
    edit, other = tool(root, "edit_file"), tool(root, "edit_file")  # two runs in one process
    await asyncio.gather(
        *((edit, other)[n % 2].ainvoke({"path": "n.txt", "old": f"<{n}>", "new": f"[{n}]"}) for n in range(8))
    )
    assert (root / "n.txt").read_text() == "".join(f"[{n}]\n" for n in range(8))


# Running


async def test_a_program_runs_in_the_folder_and_its_exit_code_and_output_come_back(root):
    code = "import os,sys; print(os.getcwd()); print('错误', file=sys.stderr); sys.exit(3)"
    args = {"arguments": [sys.executable, "-c", code]}
    message = await tool(root, "run_command").ainvoke(
        {"type": "tool_call", "id": "1", "name": "run_command", "args": args}
    )
    (source,) = message.artifact
    assert source["text"].splitlines()[0] == "exit code 3"
    assert sorted(source["text"].splitlines()[1:]) == sorted([str(root), "错误"])
    assert message.content.startswith(f"[{source['source_id']}] Output of ")


async def test_no_shell_reads_the_arguments(root):
    text = "$(touch made); `touch made` && touch made | * ~ \"'"
    assert text in await python(root, f"import sys; print({text!r})")
    assert not (root / "made").exists()


async def test_a_program_sees_no_secret_and_no_input(root, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    given = {"OPENAI_API_KEY": "sk-secret", "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "MY_TOKEN": "t"}
    output = await python(
        root, "import os,sys; print(dict(os.environ)); print(repr(sys.stdin.read()))", **given
    )
    assert "sk-secret" not in output
    assert "MY_TOKEN" not in output
    assert f"'HOME': '{root}'" in output
    assert output.endswith("''")


async def test_long_output_keeps_its_beginning_and_end(root):
    output = await python(root, "print('begin'); print('x' * 1_000_000); print('end')")
    assert "begin" in output
    assert output.endswith("end")
    assert "bytes of output left out" in output
    assert len(output) < 210_000


async def test_a_program_that_takes_too_long_is_killed_with_all_it_started(root):
    code = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print('child', p.pid, flush=True); time.sleep(600)"
    )
    with pytest.raises(ToolException, match=r"stopped after 2 s; its last output: child \d+") as caught:
        await python(root, code, seconds=2)
    assert has_ended(int(str(caught.value).split()[-1]))


async def test_what_a_program_leaves_behind_ends_with_it(root):
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print(p.pid, flush=True)"
    )
    assert has_ended(int((await python(root, code)).splitlines()[-1]))


async def test_a_cancelled_program_is_killed(root):
    os.mkfifo(root / "ready")
    code = "import os,time; open('ready','w').write(str(os.getpid())); time.sleep(600)"
    task = asyncio.ensure_future(python(root, code))
    pid = int(await asyncio.to_thread((root / "ready").read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert has_ended(pid)


def has_ended(pid: int) -> bool:
    """Whether a process has ended, or does within ten seconds."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended, _, _ = select.select([handle], [], [], 10)
    os.close(handle)
    return bool(ended)


@pytest.mark.parametrize(
    ("arguments", "seconds", "why"),
    [
        ([], 60, "give a program"),
        ([" "], 60, "give a program"),
        (["no-such-program-here"], 60, "there is no program"),
        (["./notes.md"], 60, "cannot be started"),
        (["a\0b"], 60, "cannot be started"),
        (["ls", "\ud800"], 60, "cannot be started"),
        (["ls"], 0, "outside 0 to 600"),
        (["ls"], 1e9, "outside 0 to 600"),
        (["ls"], float("nan"), "outside 0 to 600"),
    ],
)
async def test_what_cannot_be_run_says_why(root, arguments, seconds, why):
    with pytest.raises(ToolException, match=why):
        await run(root, *arguments, seconds=seconds)


# Through the graph


def approvals(out: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the waiting questions by interrupt id."""
    return {item.id: item.value for item in out["__interrupt__"]}


def resumed(out: dict[str, Any], *allowed: str) -> Command[Any]:
    """Approve the calls whose path is named, or all."""
    chosen = {
        key: {"decision": "approve"}
        for key, question in approvals(out).items()
        if not allowed or question["arguments"].get("path") in allowed
    }
    return Command(resume=chosen)


def writing(*messages: AIMessage, root: Path, **fields: Any) -> Any:
    names = ["write_file", "edit_file", "run_command"]
    return bench(step("a", tools=names, **fields), work={"a": messages}, tools=workspace_tools(root))


async def test_a_finished_write_is_not_repeated_on_resume(root):
    one = tool_call("write_file", "c1", path="one.md", text="first")
    two = tool_call("write_file", "c2", path="two.md", text="second")
    work = writing(calls(one, two), lambda asked: cite_all(asked), root=root)
    out = await work.run()
    assert not (root / "one.md").exists()
    assert {q["arguments"]["path"] for q in approvals(out).values()} == {"one.md", "two.md"}

    out = await work.go_on(resumed(out, "one.md"))
    assert [q["arguments"]["path"] for q in approvals(out).values()] == ["two.md"]
    assert (root / "one.md").read_text() == "first"
    (root / "one.md").write_text("changed by hand meanwhile")

    out = await work.go_on(resumed(out))
    assert (root / "one.md").read_text() == "changed by hand meanwhile"
    assert (root / "two.md").read_text() == "second"
    assert of(out, "a").passed
    assert of(out, "a").tool_calls == 2


def cite_all(asked: Any) -> AIMessage:
    sources = [line[1:8] for line in asked.text.splitlines() if line.startswith("[") and line[8:9] == "]"]
    return finding("a", *sources)


async def test_edits_of_one_file_in_one_message_all_arrive(root):
    edits = [
        tool_call("edit_file", f"c{n}", path="notes.md", old=old, new=old.upper())
        for n, old in enumerate(["one", "two", "three"])
    ]
    work = writing(calls(*edits), lambda asked: cite_all(asked), root=root)
    out = await work.run()
    out = await work.go_on(resumed(out))
    assert (root / "notes.md").read_text() == "ONE\nTWO\nTHREE\n"
    assert of(out, "a").tool_calls == 3


async def test_programs_of_one_message_run_one_at_a_time(root):
    code = (
        "import os; f=os.open('lock', os.O_CREAT|os.O_EXCL); open('log','a').write('in '); os.unlink('lock')"
    )
    runs = [
        tool_call("run_command", f"c{n}", arguments=[sys.executable, "-c", f"{code} #{n}"]) for n in range(4)
    ]
    work = writing(calls(*runs), lambda asked: cite_all(asked), root=root)
    out = await work.go_on(resumed(await work.run()))
    assert (root / "log").read_text() == "in " * 4
    assert "exit code 1" not in str(out)


async def test_a_call_that_a_person_rejects_changes_nothing(root):
    work = writing(
        calls(tool_call("write_file", "c1", path="notes.md", text="gone")), finding("a", met=False), root=root
    )
    out = await work.run()
    (key,) = approvals(out)
    out = await work.go_on(Command(resume={key: {"decision": "reject", "reason": "not this file"}}))
    assert (root / "notes.md").read_text() == "one\ntwo\nthree\n"
    assert of(out, "a").tool_calls == 0
    assert "not this file" in work.worker.asked[-1].text

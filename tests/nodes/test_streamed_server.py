"""Streamed planning with OpenAI's own client: a server on 127.0.0.1 that holds its stream until a step is at work."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from agents.endpoints import forget
from graph import build_graph
from tests.gates import Gates
from tests.running import config, context
from tests.scripted import ScriptedModel, models, review, step
from tests.streaming import works

FIRST = json.dumps({"goal": "g", "questions": [], "steps": [step("a")]})[:-2]
REST = ", " + json.dumps(step("b", "a")) + "]}"
PLAN = FIRST + REST


@pytest.fixture(autouse=True)
def _nothing_is_known_of_any_server() -> Iterator[None]:
    forget()
    yield
    forget()


class Server:
    """Streams a plan in the way it is asked; `go` is waited for after the first step. `requests` are the bodies."""

    def __init__(self, refuses: str = "") -> None:
        self.go, self.requests, self.refuses = threading.Event(), list[dict[str, Any]](), refuses

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        self.requests.append(body)
        if self.refuses and body.get(self.refuses):
            return send(handler, 400, {"error": {"message": f"{self.refuses} is not supported here"}})
        if not body.get("stream") or self.refuses == "silently":
            return send(handler, 200, self.whole(body))
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        for number, text in enumerate((FIRST[:30], FIRST[30:], REST)):
            if number == 2:
                self.go.wait(10)
            self.event(handler, [{"index": 0, "delta": delta(body, text, number), "finish_reason": None}])
        self.event(handler, [{"index": 0, "delta": {}, "finish_reason": "stop"}])
        if (body.get("stream_options") or {}).get("include_usage"):
            self.event(handler, [], {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100})
        handler.wfile.write(b"data: [DONE]\n\n")
        return None

    def event(self, handler: BaseHTTPRequestHandler, choices: list[Any], usage: Any = None) -> None:
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
        handler.wfile.write(f"data: {json.dumps({**chunk, 'usage': usage})}\n\n".encode())
        handler.wfile.flush()

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        message = delta(body, PLAN, 0)
        usage = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": choices,
            "usage": usage,
        }


def delta(body: dict[str, Any], text: str, number: int) -> dict[str, Any]:
    role: dict[str, Any] = {} if number else {"role": "assistant"}
    if not body.get("tools"):
        return role | {"content": text}
    function = {"arguments": text} | ({} if number else {"name": "Plan"})
    call = {"index": 0, "function": function} | ({} if number else {"id": "p1", "type": "function"})
    return role | {"tool_calls": [call]}


def send(handler: BaseHTTPRequestHandler, status: int, body: Any) -> None:
    data = json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


@contextmanager
def serving(server: Server) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.answer(self, json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        server.go.set()
        http.shutdown()
        http.server_close()


async def run(server: Server, profile: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    gates = Gates("a", "b")
    with serving(server) as url:
        planner = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"), max_retries=0)
        planner.profile = profile or {}
        roles = models(
            planner, ScriptedModel(by_step=works("a", "b")), ScriptedModel(always=review()), ScriptedModel()
        )
        graph = build_graph(roles, [gates.tool()], checkpointer=InMemorySaver())
        kinds: list[str] = []
        task: Any = {"objective": "find it"}
        stream = graph.astream(task, config(), context=context(stream_plan=True), stream_mode="custom")
        async with asyncio.timeout(30):
            async for event in stream:
                kinds.append(f"{event['type']} {event.get('step_id', '')}".strip())
                if event["type"] == "tool_started":
                    server.go.set()
        return (await graph.aget_state(config())).values, kinds


@pytest.mark.parametrize(
    "profile", [{}, {"structured_output": True, "tool_calling": True}, {"tool_calling": False}]
)
async def test_a_step_starts_while_the_server_still_streams(profile: dict[str, Any]) -> None:
    server = Server()
    out, kinds = await run(server, profile)
    assert kinds.index("tool_started a") < kinds.index("plan_ready")
    assert out["status"] == "completed"
    assert len(server.requests) == 1
    assert out["usage"].by_role["planner"]["m"].output_tokens == 30


async def test_a_server_that_refuses_to_stream_is_asked_for_the_whole_plan() -> None:
    server = Server(refuses="stream")
    out, kinds = await run(server)
    assert kinds.index("plan_ready") < kinds.index("step_started a")
    assert out["status"] == "completed"
    assert out["usage"].by_role["planner"]["m"].output_tokens == 30


async def test_a_server_that_does_not_know_how_to_report_usage_is_asked_for_the_whole_plan() -> None:
    out, _ = await run(Server(refuses="stream_options"))
    assert out["status"] == "completed"


async def test_a_server_that_answers_whole_though_asked_to_stream_is_asked_for_the_whole_plan() -> None:
    out, kinds = await run(Server(refuses="silently"))
    assert kinds.index("plan_ready") < kinds.index("step_started a")
    assert out["status"] == "completed"

"""A server on 127.0.0.1 that speaks the OpenAI protocol with the quirks of real ones.

It plays all roles of a run: it reads the brief in the request and answers as a good model would, in the way that it was
asked. A quirk stands between: it may refuse the request, break the connection, or bend the answer.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass
class Reply:
    """What goes back: a status with a body and headers, or an end without an answer."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    end: str = ""  # "reset", "hang", "half": how the connection ends early


@dataclass
class Request:
    """One request: `number` counts those of its role, from 0."""

    body: Body
    role: str
    number: int

    @property
    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]

    @property
    def choice(self) -> Any:
        return self.body.get("tool_choice")

    @property
    def forced(self) -> bool:
        return self.choice not in (None, "auto", "none")

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def brief(self) -> Body:
        for message in self.body["messages"]:
            if message["role"] == "user":
                with contextlib.suppress(ValueError, TypeError):
                    found = json.loads(message["content"])
                    if isinstance(found, dict) and "role" in found:
                        return found
        return {"role": "other"}


Quirk = Callable[[Request, Body], "Reply | Body | None"]


class QuirkServer:
    """Serves good answers bent by a quirk: called with the request and the good message, it returns another message,
    a Reply, or None for the good message as it is.
    """

    def __init__(self, quirk: Quirk | None = None) -> None:
        self.quirk = quirk or (lambda request, message: None)
        self.requests: list[Request] = []
        self.at_once = self.peak = 0
        self.patience: list[float] = []
        self._guard = threading.Lock()
        self._free = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def start(self) -> None:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self) -> None:
        self._free.set()
        self._server.shutdown()
        self._server.server_close()

    def of(self, role: str) -> list[Request]:
        return [request for request in self.requests if request.role == role]

    def counts(self) -> dict[str, int]:
        return {role: len(self.of(role)) for role in dict.fromkeys(r.role for r in self.requests)}

    def reply(self, body: Body) -> tuple[Request, Reply]:
        request = Request(body, "", 0)
        request.role = request.brief["role"]
        with self._guard:
            request.number = len(self.of(request.role))
            self.requests.append(request)
        message = good_answer(request)
        bent = self.quirk(request, json.loads(json.dumps(message)))
        if isinstance(bent, Reply):
            return request, bent
        return request, Reply(body=bent if bent and "choices" in bent else completion(bent or message))

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server._guard:
                    # The seconds that OpenAI's client says it will wait.
                    server.patience.append(float(self.headers.get("x-stainless-read-timeout", "nan")))
                    server.at_once += 1
                    server.peak = max(server.peak, server.at_once)
                try:
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        self._answer(*server.reply(body))
                finally:
                    with server._guard:
                        server.at_once -= 1

            def _answer(self, request: Request, reply: Reply) -> None:
                if reply.end == "hang":
                    server._free.wait(60)
                if reply.end in ("hang", "reset"):
                    # Linger 0: the client sees a reset, not an end.
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    return self.connection.close()
                if request.streams and reply.status == 200 and isinstance(reply.body, dict):
                    return self._stream(reply)
                data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if reply.end == "half" else data)
                return None

            def _stream(self, reply: Reply) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                events = list(chunks(reply.body))
                for event in events[: len(events) // 2] if reply.end == "half" else [*events, "[DONE]"]:
                    self.wfile.write(f"data: {event}\n\n".encode())

            def log_message(self, *args: object) -> None:
                pass

        return Handler


@contextmanager
def quirky(quirk: Quirk | None = None) -> Iterator[QuirkServer]:
    server = QuirkServer(quirk)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def good_answer(request: Request) -> Body:
    """Return the message of a good model, in the way it was asked: a call where tools are offered, else JSON in text."""
    brief = request.brief
    match brief["role"]:
        case "planner" | "replanner":
            return answer_with(
                request, "Plan", {"goal": "the goal", "steps": [a_step("a"), a_step("b", "a")]}
            )
        case "worker":
            return work(request, brief)
        case "reviewer":
            return answer_with(request, "Review", {"approved": True, "gaps": []})
        case "writer":
            return {"content": "It is known [1]."}
        case _:
            return {"content": "ok"}


def work(request: Request, brief: Body) -> Body:
    step = brief["step"]
    results = [m for m in request.body["messages"] if m["role"] == "tool" and '"s1"' in str(m["content"])]
    if "look" in request.tools and not results:
        return call("look", {"query": step["id"]})
    criteria = [{"criterion": text, "met": True, "reason": "seen"} for text in step["success_criteria"]]
    carried = [i for d in brief["dependencies"] for i in d["source_ids"]]
    finding = {
        "summary": f"{step['id']} found",
        "source_ids": ["s1"] if results else carried,
        "criteria": criteria,
    }
    return answer_with(request, "Finding", finding)


def answer_with(request: Request, name: str, value: Body) -> Body:
    return call(name, value) if name in request.tools else {"content": json.dumps(value)}


def a_step(step_id: str, *needs: str) -> Body:
    step = {
        "id": step_id,
        "task": f"do {step_id}",
        "success_criteria": [f"{step_id} is known"],
        "depends_on": list(needs),
    }
    return step | ({"tools": []} if needs else {})


def call(name: str, arguments: Any, call_id: str | None = "call_1") -> Body:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "tool_calls": [{"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}]
    }


def completion(message: Body) -> Body:
    """Return a chat completion of one message; `finish_reason` and `usage` may stand beside its content."""
    message = {"role": "assistant", "content": None} | message
    reason = message.pop("finish_reason", "tool_calls" if message.get("tool_calls") else "stop")
    usage = message.pop("usage", {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12})
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [choice],
        "usage": usage,
    }


def chunks(body: Body) -> Iterator[str]:
    """Yield a completion as the events of a stream, its text and its arguments in pieces of a few characters."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake"}

    def event(delta: Body, reason: str | None = None) -> str:
        return json.dumps(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    message, reason = body["choices"][0]["message"], body["choices"][0]["finish_reason"]
    yield event({"role": "assistant", "content": ""})
    for piece in pieces(message.get("content") or ""):
        yield event({"content": piece})
    for index, tool in enumerate(message.get("tool_calls") or []):
        head = {
            "index": index,
            "id": tool["id"],
            "type": "function",
            "function": {"name": tool["function"]["name"], "arguments": ""},
        }
        yield event({"tool_calls": [head]})
        for piece in pieces(tool["function"]["arguments"]):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, reason)


def pieces(text: str) -> list[str]:
    return [text[i : i + 8] for i in range(0, len(text), 8)]


def error(status: int, message: str, **headers: str) -> Reply:
    return Reply(status, {"error": {"message": message, "type": "invalid_request_error"}}, headers)

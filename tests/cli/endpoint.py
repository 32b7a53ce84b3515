"""A model endpoint on 127.0.0.1 that speaks the OpenAI protocol: answers by role, and holds an answer back on demand."""

import contextlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Brief = dict[str, Any]
Reply = str | tuple[str, dict[str, Any]]


class Endpoint:
    """Replies are text, or (tool name, arguments). `requests` holds the briefs in the order of arrival, with the number
    of answers that the conversation holds before as `turns`.

    A step or role named in `held` is not answered until `release()`; `reached` tells that such a request has come.
    """

    def __init__(self, plan: dict[str, Any], *, held: frozenset[str] = frozenset()) -> None:
        self.plans = [plan]
        self.held = held
        self.requests: list[Brief] = []
        self.reached, self._free = threading.Event(), threading.Event()
        self.finding: Callable[[Brief], Reply] = _finding
        self.answer = "The answer."
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AGENT_MODEL": "openai:scripted",
            "OPENAI_API_KEY": "sk-test-0000",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1",
        }

    def release(self) -> None:
        self._free.set()

    def steps_asked(self) -> list[str]:
        return [brief["step"]["id"] for brief in self.requests if brief["role"] == "worker"]

    def reply(self, brief: Brief) -> Reply:
        if (brief["step"]["id"] if brief["role"] == "worker" else brief["role"]) in self.held:
            self.reached.set()
            self._free.wait(60)
        match brief["role"]:
            case "planner" | "replanner":
                return json.dumps(self.plans[min(len(self.plans) - 1, self._asked("planner") - 1)])
            case "worker":
                return self.finding(brief)
            case "reviewer":
                return json.dumps({"approved": True, "gaps": []})
            case _:
                return self.answer

    def _asked(self, role: str) -> int:
        return sum(brief["role"] == role for brief in self.requests)

    def _handler(endpoint: "Endpoint") -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                brief = _brief(body["messages"])
                endpoint.requests.append(brief)
                answer = json.dumps(_completion(endpoint.reply(brief)))
                with contextlib.suppress(BrokenPipeError):  # the caller has been stopped
                    self._send(answer.encode())

            def _send(self, data: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        return Handler


def _brief(messages: list[dict[str, Any]]) -> Brief:
    for message in messages:
        if message["role"] == "user":
            try:
                turns = sum(other["role"] == "assistant" for other in messages)
                return {**json.loads(message["content"]), "turns": turns}
            except ValueError:
                return {"role": "other"}
    return {"role": "other"}


def _finding(brief: Brief) -> Reply:
    return finding_of(brief)


def finding_of(brief: Brief, *sources: str) -> Reply:
    """Return a finding that meets every criterion and cites these sources."""
    step = brief["step"]
    criteria = [{"criterion": text, "met": True, "reason": "seen"} for text in step["success_criteria"]]
    summary = f"done: {step['id']}"
    return "Finding", {"summary": summary, "source_ids": [*sources], "criteria": criteria, "missing": []}


def _completion(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if not isinstance(reply, str):
        name, arguments = reply
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        message["tool_calls"] = [call]
    reason = "stop" if isinstance(reply, str) else "tool_calls"
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def step(step_id: str, *needs: str, **more: Any) -> dict[str, Any]:
    """Return a step that reasons, so that it needs no tool."""
    base = {"id": step_id, "task": f"Do {step_id}", "success_criteria": [f"{step_id} is done"], "tools": []}
    return base | {"depends_on": list(needs)} | more

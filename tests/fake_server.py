"""SRV: a server on 127.0.0.1 that speaks the OpenAI protocol and answers whatever it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeServer:
    """Answers from a list; the last answer is given again and again. `requests` are the bodies, in order.

    An answer is a message (a mapping with role or content), a whole body (a mapping with choices), or (status, body).
    """

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_answer(self) -> tuple[int, Any]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, tuple):
            return answer
        return 200, answer if "choices" in answer else body(answer)

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                server.requests.append(json.loads(self.rfile.read(length)))
                status, answer = server.next_answer()
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        return Handler


@contextmanager
def serving(*answers: Any) -> Iterator[FakeServer]:
    server = FakeServer(answers)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def body(message: dict[str, Any]) -> dict[str, Any]:
    """Return a chat completion of one message; `finish_reason` may stand beside its content."""
    message = {"role": "assistant", "content": None} | message
    reason = message.pop("finish_reason", "tool_calls" if message.get("tool_calls") else "stop")
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }


def tool_call(name: str, arguments: Any) -> dict[str, Any]:
    """Return a message that calls a tool; arguments that are text are sent as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": text}}]
    }

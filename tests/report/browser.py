"""A headless Chromium, driven over a pipe with the DevTools protocol: no port, no other package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 30
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]


def program() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One page of a running browser. `console` has what was logged and thrown since the page was loaded."""

    def __init__(self, sending: int, receiving: int) -> None:
        self._sending, self._receiving = sending, receiving
        self._buffer = b""
        self._id = 0
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._id += 1
        message: dict[str, Any] = {"id": self._id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._sending, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._id:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._events.append(answer)

    def _next(self) -> dict[str, Any]:
        ends = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            readable, _, _ = select.select([self._receiving], [], [], max(0, ends - time.monotonic()))
            assert readable, f"the browser said nothing for {SECONDS} s"
            piece = os.read(self._receiving, 1 << 16)
            assert piece, "the browser has ended"
            self._buffer += piece
        whole, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(whole)

    def open(self, page: Path, *, width: int, scheme: str = "light", media: str = "") -> None:
        """Load a file at a width in CSS pixels, in a colour scheme, and wait until it has loaded."""
        phone = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=phone
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=media, features=[feature])
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    @property
    def console(self) -> list[dict[str, Any]]:
        names = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self._events if event.get("method") in names]

    @property
    def requested(self) -> list[str]:
        """URLs that the page asked for, itself included."""
        asked = [e["params"] for e in self._events if e.get("method") == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in asked]

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own in `folder`; it is stopped at the end, whatever happens."""
    chromium = program()
    assert chromium is not None
    theirs_in, ours_out = _pipe()
    ours_in, theirs_out = _pipe()
    # Chromium reads commands from descriptor 3 and answers on 4.
    shell = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash"]
    process = subprocess.Popen(
        [*shell, chromium, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        # Its own session: renderers and all go with it.
        os.killpg(process.pid, 9)
        process.wait()


def _pipe() -> tuple[int, int]:
    # Above 9, so that neither is 3 or 4 by chance.
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]

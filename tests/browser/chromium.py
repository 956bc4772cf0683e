"""A headless Chromium, driven through the DevTools protocol over a pipe: nothing but Python's own library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
PATIENCE = 60.0
"""Seconds to wait for an answer: far more than a busy machine needs."""


class Chromium:
    """A browser. Messages are JSON, each with a zero byte behind it, on file descriptors 3 (to it) and 4 (from it)."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.mkdtemp(prefix="m3impute-browser-")
        to_read, self.write_end = os.pipe()
        self.read_end, from_write = os.pipe()
        # The shell puts the ends of the pipes where the browser looks for them.
        command = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", command, program, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.buffer = b""
        self.number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Asks for something and waits for the answer; events that come before it are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        wanted = self.number
        while True:
            answer = self._next(time.monotonic() + PATIENCE)
            if answer is None:
                raise TimeoutError(method)
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event: str, session: str) -> None:
        """Waits until an event has come."""
        deadline = time.monotonic() + PATIENCE
        while not any(e.get("method") == event and e.get("sessionId") == session for e in self.events):
            answer = self._next(deadline)
            if answer is None:
                raise TimeoutError(event)
            self.events.append(answer)

    def _next(self, deadline: float) -> dict[str, Any] | None:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise RuntimeError("the browser went away")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, file: Path, *, width: int = 1280, height: int = 900, theme: str = "light", scripts: bool = True) -> Page:
        """A page of that file, in a window of that size."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"]:
            page.call(f"{domain}.enable")
        # A narrow window is that of a phone, which lays out by what the page says of its width.
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        page.call("Page.navigate", url=file.resolve().as_uri())
        self.wait_for("Page.loadEventFired", session)
        return page

    def close(self) -> None:
        """Ends the browser that was started here, and removes its profile."""
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            self.process.kill()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """An open page."""

    def __init__(self, browser: Chromium, target: str, session: str) -> None:
        self.browser, self.target, self.session = browser, target, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key, as a person would."""
        codes = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
        code, text = codes[key]
        of_key = {"key": key, "code": key if key != " " else "Space", "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **of_key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **of_key)

    def own(self, method: str) -> list[dict[str, Any]]:
        """What this page reported of one kind."""
        self.run("0")  # what was reported before is here once this is answered
        return [
            e["params"] for e in self.browser.events if e.get("method") == method and e.get("sessionId") == self.session
        ]

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions."""
        said = [f"exception: {e['exceptionDetails']}" for e in self.own("Runtime.exceptionThrown")]
        said += [f"console: {e['type']} {e['args']}" for e in self.own("Runtime.consoleAPICalled")]
        return said + [f"log: {e['entry']}" for e in self.own("Log.entryAdded")]

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        return [e["request"]["url"] for e in self.own("Network.requestWillBeSent")]

    def screenshot(self, to: Path, *, whole: bool = True) -> None:
        """The page as a picture."""
        params: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params |= {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        to.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **params)["data"]))

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)

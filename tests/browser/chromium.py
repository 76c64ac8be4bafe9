"""A real browser, driven by its own protocol over two pipes: no driver, no web socket, no further package."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)
PATIENCE = 120.0
"""Seconds to wait for any one answer."""


def find_chromium() -> str | None:
    """The browser to test with: `$AUGURY_CHROMIUM` ("none" for none), or the first of the usual names.

    One that runs from a snap is confined: it may read neither temporary folders nor these pipes.
    """
    told = os.environ.get("AUGURY_CHROMIUM")
    if told:
        return None if told == "none" else told
    found = filter(None, map(shutil.which, NAMES))
    return next((path for path in found if "/snap/" not in os.path.realpath(path)), None)


LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""The browser reads its orders from descriptor 3 and answers on 4."""


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are neither 3 nor 4."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """One browser process; each `open` is a fresh tab."""

    def __init__(self, binary: str) -> None:
        self.home = tempfile.TemporaryDirectory(prefix="augury-chromium-")
        (to_browser, self.write), (self.read, from_browser) = _pipe(), _pipe()
        words = [binary, *FLAGS, f"--user-data-dir={self.home.name}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(to_browser), str(from_browser), *words],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.events = 0, b"", []

    def call(self, method: str, session: str | None = None, **params) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> dict:
        while True:
            for event in self.events:
                if event.get("method") == method and event.get("sessionId") == session:
                    return event
            self.events.append(self._next())

    def _next(self) -> dict:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self.read, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False, timed: bool = False) -> "Tab":
        return Tab(self, path, width, height, dark, timed)

    def close(self) -> None:
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
        self.home.cleanup()


class Tab:
    """A page in the browser, with all that it said and asked for."""

    def __init__(self, browser: Browser, path: Path, width: int, height: int, dark: bool, timed: bool) -> None:
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        if timed:
            self.call("Performance.enable", timeDomain="threadTicks")
        began = time.monotonic()
        self.call("Page.navigate", url=path.resolve().as_uri())
        browser.wait_for("Page.loadEventFired", self.session)
        self.seconds = time.monotonic() - began

    def call(self, method: str, **params) -> dict:
        return self.browser.call(method, self.session, **params)

    def run(self, script: str):
        """The value of a JavaScript expression, awaited where it is a promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"]["exception"].get("description", script))
        return result["result"].get("value")

    def press(self, key: str, times: int = 1) -> None:
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9}
        what = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, **what)

    def picture(self, selector: str | None = None) -> bytes:
        """A screenshot of the whole page, or of one element, as PNG."""
        where = {"captureBeyondViewport": True}
        if selector is not None:
            box = self.run(
                f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                "return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height, scale: 1}; })()"
            )
            where["clip"] = box
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **where)["data"])

    def _seen(self, *methods: str) -> list[dict]:
        self.run("0")  # whatever was on its way has arrived now
        return [
            event["params"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event.get("method") in methods
        ]

    @property
    def complaints(self) -> list[dict]:
        """Console messages, uncaught errors, and what the browser logged by itself."""
        return self._seen("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")

    @property
    def requests(self) -> list[str]:
        """Everything that the page asked for."""
        return [seen["request"]["url"] for seen in self._seen("Network.requestWillBeSent")]

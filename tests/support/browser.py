"""Pages in headless Chromium, which is driven by its DevTools protocol: JSON through two pipes."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")

PATIENCE_S: Final = 120
"""How long the browser may be silent, on a machine that does other things too. [s]"""

KEYS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "ArrowDown": (40, ""), "ArrowUp": (38, "")}
)
"""The keys that tests press, with their codes and what they write."""

_ONE: Final = ("--renderer-process-limit=1", "--disable-site-isolation-trials")
"""Options for one process that draws all pages, which come from the tests: it takes a tenth of the CPU less."""

_READS: Final = 3
_WRITES: Final = 4
"""The file descriptors that Chromium reads commands from, and writes answers to."""


class Box(NamedTuple):
    """Where something is on the shown part of a page. [CSS pixels]"""

    left: float
    top: float
    width: float
    height: float

    def at(self, across: float, down: float) -> tuple[float, float]:
        """Return the point at these parts of the width and the height, such as 0.5 for the middle."""
        return self.left + across * self.width, self.top + down * self.height


@contextmanager
def chromium(home: Path) -> Iterator[Browser]:
    """Yield a browser that keeps its files in *home*; without Chromium the test is skipped."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        reason = "needs Chromium: apt-get install chromium"
        if "chromium" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    browser = Browser(program, home)
    try:
        yield browser
    finally:
        browser.close()


class Browser:
    """Headless Chromium."""

    def __init__(self, program: str, home: Path) -> None:
        """Start *program* with its files in *home*."""
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", *_ONE)
        commands, self._out = _pipe()
        self._in, answers = _pipe()
        nowhere = ((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3))
        ends = ((os.POSIX_SPAWN_DUP2, commands, _READS), (os.POSIX_SPAWN_DUP2, answers, _WRITES))
        arguments = [program, *options, f"--user-data-dir={home}"]
        self._process = os.posix_spawn(program, arguments, os.environ, file_actions=[*nowhere, *ends])
        os.close(commands)
        os.close(answers)
        self._received = b""
        self._asked = 0
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._tab = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def open(self, page: Path, fragment: str = "", *, width: int = 1200, is_dark: bool = False) -> Page:
        """
        Open a page in place of the one before, and return it when it is loaded.

        Args:
            page: The file.
            fragment: What follows ``#`` in the address.
            width: The width of the window. [CSS pixels]
            is_dark: Whether the system asks for dark colors.
        """
        opened = Page(self, self._tab)
        opened.ask("Page.navigate", url="about:blank")  # else another fragment of the same page would not load it again
        opened.point(0, 0)
        opened.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        opened.ask("Emulation.setEmulatedMedia", features=[scheme])
        opened.ask("Page.enable")
        opened.ask("Page.navigate", url=f"{page.as_uri()}#{fragment}")
        opened.run("document.readyState === 'complete' || new Promise((done) => addEventListener('load', done))")
        return opened

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the answer of the browser, or of a page of it."""
        self._asked += 1
        of_page = {} if session is None else {"sessionId": session}
        request = {"id": self._asked, "method": method, "params": parameters, **of_page}
        os.write(self._out, json.dumps(request).encode() + b"\0")
        while (message := self._message()).get("id") != self._asked:
            pass  # what has happened meanwhile
        assert "error" not in message, (method, message["error"])
        return message["result"]

    def close(self) -> None:
        """Close it."""
        try:
            self.ask("Browser.close")
        finally:
            os.close(self._out)
            os.close(self._in)
            os.waitpid(self._process, 0)

    def _message(self) -> Any:  # noqa: ANN401 - JSON
        while b"\0" not in self._received:
            assert select.select([self._in], [], [], PATIENCE_S)[0], "Chromium is silent"
            read = os.read(self._in, 1 << 20)
            assert read, "Chromium has ended"
            self._received += read
        message, self._received = self._received.split(b"\0", 1)
        return json.loads(message)


class Page:
    """A page of a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        """Be the page of a session."""
        self._browser, self._session = browser, session

    def ask(self, method: str, **parameters: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the answer of the page."""
        return self._browser.ask(method, self._session, **parameters)

    def run(self, script: str) -> Any:  # noqa: ANN401 - JSON
        """Return the value of an expression, or of its promise."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the text of an element as it is shown."""
        shown: str = self.run(f"document.querySelector({json.dumps(selector)}).innerText")
        return shown

    def box(self, selector: str) -> Box:
        """Return where an element is, once it was scrolled into view."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        rect = self.run(f"{found}.getBoundingClientRect().toJSON()")
        return Box(rect["left"], rect["top"], rect["width"], rect["height"])

    def press(self, *keys: str) -> None:
        """Press keys one after the other; those that are not in KEYS are characters."""
        for key in keys:
            code, text = KEYS.get(key, (ord(key.upper()[0]), key))
            of_key = {"key": key, "windowsVirtualKeyCode": code}
            self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **of_key)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **of_key)

    def point(self, x: float, y: float) -> None:
        """Move the mouse to a point."""
        self._mouse("mouseMoved", x, y)

    def click(self, x: float, y: float) -> None:
        """Click at a point."""
        self.drag((x, y), (x, y))

    def drag(self, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the button at a point, and let go of it at another one."""
        self.point(*begin)
        self._mouse("mousePressed", *begin, button="left", clickCount=1)
        if begin != end:
            middle = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
            for at in (middle, end):
                self._mouse("mouseMoved", *at, button="left", buttons=1)
        self._mouse("mouseReleased", *end, button="left", clickCount=1)

    def _mouse(self, type_: str, x: float, y: float, **parameters: Any) -> None:  # noqa: ANN401 - as above
        self.ask("Input.dispatchMouseEvent", type=type_, x=x, y=y, **parameters)


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe, which are none of the file descriptors that Chromium uses."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]

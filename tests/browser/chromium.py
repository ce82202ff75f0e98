"""A headless Chromium, driven by its DevTools protocol: what a reader of the page has before the eyes and under the fingers."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_WAIT_S: Final = 60.0
_FAULTS: Final = frozenset({"Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"})

Json = dict[str, Any]


def installed() -> str:
    """The program that CHROMIUM names, or one on the PATH; without any the test is skipped."""
    found = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *_NAMES))), None)
    if found is None:
        pytest.skip(
            "there is no Chromium: none in CHROMIUM, and none of " + ", ".join(_NAMES) + " on the PATH"
        )
    return found


class Tab:
    """One tab. What it has logged, thrown, popped up and asked servers for since it was last opened is kept."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[Json] = []

    async def call(self, method: str, **parameters: Any) -> Json:
        """One command of the protocol, and its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            said = await self._said()
            if said.get("id") == self._number:
                assert "error" not in said, (method, said["error"])
                result: Json = said["result"]
                return result
            self.events.append(said)

    async def _said(self) -> Json:
        async with asyncio.timeout(_WAIT_S):
            said: Json = json.loads(await self._socket.receive_str())
        return said

    async def until(self, method: str) -> None:
        """Returns when such an event was seen since the last opening."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(await self._said())

    async def open(self, url: str, *, width: int = 1280, dark: bool = False) -> None:
        """Returns when the page is loaded."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        await self.call("Page.navigate", url=url)
        await self.until("Page.loadEventFired")

    async def value(self, expression: str) -> Any:
        """What an expression comes to in the page; it may be a promise."""
        told = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def press(self, key: str, code: int, text: str = "") -> None:
        """One key, down and up."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            await self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more
            )

    def faults(self) -> list[Json]:
        """What went wrong in the page: exceptions, whatever the browser logs of it, dialogs, and what scripts wrote on the console."""
        return [
            event for event in self.events if event.get("method") in _FAULTS | {"Runtime.consoleAPICalled"}
        ]

    def asked(self) -> list[str]:
        """The addresses of all that it has loaded."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]


@asynccontextmanager
async def tab(folder: Path) -> AsyncIterator[Tab]:
    """A tab of a browser of its own, which keeps its profile in this folder."""
    # Nobody but this user reaches its port, and as root it would not start with its sandbox.
    options = ["--headless", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    process = await asyncio.create_subprocess_exec(
        installed(),
        *options,
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        base = await _address(process)
        async with aiohttp.ClientSession() as session, session.get(f"{base}/json") as listed:
            (found,) = [one for one in await listed.json() if one["type"] == "page"]
            async with session.ws_connect(found["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                opened = Tab(socket)
                for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
                    await opened.call(f"{domain}.enable")
                yield opened
    finally:
        process.terminate()
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(_WAIT_S):
        while line := await process.stderr.readline():
            found = re.search(rb"ws://(127\.0\.0\.1:\d+)/", line)
            if found:
                return f"http://{found[1].decode()}"
    raise AssertionError("Chromium ended before it listened")


def contrast(first: str, second: str) -> float:
    """Of two colours as computed styles have them (`rgb(r, g, b)`), by WCAG 2."""
    light, dark = sorted(map(_luminance, (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    linear: Callable[[float], float] = lambda part: (  # noqa: E731
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
    )
    red, green, blue = (linear(int(part) / 255) for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

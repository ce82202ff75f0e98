"""A stand-in for the Volcano scheduler, as far as Queue status goes: it replaces the whole of it, over and over."""

import json
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError

import yaml

from hack.controlplane import ControlPlane, wait_for

PERIOD_S = 0.2
_TIMEOUT_S = 10.0
# No field manager is named, so the API server takes the first part of this; webhooks do not see it.
_USER_AGENT = "vc-scheduler/v1.15.0 (linux/amd64) test"


class StatusWriter:
    """PUTs the status of a queue every `PERIOD_S` with `allocated` for its map; a conflict waits for the next turn.

    Like the real one it reads the queue before, writes without looking at what else the map holds, and passes no field
    manager. The API server stores nothing when the outcome is what was stored before.
    """

    def __init__(self, plane: ControlPlane, path: str) -> None:
        self._url = plane.url + path
        tls = ssl.create_default_context(cafile=plane.ca_file)
        # No proxy from the environment: the API server is on loopback.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )
        user = yaml.safe_load(plane.admin_kubeconfig.read_text("utf-8"))["users"][0]["user"]
        self._headers = {
            "Authorization": f"Bearer {user['token']}",
            "Content-Type": "application/json",
            "User-Agent": _USER_AGENT,
        }
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"status of {path}")
        self._allocated: Mapping[str, str] = {"cpu": "0"}
        self.writes = 0
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if error is None and self.failure is not None:
            raise self.failure

    def use(self, allocated: Mapping[str, str]) -> None:
        """Write this from now on; returns once it has been written twice."""
        self._allocated = dict(allocated)
        self.wait_for_writes(2)

    def wait_for_writes(self, count: int) -> None:
        """Return after `count` further writes."""
        wanted = self.writes + count + 1  # one may be under way
        wait_for(f"{count} more writes of status", lambda: self.failure or self.writes >= wanted)

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S):
            try:
                queue = self._ask("GET", self._url, None)
                status = {**queue.get("status", {}), "state": "Open", "allocated": dict(self._allocated)}
                self._ask("PUT", f"{self._url}/status", {**queue, "status": status})
                self.writes += 1
            except HTTPError as error:
                error.close()
                if error.code != HTTPStatus.CONFLICT:
                    self.failure = error
                    return
            except OSError as error:
                self.failure = error
                return

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers, method=method)
        with self._opener.open(request, timeout=_TIMEOUT_S) as response:
            found: dict[str, Any] = json.load(response)
        return found

"""A watch that is read to the end: every state that an observer could have seen, in order."""

import json
import subprocess
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from hack.controlplane import ControlPlane, wait_for

Object = dict[str, Any]


class Watch:
    """Hands every object of a collection to `check`, at each of its changes, and collects what it complains of.

    `check` gets the objects by name as they were at that moment, and the one that changed, in a thread of the watch; it
    returns a complaint or "".
    The API server sends the changes of one resource in the order of their writes, so nothing is missed or mixed up.
    """

    def __init__(
        self, plane: ControlPlane, path: str, check: Callable[[dict[str, Object], Object], str]
    ) -> None:
        self._plane = plane
        self._path = path
        self._check = check
        self._objects: dict[str, Object] = {}
        self._version = 0
        self._ended = ""
        self.complaints: list[str] = []
        self.events = 0

    def __enter__(self) -> Self:
        start = self._plane.api.get(self._path).expect()["metadata"]["resourceVersion"]
        url = f"{self._path}?watch=1&allowWatchBookmarks=true&resourceVersion={start}"
        kubectl, kubeconfig = self._plane.binary("kubectl"), self._plane.admin_kubeconfig
        self._process = subprocess.Popen(
            [str(kubectl), f"--kubeconfig={kubeconfig}", "get", "--raw", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, name=f"watch {self._path}")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._thread.join()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def catch_up(self) -> None:
        """Return once the last change of every object that is there now has been seen."""
        items = self._plane.api.get(self._path).expect()["items"]
        wanted = max((int(item["metadata"]["resourceVersion"]) for item in items), default=0)
        wait_for("the watch has caught up", lambda: self._ended or self._version >= wanted)
        assert not self._ended, self._ended

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
                self._see(event["type"], event["object"])
            except (ValueError, KeyError) as error:
                self._ended = f"{error!r} in {line}"
                return
        self._ended = "the watch has ended"

    def _see(self, kind: str, changed: Object) -> None:
        if kind == "BOOKMARK":
            return
        self.events += 1
        name = changed["metadata"]["name"]
        if kind == "DELETED":
            self._objects.pop(name, None)
        else:
            self._objects[name] = changed
        complaint = self._check(self._objects, changed)
        if complaint:
            self.complaints.append(complaint)
        self._version = int(changed["metadata"]["resourceVersion"])

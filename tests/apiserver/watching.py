"""A watch that is read to the end: every state that an observer could have seen, in order."""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from core import names
from hack.controlplane import ControlPlane, wait_for
from tests.apiserver.cluster import gates

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
        self._closing = False
        self.complaints: list[str] = []
        self.events = 0

    def __enter__(self) -> Self:
        start = self._plane.api.get(self._path).expect()["metadata"]["resourceVersion"]
        self._version = int(start)
        self._process = self._open()
        self._thread = threading.Thread(target=self._read, name=f"watch {self._path}")
        self._thread.start()
        return self

    def _open(self) -> "subprocess.Popen[str]":
        url = f"{self._path}?watch=1&allowWatchBookmarks=true&resourceVersion={self._version}"
        kubectl, kubeconfig = self._plane.binary("kubectl"), self._plane.admin_kubeconfig
        return subprocess.Popen(
            [str(kubectl), f"--kubeconfig={kubeconfig}", "get", "--raw", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        while self._thread.is_alive():
            # It may just be opening the watch anew.
            self._process.kill()
            self._thread.join(0.1)

    def catch_up(self) -> None:
        """Return once the last change of every object that is there now has been seen."""
        items = self._plane.api.get(self._path).expect()["items"]
        wanted = max((int(item["metadata"]["resourceVersion"]) for item in items), default=0)
        wait_for("the watch has caught up", lambda: self._ended or self._version >= wanted)
        assert not self._ended, self._ended

    def _read(self) -> None:
        """Reads until closed. The API server may end a watch at any time; it goes on where it stopped, missing nothing."""
        while not self._ended:
            with self._process as process:
                assert process.stdout is not None
                for line in process.stdout:
                    try:
                        event = json.loads(line)
                        self._see(event["type"], event["object"])
                    except (ValueError, KeyError) as error:
                        if not self._closing:
                            self._ended = f"{error!r} in {line}"
                        break
            if self._closing:
                return
            self._process = self._open()

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


def admitted(pods: Mapping[str, Object]) -> list[str]:
    """The names of the pods that hold quota: past our gate, and neither terminating nor at their end."""
    return [
        name
        for name, pod in pods.items()
        if names.GATE not in gates(pod)
        and "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]


def within(quota: Mapping[str, int]) -> Callable[[dict[str, Object], Object], str]:
    """A check for Watch: by their records, the pods that hold quota have no more than this of any card."""

    def check(seen: dict[str, Object], _changed: Object) -> str:
        held: Counter[str] = Counter()
        for name in admitted(seen):
            held.update(json.loads(seen[name]["metadata"]["annotations"][names.ASSIGNED_ANNOTATION]))
        over = {card: count for card, count in held.items() if count > quota.get(card, 0)}
        return f"over quota: {over} held by {sorted(admitted(seen))}" if over else ""

    return check

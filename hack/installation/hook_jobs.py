"""The Jobs of a release's hooks, run as local processes: kwok's nodes run no containers.

Whatever pod such a Job gets becomes a process with the container's arguments and a token of the pod's ServiceAccount; how it
ends is how the pod ends, and the Job controller draws its conclusions. So helm waits for what it waits for in a cluster.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hack.controlplane import ControlPlane
from hack.installation import substitution

_ROOT = Path(__file__).parents[2]
_LOOK_EVERY_S = 0.1
_TERMINATE_S = 10.0

Object = Mapping[str, Any]
Started = Callable[["subprocess.Popen[str]"], None]


class HookJobs:
    """Runs the pods of a namespace's Jobs one after the other, from `with` to its end. `started` is told of each process.

    `logs` are what the processes wrote, `accounts` the ServiceAccounts they ran as.
    """

    def __init__(self, plane: ControlPlane, namespace: str, started: Started | None = None) -> None:
        self.logs: list[str] = []
        self.accounts: list[str] = []
        self._plane = plane
        self._namespace = namespace
        self._started = started or (lambda _: None)
        self._ended: set[str] = set()
        self._closing = threading.Event()
        self._running: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="hook jobs", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        if self._running is not None:
            self._running.kill()
        self._thread.join(_TERMINATE_S)

    def _run(self) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        while not self._closing.wait(_LOOK_EVERY_S):
            found = self._plane.api.get(path, labelSelector="batch.kubernetes.io/job-name")
            for pod in found.body["items"] if found.status == HTTPStatus.OK else ():
                if pod["metadata"]["uid"] not in self._ended and "deletionTimestamp" not in pod["metadata"]:
                    self._ended.add(pod["metadata"]["uid"])
                    self._end(pod, self._execute(pod))

    def _execute(self, pod: Object) -> bool:
        account = pod["spec"]["serviceAccountName"]
        kubeconfig = self._plane.service_account_kubeconfig(self._namespace, account)
        self.accounts.append(account)
        with subprocess.Popen(
            [*substitution.pod_command(pod), f"--kubeconfig={kubeconfig}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
        ) as process:
            self._running = process
            self._started(process)
            self.logs.append(process.communicate()[0])
            self._running = None
        return process.returncode == 0

    def _end(self, pod: Object, succeeded: bool) -> None:
        """As a kubelet would tell it."""
        phase = {"status": {"phase": "Succeeded" if succeeded else "Failed"}}
        name = pod["metadata"]["name"]
        self._plane.api.patch(f"/api/v1/namespaces/{self._namespace}/pods/{name}/status", phase)

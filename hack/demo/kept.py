"""The release that the demo installs, and what keeps its processes as a cluster would.

kwok's nodes run no containers: their pods of cardquota are made of nothing, and a process on loopback works in the place of
each Deployment. A change of a Deployment's pods replaces its process, and a Deployment that goes takes its process with it.
"""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from threading import Event
from types import TracebackType
from typing import Any, Self

from hack.controlplane import ControlPlane, ManagedProcess, ProcessError
from hack.demo.terminal import Terminal
from hack.installation.hook_jobs import HookJobs
from hack.installation.release import Release

NAMESPACE = "cardquota-system"
COMPONENTS = ("controller", "webhook")  # the webhook waits for certificates that the leader issues

_LOOK_EVERY_S = 0.5
_LOG_LINES = 5


class Kept:
    """cardquota as `helm install` leaves it, in force when `with` begins; its owner may upgrade it and take it away.

    Jobs of the release's hooks run as processes too.
    """

    def __init__(self, plane: ControlPlane, terminal: Terminal) -> None:
        self._release = Release(plane, NAMESPACE, {"crds": {"install": True}})
        self._jobs = HookJobs(plane, NAMESPACE)
        self._terminal = terminal
        self._looked_at: dict[str, str] = {}
        self._running: dict[str, ManagedProcess] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._release)
            self._release.install()
            self.follow()
            self._release.wait_in_force()
            stack.enter_context(self._jobs)
            self._stack = stack.pop_all()
        self._terminal.step(f"cardquota is installed in {NAMESPACE}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def processes(self) -> list[ManagedProcess]:
        """Those that work now, the controller before the webhook."""
        return [self._running[name] for name in COMPONENTS if name in self._running]

    @property
    def logs(self) -> str:
        """The folder of their logs."""
        return str(self._release.log_directory)

    @property
    def metrics(self) -> list[str]:
        """Where each of them shows its metrics."""
        return [self._release.metrics_address(process) for process in self.processes]

    def metrics_address(self, component: str) -> str:
        """Host and port where a scraper finds the metrics of a component."""
        return (
            self._release.metrics_address(self._running[component]).removeprefix("http://").partition("/")[0]
        )

    def stay(self) -> None:
        """Follow what becomes of the release, until Ctrl-C."""
        pause = Event()
        while not pause.wait(_LOOK_EVERY_S):
            self.follow()

    def follow(self) -> None:
        """Start, replace and end processes as the Deployments are now; those that cannot start are told about."""
        for component in COMPONENTS:
            pods = _pods(self._release.deployment(component))
            if pods == self._looked_at.get(component, ""):
                continue
            self._looked_at[component] = pods
            if not pods:
                self._running.pop(component).stop()
                self._terminal.step(f"cardquota-{component} is gone")
            else:
                self._replace(component)

    def _replace(self, component: str) -> None:
        """Like a rollout: the former process ends once the new one is ready, and stays where that never is."""
        former = self._running.get(component)
        new = self._release.launch(component)
        try:
            new.wait_ready()
        except ProcessError as error:
            if former is None:
                raise
            new.kill()
            self._release.connect()
            why = "\n".join(str(error).splitlines()[-_LOG_LINES:])
            self._terminal.error(f"{new.name} does not get ready, so {former.name} goes on:\n{why}")
            return
        self._running[component] = new
        self._terminal.step(f"{new.name} is ready, its metrics are at {self._release.metrics_address(new)}")
        if former is not None:
            former.stop()
            self._terminal.step(f"{former.name} has ended")


def _pods(deployment: Mapping[str, Any] | None) -> str:
    """What the pods of a Deployment are made from; empty without one."""
    return "" if deployment is None else json.dumps(deployment["spec"]["template"], sort_keys=True)

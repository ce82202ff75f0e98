"""Brings components up: starts them side by side, waits until each is ready, tries again where a port was taken."""

import os
import ssl
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.error import URLError

from hack.controlplane.components import Component
from hack.controlplane.processes import ManagedProcess, ProcessError, Supervisor, log_file

_HEALTH_TIMEOUT_S = 2.0
_ATTEMPTS = 3
_PORT_TAKEN = "address already in use"
_COLLECTING = {"GOGC": "200"}
"""The programs share few processors with all that uses them: they collect garbage half as often as by default, for half as much
memory again. What the environment says stands."""


class Launcher:
    """Starts programs under one supervisor; `processes` holds every one started so far, by name.

    `binary` gives the path of a program of the toolchain. Each program logs to `<log_directory>/<name>.log`, one that
    takes the place of another of that name to a file of its own beside it.
    """

    def __init__(
        self, supervisor: Supervisor, binary: Callable[[str], Path], log_directory: Path, ca_file: Path
    ) -> None:
        self.processes: dict[str, ManagedProcess] = {}
        self._supervisor = supervisor
        self._binary = binary
        self._log_directory = log_directory
        # No proxy from the environment: everything asked here is on loopback.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)),
        )

    def start(self, makers: Mapping[str, Callable[[], Component]]) -> None:
        """Start all of `makers` (name -> component, called again for new ports) and return once all are ready."""
        for name, make in makers.items():
            self._launch(name, make())
        for name, make in makers.items():
            self._settle(name, make)

    def start_program(
        self, name: str, argv: Sequence[str], ready: Callable[[], bool], env: Mapping[str, str] | None
    ) -> ManagedProcess:
        """Start any program and return it once it is ready."""
        process = self._manage(name, argv, ready, env)
        process.start()
        return process

    def _launch(self, name: str, component: Component) -> None:
        argv = (str(self._binary(component.binary)), *component.arguments)
        process = self._manage(
            name, argv, lambda: self._answers(component.ready_url), {**_COLLECTING, **os.environ}
        )
        process.launch()

    def _manage(
        self, name: str, argv: Sequence[str], ready: Callable[[], bool], env: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        if name in self.processes and self.processes[name].running:
            raise ProcessError(f"{name} runs already")
        log = log_file(self._log_directory, name)
        self.processes[name] = ManagedProcess(self._supervisor, name, argv, log=log, ready=ready, env=env)
        return self.processes[name]

    def _settle(self, name: str, make: Callable[[], Component]) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            process = self.processes[name]
            try:
                process.wait_ready()
            except ProcessError:
                if attempt == _ATTEMPTS or process.running or _PORT_TAKEN not in process.log_tail():
                    raise
                self._launch(name, make())
            else:
                return

    def _answers(self, url: str) -> bool:
        try:
            with self._opener.open(url, timeout=_HEALTH_TIMEOUT_S) as response:
                return int(response.status) == 200
        except (URLError, OSError):
            return False

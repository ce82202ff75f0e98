"""Sets the wall clocks of our processes wrong, each for a while, whatever else happens meanwhile.

No promise has an exception for it: the judge goes by the clock of the API server, and is told nothing of this.
"""

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hack.controlplane import ManagedProcess
from hack.install import Installation
from tests.apiserver.leaders import leading
from tests.chaos import stepped
from tests.chaos.plan import LEADER, WEBHOOK, ClockStep

_STOP_S: Final = 30.0


class Clocks:
    """The clocks of an installation's processes; `done` counts the steps by whose they were."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        self._installation = installation
        self._folder = folder
        self.done: Counter[str] = Counter()

    @classmethod
    @contextmanager
    def of(cls, installation: Installation) -> Iterator["Clocks"]:
        """Starts all processes anew, so that their clocks can be stepped."""
        processes = (*installation.controller_processes, *installation.webhook_processes)
        with tempfile.TemporaryDirectory(prefix="cardquota-clocks-") as folder:

            def restart(process: ManagedProcess) -> None:
                python, _module, _cli, *arguments = process.argv
                process.stop(_STOP_S)
                process.argv = (python, "-m", stepped.__name__, folder, *arguments)
                process.start()

            with ThreadPoolExecutor(len(processes)) as pool:
                list(pool.map(restart, processes))
            yield cls(installation, Path(folder))

    def run(self, steps: Sequence[ClockStep], seconds: float, over: threading.Event) -> None:
        """Each in its time, and none after so many seconds; all clocks are right in the end."""
        began = time.monotonic()
        for step in steps:
            if step.at >= seconds or over.wait(max(0.0, began + step.at - time.monotonic())):
                return
            pid = self._whose(step)
            if pid is None:
                continue
            self.done[f"clock: {step.who} {'ahead' if step.by_s > 0 else 'behind'}"] += 1
            stepped.step(self._folder, pid, step.by_s)
            over.wait(step.length)
            stepped.step(self._folder, pid, 0.0)

    def _whose(self, step: ClockStep) -> int | None:
        """The process that is meant, if it runs and has come so far that its clock can be stepped."""
        controllers, webhooks = (
            self._installation.controller_processes,
            self._installation.webhook_processes,
        )
        if step.who == WEBHOOK:
            found = list(webhooks)
        else:
            led = {controllers[place].name for place in leading(self._installation)}
            running = [process for process in controllers if process.running]
            found = [process for process in running if (process.name in led) == (step.who == LEADER)]
        pid = found[int(step.choice * len(found))].pid if found else None
        return pid if pid is not None and stepped.can_step(self._folder, pid) else None

"""One local process in the place of a pod of the chart."""

import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.error import URLError

from hack.controlplane import ManagedProcess
from hack.controlplane.processes import Supervisor, log_file
from hack.installation import substitution
from hack.installation.substitution import LOOPBACK, Object, Surroundings

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 5.0
# No proxy from the environment: everything asked here is on loopback.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Replica:
    """A process, its Deployment's name, the ports that take the place of its container's, and its time to end."""

    deployment: str
    process: ManagedProcess
    ports: Mapping[int, int]
    metrics_port: int
    grace_s: float

    def stop(self) -> None:
        """End the process in order (SIGTERM); what is not done after the pod's grace period is killed."""
        self.process.stop(self.grace_s)

    def metrics(self) -> str:
        """Return what a scraper would read."""
        with _OPENER.open(f"http://{LOOPBACK}:{self.metrics_port}/metrics", timeout=_TIMEOUT_S) as response:
            text: bytes = response.read()
        return text.decode()


def replica(
    deployment: Object, around: Surroundings, supervisor: Supervisor, logs: Path, tree: Path = _ROOT
) -> Replica:
    """Return the process for one pod of a Deployment, not started; ready means what the readiness probe says.

    It runs from the sources in `tree`.
    """
    probe = substitution.container_of(deployment)["readinessProbe"]["httpGet"]
    probed = around.ports[substitution.container_port(deployment, probe["port"])]
    address = f"http://{LOOPBACK}:{probed}{probe['path']}"
    process = ManagedProcess(
        supervisor,
        around.pod_name,
        substitution.command_line(deployment, around),
        log=log_file(logs, around.pod_name),
        ready=lambda: _answers(address),
        env={
            **os.environ,
            **substitution.environment(deployment, around),
            "KUBECONFIG": str(around.kubeconfig),
            "PYTHONPATH": str(tree),
            # Nothing from the folder in which this happens to be called.
            "PYTHONSAFEPATH": "1",
        },
    )
    return Replica(
        deployment["metadata"]["name"],
        process,
        around.ports,
        metrics_port=around.ports[substitution.container_port(deployment, "metrics")],
        grace_s=deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"],
    )


def _answers(address: str) -> bool:
    try:
        with _OPENER.open(address, timeout=_TIMEOUT_S) as response:
            return int(response.status) == HTTPStatus.OK
    except (URLError, OSError):
        return False

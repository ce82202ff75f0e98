"""A release as helm makes it, with its Deployments' processes on loopback.

Other than an Installation, which applies what helm renders, here helm itself installs, upgrades, rolls back and removes. The
API server finds the processes by the release's own Services, which are made to lead to this machine; the port that a process
got is all that is changed in a webhook configuration, and helm leaves that alone.
"""

import itertools
import shutil
import tempfile
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from hack.controlplane import ControlPlane, ManagedProcess, ProcessError, wait_for
from hack.controlplane.ports import free_ports
from hack.controlplane.processes import Supervisor
from hack.installation import rendering, substitution
from hack.installation.replica import Replica, replica
from hack.installation.substitution import Surroundings

ROOT = Path(__file__).parents[2]
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATIONS = tuple(
    f"{REGISTRATION}/{kind}webhookconfigurations/cardquota-{kind}" for kind in ("mutating", "validating")
)

_HELM_TIMEOUT_S = 200.0


class Release:
    """One release in a namespace of its own; what is left of it is removed when `with` ends."""

    def __init__(self, plane: ControlPlane, namespace: str, values: Mapping[str, Any] | None = None) -> None:
        self.plane = plane
        self.namespace = namespace
        self.values = dict(values or {})
        self.there_before: set[str] = set()
        """What the owner has seen on the control plane before anything was installed."""
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        self.plane.create_namespace(self.namespace)
        self._directory = Path(tempfile.mkdtemp(prefix="cardquota-release-"))
        self._logs = self.plane.log_folder("release")
        self._supervisor = Supervisor(self._directory)
        self._replicas: list[Replica] = []
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.kill()
            self.helm("uninstall", "--no-hooks", "--ignore-not-found")
            self.plane.api.delete(f"/api/v1/namespaces/{self.namespace}").expect()
        finally:
            self._supervisor.close()
            for item in self._replicas:
                item.process.release()
            shutil.rmtree(self._directory, ignore_errors=True)

    # -- helm ----------------------------------------------------------------------------------------------------

    def helm(self, command: str, *args: str) -> str:
        """Run helm on the release. Raises RenderError."""
        access = (f"--kubeconfig={self.plane.admin_kubeconfig}", f"--namespace={self.namespace}")
        binary = self.plane.binary("helm")
        return rendering.helm(binary, command, rendering.RELEASE, *args, *access, timeout_s=_HELM_TIMEOUT_S)

    def install(self, tree: Path = ROOT, command: str = "install") -> str:
        """Install the chart of a source tree, or `upgrade` to it; return its notes.

        CRDs that other tests have left are taken over.
        """
        values = self._directory / "values.yaml"
        values.write_text(yaml.safe_dump(self.values), "utf-8")
        chart = str(tree / "charts" / "cardquota")
        said = self.helm(command, chart, f"--values={values}", "--take-ownership")
        return " ".join(said.partition("NOTES:")[2].split())

    # -- processes -----------------------------------------------------------------------------------------------

    @property
    def log_directory(self) -> Path:
        """Where the processes log, each under the name of its pod."""
        return self._logs

    def start(self, component: str, tree: Path = ROOT) -> ManagedProcess:
        """Start a replica of a Deployment as it is stored now, from the sources in `tree`, and return it once it is ready.

        The API server asks the youngest replica of a component.
        """
        started = self.launch(component, tree)
        started.wait_ready()
        return started

    def launch(self, component: str, tree: Path = ROOT) -> ManagedProcess:
        """The same without waiting."""
        deployment = self.deployment(component)
        if deployment is None:
            raise ProcessError(f"there is no Deployment cardquota-{component}")
        name = deployment["metadata"]["name"]
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        numbers = [port["containerPort"] for port in substitution.container_of(deployment)["ports"]]
        around = Surroundings(
            f"{name}-{next(self._numbers)}",
            self.namespace,
            ports=dict(zip(numbers, free_ports(len(numbers)), strict=True)),
            mounts={p: self._settings(c) for p, c in substitution.config_mounts(deployment).items()},
            kubeconfig=self.plane.service_account_kubeconfig(self.namespace, account),
        )
        launched = replica(deployment, around, self._supervisor, self._logs, tree)
        launched.process.launch()
        self._replicas.append(launched)
        self.connect()
        return launched.process

    def deployment(self, component: str) -> dict[str, Any] | None:
        """Return the Deployment of a component as it is stored now, None where there is none."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/cardquota-{component}"
        stored = self.plane.api.get(path)
        return None if stored.status == HTTPStatus.NOT_FOUND else stored.expect()

    def metrics_address(self, process: ManagedProcess) -> str:
        """Return where a scraper finds the metrics of a process."""
        return next(
            f"http://{substitution.LOOPBACK}:{item.metrics_port}/metrics"
            for item in self._replicas
            if item.process is process
        )

    def connect(self) -> None:
        """Lead the API server to the youngest running replica behind each Service."""
        running = {item.deployment: item for item in self._replicas if item.process.running}
        for name in running:
            service = f"/api/v1/namespaces/{self.namespace}/services/{name}"
            local = {
                "spec": {
                    "type": "ExternalName",
                    "externalName": "localhost",
                    "clusterIP": None,
                    "clusterIPs": None,
                }
            }
            self.plane.api.patch(service, local).expect()
        for path in CONFIGURATIONS:
            stored = self.plane.api.get(path)
            entries = stored.body["webhooks"] if stored.status == HTTPStatus.OK else ()
            ports = [
                {
                    "op": "add",
                    "path": f"/webhooks/{place}/clientConfig/service/port",
                    "value": _https(running[behind]),
                }
                for place, entry in enumerate(entries)
                if (behind := entry["clientConfig"]["service"]["name"]) in running
            ]
            if ports:
                self.plane.api.patch(path, ports, "json").expect()

    def wait_in_force(self) -> None:
        """Return once every entry that nobody gets past trusts its process, and the API server goes by it.

        One that may be ignored and came with an upgrade has no trust for as long as the former version leads.
        """
        wait_for("the webhook entries trust the processes", lambda: self.is_trusted("Fail"), 60.0)
        probe = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "probe",
                "namespace": "default",
                "annotations": {"volcano.sh/card.name": "probe"},
            },
            "spec": {
                "containers": [{"name": "c", "image": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
            },
        }

        def gated() -> bool:
            answer = self.plane.api.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", probe)
            return answer.status == HTTPStatus.CREATED and "schedulingGates" in answer.body["spec"]

        wait_for("pods get the gate", gated, 60.0)

    def kill(self) -> None:
        """Kill every process that runs."""
        for item in self._replicas:
            if item.process.running:
                item.process.kill()

    def is_trusted(self, *policies: str) -> bool:
        """Whether the API server is told whom to trust by all entries with these failure policies."""
        stored = [self.plane.api.get(path).expect() for path in CONFIGURATIONS]
        entries = [entry for one in stored for entry in one["webhooks"] if entry["failurePolicy"] in policies]
        clients = [entry["clientConfig"] for entry in entries]
        return all("caBundle" in client and client["service"].get("path") for client in clients)

    def _settings(self, config: str) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self._directory))
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{config}"
        for file, text in self.plane.api.get(path).expect()["data"].items():
            (folder / file).write_text(text, "utf-8")
        return folder


def _https(item: Replica) -> int:
    """The local port in the place of the container's 9443."""
    return item.ports[9443]

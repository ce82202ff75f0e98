"""The chart on the local control plane: its objects applied, its Deployments run as local processes.

```python
with ControlPlane() as cp, Installation(cp, values={"cards": {"podsWithoutCardName": "deny"}}, controller=2) as inst:
    cp.apply(queue)
    inst.kill_controller(0)
```

kwok's nodes run no containers; so the Deployments are scaled to zero, and each replica is a process with the rendered
command line, the rendered settings and a token of the rendered ServiceAccount. RBAC, admission policies and webhook
configurations are those of the chart, except that webhook entries call the process at its address on loopback.
"""

import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from hack.controlplane import ControlPlane, ManagedProcess, ProcessError, wait_for
from hack.controlplane.credentials import write_private
from hack.controlplane.ports import free_ports
from hack.controlplane.processes import Supervisor, uninterrupted
from hack.installation import certification, rendering, substitution
from hack.installation.entries import KINDS, Entries
from hack.installation.inventory import Inventory
from hack.installation.rendering import in_order, of_kind
from hack.installation.replica import Replica, replica
from hack.installation.substitution import Surroundings

NAMESPACE = "cardquota-system"
WEBHOOK = "cardquota-webhook"
CONTROLLER = "cardquota-controller"
CERTIFICATES = "cardquota-certificates"

_ATTEMPTS = 3
_PORT_TAKEN = "address already in use"
_DEFAULTS: Mapping[str, Any] = {"crds": {"install": True}}


class Installation:
    """An installed chart whose processes are ready when `with` begins, and of which only the CRDs are left when it ends.

    Without a `namespace` it is `cardquota-system`, or one beside it while an earlier installation is leaving that one.

    `values` are the chart's; the CRDs of Queue and PodGroup are installed unless they say otherwise. `webhook` 0 (or False) and
    `controller` 0 leave the process out, and with it the webhook entries that it would serve. Several controllers share
    one Lease; the API server calls the first replica that runs, where a Service would spread the calls. With `controller_api` the
    controllers find the API server at that URL, a proxy's for instance. Each process logs under
    its pod's name into a folder that this installation has for itself in the control plane's log directory. Children do
    not outlive this process.
    """

    on_end: ClassVar[Callable[["Installation"], None] | None] = None
    """Called with each installation that has ended: for a test run that looks back at what its processes asked for."""

    def __init__(
        self,
        control_plane: ControlPlane,
        *,
        values: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        webhook: int = 1,
        controller: int = 1,
        controller_api: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.namespace = namespace or NAMESPACE
        self._may_move = namespace is None
        self._plane = control_plane
        self._values = {**_DEFAULTS, **(values or {})}
        self._wanted = {WEBHOOK: int(webhook), CONTROLLER: controller}
        self._apis = {CONTROLLER: controller_api} if controller_api else {}
        self._progress = progress or (lambda _: None)
        self._replicas: dict[str, list[Replica]] = {WEBHOOK: [], CONTROLLER: []}
        self._inventory = Inventory(control_plane.api)

    def __enter__(self) -> Self:
        if self._may_move:
            self.namespace = self._free_namespace()
        self.audited_from = self.audit_log.stat().st_size
        self.objects = rendering.render(self._plane.binary("helm"), self._values, self.namespace)
        self._deployments = of_kind(self.objects, "Deployment")
        self._entries = Entries(self._plane.api, self.objects, self._inventory)
        self._logs = self._plane.log_folder("installation")
        with uninterrupted():
            self._directory = Path(tempfile.mkdtemp(prefix="cardquota-installation-"))
            self._supervisor = Supervisor(self._directory)
        try:
            self._apply_objects()
            self._add(*[name for name, count in self._wanted.items() for _ in range(count)])
            self._entries.wait_until_enforced(webhook=bool(self._replicas[WEBHOOK]))
        except BaseException:
            self._close()
            raise
        self._progress(f"cardquota is installed in {self.namespace}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if Installation.on_end is not None:
            Installation.on_end(self)

    @property
    def audit_log(self) -> Path:
        """Where the API server writes what it was asked, from byte `audited_from` on since this installation began."""
        return self._plane.audit_log

    # -- processes -----------------------------------------------------------------------------------------------

    @property
    def webhook_processes(self) -> list[ManagedProcess]:
        """The webhook's processes, stopped ones included."""
        return [item.process for item in self._replicas[WEBHOOK]]

    @property
    def controller_processes(self) -> list[ManagedProcess]:
        """The controller's processes in the order of their start, stopped ones included."""
        return [item.process for item in self._replicas[CONTROLLER]]

    def start_controller(self) -> ManagedProcess:
        """Start one more controller and return it once it is ready."""
        (added,) = self._add(CONTROLLER)
        return added.process

    def stop_controller(self, index: int) -> None:
        """End a controller in order (SIGTERM); the API server calls another one from then on, if there is one."""
        self._replicas[CONTROLLER][index].stop()
        self._point_webhooks()

    def kill_controller(self, index: int) -> None:
        """Kill a controller (SIGKILL); the API server calls another one from then on, if there is one."""
        self.kill(self.controller_processes[index])

    def kill(self, process: ManagedProcess) -> None:
        """Kill a webhook or controller (SIGKILL); the API server calls another replica from then on, if there is one."""
        process.kill()
        self._point_webhooks()

    def start_again(self, process: ManagedProcess) -> None:
        """Start a replica that was killed, as it was; returns once it is ready and may be called again."""
        process.start()
        self._point_webhooks()

    def metrics(self, component: str, index: int = 0) -> str:
        """Return the metrics of a `webhook` or `controller` process as a scraper reads them."""
        return self._replicas[f"cardquota-{component}"][index].metrics()

    def metrics_address(self, component: str, index: int = 0) -> str:
        """Return host and port where a scraper finds the metrics of a `webhook` or `controller` process."""
        return f"{substitution.LOOPBACK}:{self._replicas[f'cardquota-{component}'][index].metrics_port}"

    def controller_url(self, index: int) -> str:
        """Return the address at which a controller serves the API server and the other controllers."""
        return substitution.url(self._controller_port(index, "https"))

    def kube_extender_url(self, index: int) -> str:
        """Return the address at which a controller answers kube-scheduler over HTTPS."""
        return substitution.url(self._controller_port(index, "kube-extender"))

    def extender_url(self, index: int) -> str:
        """Return the address at which a controller answers Volcano's scheduler over plain HTTP."""
        return f"http://{substitution.LOOPBACK}:{self._controller_port(index, 'extender')}"

    def answers_url(self, index: int) -> str:
        """Return the address at which a controller answers people."""
        return substitution.url(self._controller_port(index, "answers"))

    def _controller_port(self, index: int, name: str) -> int:
        port = substitution.container_port(self._deployments[CONTROLLER], name)
        return self._replicas[CONTROLLER][index].ports[port]

    # -- start ---------------------------------------------------------------------------------------------------

    def _free_namespace(self) -> str:
        """The usual namespace, or one beside it while that of an earlier installation takes its seconds to go."""
        for number in itertools.count(1):
            name = NAMESPACE if number == 1 else f"{NAMESPACE}-{number}"
            if self._plane.api.get(f"/api/v1/namespaces/{name}").status == HTTPStatus.NOT_FOUND:
                return name
        raise AssertionError("there are enough numbers")

    def _apply_objects(self) -> None:
        self._entries.wait_until_free()
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        for thing in in_order([namespace, *self.objects]):
            if thing["kind"] == "Deployment":
                self._inventory.apply(substitution.without_pods(thing))
            elif thing["kind"] == "Certificate":
                self._inventory.apply(substitution.for_loopback(thing))
            elif thing["kind"] not in KINDS:
                self._inventory.apply(thing)
        for name, config in of_kind(self.objects, "ConfigMap").items():
            folder = self._directory / name
            folder.mkdir()
            for file, text in config.get("data", {}).items():
                (folder / file).write_text(text, "utf-8")

    def _add(self, *names: str) -> list[Replica]:
        """Start one more replica of each Deployment named, side by side, and return them once they are ready."""
        added = []
        for name in names:
            added.append(self._launch(name, f"{name}-{len(self._replicas[name])}"))
            self._replicas[name].append(added[-1])
        # The leader writes the certificate authority into entries that exist.
        self._point_webhooks()
        if not self._wanted[CONTROLLER] and self._replicas[WEBHOOK]:
            self._certify()
        ready = [self._settled(item) for item in added]
        if ready:
            wait_for("the webhook entries trust the processes", self._entries.trusted)
        for item in ready:
            self._progress(f"{item.process.name} is ready")
        return ready

    def _certify(self) -> None:
        """Issue what a leader would, where no controller is wanted."""
        services = [thing["metadata"]["name"] for thing in self.objects if thing["kind"] == "Service"]
        certification.certify(
            self._plane.admin_kubeconfig,
            self.namespace,
            (CERTIFICATES, CONTROLLER),
            [f"{name}.{self.namespace}.svc" for name in services],
            self._entries.rendered,
        )

    def _settled(self, item: Replica) -> Replica:
        """Return the replica, or the one that took its place on other ports because somebody was faster, once ready."""
        for _ in range(_ATTEMPTS - 1):
            try:
                item.process.wait_ready()
            except ProcessError:
                if item.process.running or _PORT_TAKEN not in item.process.log_tail().lower():
                    raise
            else:
                return item
            siblings = self._replicas[item.deployment]
            place = siblings.index(item)
            siblings[place] = item = self._launch(item.deployment, item.process.name)
            self._point_webhooks()
        item.process.wait_ready()
        return item

    def _launch(self, name: str, pod_name: str) -> Replica:
        deployment = self._deployments[name]
        numbers = [port["containerPort"] for port in substitution.container_of(deployment)["ports"]]
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        around = Surroundings(
            pod_name,
            self.namespace,
            ports=dict(zip(numbers, free_ports(len(numbers)), strict=True)),
            mounts={p: self._directory / c for p, c in substitution.config_mounts(deployment).items()},
            kubeconfig=self._kubeconfig(name, account),
        )
        launched = replica(deployment, around, self._supervisor, self._logs)
        launched.process.launch()
        return launched

    def _kubeconfig(self, name: str, account: str) -> Path:
        """What leads a Deployment's processes to the API server, under the rendered ServiceAccount."""
        straight = self._plane.service_account_kubeconfig(self.namespace, account)
        if name not in self._apis:
            return straight
        config = json.loads(straight.read_text("utf-8"))
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = self._apis[name]
        return write_private(self._directory / f"{name}.kubeconfig", json.dumps(config).encode())

    # -- webhooks ------------------------------------------------------------------------------------------------

    def _point_webhooks(self) -> None:
        self._entries.point_at(self._urls())

    def _urls(self) -> dict[str, str]:
        """The address behind each Service that has, or once had, a process: the first running one's."""
        urls = {}
        deployments = list(self._deployments.values())
        for name, service in of_kind(self.objects, "Service").items():
            for port in service["spec"]["ports"]:
                if port["name"] != "https":
                    continue
                deployment, number = substitution.backend(service, port["port"], deployments)
                replicas = self._replicas[deployment["metadata"]["name"]]
                serving = [item for item in replicas if item.process.running] or replicas
                if serving:
                    urls[name] = substitution.url(serving[0].ports[number])
        return urls

    # -- end -----------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        try:
            # Nothing may call a process that is about to end.
            self._inventory.remove(lambda path: "webhookconfigurations" in path)
            for item in [*self._replicas[WEBHOOK], *self._replicas[CONTROLLER]]:
                # They would drain connections that nobody has; their Lease goes with the namespace.
                item.process.kill()
            self._inventory.remove()
        finally:
            self._supervisor.close()
            for item in [*self._replicas[WEBHOOK], *self._replicas[CONTROLLER]]:
                item.process.release()
            shutil.rmtree(self._directory, ignore_errors=True)

"""The control plane as one context manager: programs started, waited for, handed out, and removed without a trace."""

import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import yaml

from hack.controlplane import components, nodes
from hack.controlplane.client import ApiClient, Object, wait_for
from hack.controlplane.components import LOOPBACK, Component
from hack.controlplane.credentials import Credentials
from hack.controlplane.kubeconfigs import Kubeconfigs
from hack.controlplane.launcher import Launcher
from hack.controlplane.ports import free_ports
from hack.controlplane.processes import ManagedProcess, Supervisor, uninterrupted
from hack.toolchain import Reporter, Store

DEFAULT_SCHEDULER = "default-scheduler"

_TOKEN_LIFETIME_S = 24 * 3600
_NODE_TIMEOUT_S = 60.0
_ACCOUNT_TIMEOUT_S = 90.0
"""After an outage of the API server the controller manager rests for up to a minute before it lists anything again."""


class ControlPlane:
    """etcd and kube-apiserver, and on wish kube-scheduler, kube-controller-manager and kwok, on loopback.

    Everything is ready when `with` begins: the API server answers, namespace `default` and its ServiceAccount are
    there. When it ends the programs are dead and the folder is gone; after an exception the logs stay, and the
    exception carries a note that names their folder. Children do not outlive this process, whatever ends it.

    `feature_gates` are switched on in all programs of Kubernetes. `log_dir` keeps the logs in a place of one's own in any case. `progress` gets one line per step. `audit_rules` are rules of an
    audit policy for what is to be recorded otherwise than at metadata level.
    """

    url: str
    ca_file: Path
    directory: Path
    log_directory: Path
    audit_log: Path
    admin_kubeconfig: Path
    api: ApiClient

    def __init__(
        self,
        *,
        scheduler: bool = True,
        controller_manager: bool = True,
        kwok: bool = True,
        log_dir: Path | None = None,
        progress: Callable[[str], None] | None = None,
        api_server_arguments: Sequence[str] = (),
        feature_gates: Sequence[str] = (),
        audit_rules: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._scheduler = scheduler
        self._controller_manager = controller_manager
        self._kwok = kwok
        self._log_dir = log_dir
        self._progress = progress or (lambda _: None)
        self._feature_gates = components.feature_gates(feature_gates)
        self._api_server_arguments = (*self._feature_gates, *api_server_arguments)
        self._audit_rules = tuple(audit_rules)
        self._store = Store()
        self._keep_logs = False

    def __enter__(self) -> Self:
        self._store.ensure(self._needed(), Reporter(self._progress))
        started = time.monotonic()
        # From then on the folder goes with this process, however that ends.
        with uninterrupted():
            self.directory = Path(tempfile.mkdtemp(prefix="cardquota-"))
            self._supervisor = Supervisor(self.directory)
        try:
            self._start()
        except BaseException as error:
            self._close(error)
            raise
        self._progress(f"control plane ready in {time.monotonic() - started:.1f} s: {self.url}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(error)

    # -- programs ------------------------------------------------------------------------------------------------

    @property
    def processes(self) -> Mapping[str, ManagedProcess]:
        """Every program started so far, by name, stopped ones included."""
        return MappingProxyType(self._launcher.processes)

    @property
    def supervisor_pid(self) -> int:
        """The process that holds all others, and kills them when this process is gone."""
        return self._supervisor.pid

    def binary(self, name: str) -> Path:
        """Return the path of a program of the toolchain (`kubectl`, `helm`, ...), building it if needed."""
        return self._store.ensure([name], Reporter(self._progress))[name]

    def start_scheduler(self, config: str | None = None, name: str = DEFAULT_SCHEDULER) -> ManagedProcess:
        """Start a kube-scheduler and return it once it is ready.

        `config` is a KubeSchedulerConfiguration (YAML); kubeconfig and election are filled in, and `name` where the
        first profile has no schedulerName. The process is called `kube-scheduler`, for another name than the default
        `kube-scheduler-<name>`; one of that name that runs already is an error, a stopped one is replaced.
        """
        process_name = "kube-scheduler" if name == DEFAULT_SCHEDULER else f"kube-scheduler-{name}"
        self._launcher.start({process_name: self._scheduler_maker(process_name, config, name)})
        return self.processes[process_name]

    def start_program(
        self,
        name: str,
        argv: Sequence[str],
        *,
        ready: Callable[[], bool],
        env: Mapping[str, str] | None = None,
    ) -> ManagedProcess:
        """Start a program of one's own beside the control plane, under the same supervisor; it lives no longer.

        Returns once `ready` says yes; `ProcessError` with the end of its log if it ends before. `env` is its whole
        environment, by default this process's.
        """
        return self._launcher.start_program(name, argv, ready, env)

    def start_process(self, name: str) -> None:
        """Start a stopped program again, with the same arguments, and return once it is ready."""
        self.processes[name].start()

    def stop_process(self, name: str) -> None:
        """End a program in order (SIGTERM) and return once it is gone."""
        self.processes[name].stop()

    def kill_process(self, name: str) -> None:
        """Kill a program (SIGKILL) and return once it is gone."""
        self.processes[name].kill()

    def restart(self, name: str) -> None:
        """Stop a program and start it again on the same port; `kube-apiserver` loses its watches, not its data."""
        self.processes[name].restart()
        self.api.close()

    # -- identities ----------------------------------------------------------------------------------------------

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Return a kubeconfig for any user, by client certificate; what the user may do is RBAC's affair."""
        return self._kubeconfigs.for_user(user, groups)

    def service_account_kubeconfig(self, namespace: str, name: str, *, create: bool = False) -> Path:
        """Return a kubeconfig with a token of a day for a ServiceAccount, made first if `create`."""
        metadata = {"namespace": namespace, "name": name}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        if create:
            self.api.create(account).expect(201, 409)
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_LIFETIME_S},
        }
        answer = self.api.request("POST", self.api.path_of(account, subresource="token"), request).expect()
        user = f"system:serviceaccount:{namespace}:{name}"
        return self._kubeconfigs.for_token(user, answer["status"]["token"], namespace)

    def client(self, kubeconfig: Path) -> ApiClient:
        """Return a client that asks as the user of one of this control plane's kubeconfigs."""
        user = yaml.safe_load(kubeconfig.read_text("utf-8"))["users"][0]["user"]
        pair = (Path(user["client-certificate"]), Path(user["client-key"])) if "client-key" in user else None
        return ApiClient(self.url, self.ca_file, token=user.get("token"), client_pair=pair)

    # -- objects -------------------------------------------------------------------------------------------------

    def kubectl(
        self,
        *args: str,
        stdin: str | None = None,
        kubeconfig: Path | None = None,
        check: bool = True,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the admin or as the user of `kubeconfig`; `check` raises `CalledProcessError` on failure."""
        command = [
            str(self.binary("kubectl")),
            f"--kubeconfig={kubeconfig or self.admin_kubeconfig}",
            f"--cache-dir={self.directory / 'kubectl-cache'}",
            *args,
        ]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout
        )
        if check and done.returncode != 0:
            error = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
            error.add_note(done.stderr.strip())
            raise error
        return done

    def apply(self, things: str | Object | Iterable[Object]) -> list[Any]:
        """Server-side apply objects or YAML text as the admin; see `ApiClient.apply`."""
        return self.api.apply(things)

    def create_namespace(self, name: str) -> None:
        """Create a namespace in which pods can be created at once."""
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).expect()
        self._wait_for_namespace(name)

    def add_node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        allocatable: Mapping[str, int | str] | None = None,
    ) -> None:
        """Add a node of 96 CPUs with these labels and extended resources, see `nodes.node` and `add_nodes`."""
        self.add_nodes(nodes.node(name, labels=labels, allocatable=allocatable))

    def add_nodes(self, *new: Mapping[str, Any]) -> None:
        """Create nodes (see `hack.controlplane.nodes`) and return once they are ready and free of start-up taints."""
        for item in new:
            self.api.create(item if self._kwok else nodes.made_ready(item)).expect()
        for item in new:
            self._wait_for_node(self.api.path_of(item))

    def log_folder(self, name: str) -> Path:
        """Make a folder of one's own among the logs: `name`, or the first of `name-2`, ... that is not there yet."""
        for number in itertools.count(1):
            folder = self.log_directory / (name if number == 1 else f"{name}-{number}")
            if not folder.exists():
                folder.mkdir()
                return folder
        raise AssertionError("there are enough numbers")

    def keep_logs(self) -> None:
        """Keep the logs when this ends, as after an exception; for callers that learn of failures otherwise."""
        self._keep_logs = True

    # -- start ---------------------------------------------------------------------------------------------------

    def _needed(self) -> list[str]:
        wanted = {
            "etcd": True,
            "kube-apiserver": True,
            "kubectl": True,
            "kube-scheduler": self._scheduler,
            "kube-controller-manager": self._controller_manager,
            "kwok": self._kwok,
        }
        return [name for name, needed in wanted.items() if needed]

    def _start(self) -> None:
        self.log_directory = self._log_dir or self.directory / "logs"
        self.log_directory.mkdir(parents=True, exist_ok=True)
        self.audit_log = self.log_directory / "audit.log"
        self._credentials = Credentials(self.directory / "pki")
        self.ca_file = self._credentials.ca_file
        self._launcher = Launcher(self._supervisor, self.binary, self.log_directory, self.ca_file)
        self._start_api_server()
        self._launcher.start(self._clients())
        self._wait_for_namespace("default")

    def _start_api_server(self) -> None:
        etcd_port = 0

        def etcd() -> Component:
            nonlocal etcd_port
            etcd_port, peer_port = free_ports(2)
            return components.etcd(self.directory, etcd_port, peer_port)

        def api_server() -> Component:
            (port,) = free_ports(1)
            self.url = f"https://{LOOPBACK}:{port}"
            return components.api_server(
                self.directory,
                self._credentials,
                port=port,
                etcd_port=etcd_port,
                controller_manager=self._controller_manager,
                audit_log=self.audit_log,
                audit_rules=self._audit_rules,
                extra=self._api_server_arguments,
            )

        self._launcher.start({"etcd": etcd})
        self._launcher.start({"kube-apiserver": api_server})
        self._kubeconfigs = Kubeconfigs(self.directory / "kubeconfigs", self.url, self._credentials)
        self.admin_kubeconfig = self._kubeconfigs.for_account("admin")
        self.api = ApiClient(self.url, self.ca_file, token=self._credentials.tokens["admin"])

    def _clients(self) -> dict[str, Callable[[], Component]]:
        makers: dict[str, Callable[[], Component]] = {}
        if self._controller_manager:
            manager = self._kubeconfigs.for_account("system:kube-controller-manager")
            makers["kube-controller-manager"] = lambda: components.controller_manager(
                self._credentials, manager, *free_ports(1), extra=self._feature_gates
            )
        if self._kwok:
            kubelets = self._kubeconfigs.for_account("kwok")
            makers["kwok"] = lambda: components.kwok(self.directory, kubelets, *free_ports(1))
        if self._scheduler:
            makers["kube-scheduler"] = self._scheduler_maker("kube-scheduler", None, DEFAULT_SCHEDULER)
        return makers

    def _scheduler_maker(self, process_name: str, config: str | None, name: str) -> Callable[[], Component]:
        kubeconfig = self._kubeconfigs.for_account("system:kube-scheduler")
        file = self.directory / f"{process_name}.yaml"
        file.write_text(yaml.safe_dump(components.scheduler_configuration(config, name, kubeconfig)), "utf-8")
        return lambda: components.scheduler(
            file, self._credentials, kubeconfig, *free_ports(1), extra=self._feature_gates
        )

    def _wait_for_node(self, path: str) -> None:
        wait_for(f"{path} is ready", lambda: nodes.is_ready(self.api.get(path).expect()), _NODE_TIMEOUT_S)

    def _wait_for_namespace(self, name: str) -> None:
        # The controller manager makes the account shortly after the namespace; until then pods are refused.
        path = f"/api/v1/namespaces/{name}" + ("/serviceaccounts/default" if self._controller_manager else "")
        wait_for(f"{path} exists", lambda: self.api.get(path).status == HTTPStatus.OK, _ACCOUNT_TIMEOUT_S)

    # -- end -----------------------------------------------------------------------------------------------------

    def _close(self, error: BaseException | None) -> None:
        # Ctrl-C and a closed generator are how a caller ends, not failures.
        failed = self._keep_logs or isinstance(error, Exception)
        if failed and self._log_dir is None and self.log_directory.is_dir():
            # The programs write on into the renamed folder until they are killed.
            self.log_directory = self.log_directory.rename(f"{self.directory}-logs")
        if failed:
            message = f"the logs of the control plane are in {self.log_directory}"
            self._progress(message)
            if error is not None:
                error.add_note(message)
        if hasattr(self, "api"):
            self.api.close()
        self._supervisor.close()
        if hasattr(self, "_launcher"):
            for process in self.processes.values():
                process.release()

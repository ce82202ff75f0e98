"""The command line and configuration of each program: what makes five programs one control plane."""

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.controlplane.credentials import Credentials

LOOPBACK = "127.0.0.1"
COMPLETE_AFTER = "hack.cardquota.io/complete-after"
DELETE_AFTER = "hack.cardquota.io/delete-after"
OTHER_KUBELET = "hack.cardquota.io/other-kubelet"
"""A pod with this annotation, whatever its value, is bound and never started: its kubelet is played by somebody else."""

_ISSUER = "https://kubernetes.default.svc.cluster.local"
_STAGES = Path(__file__).with_name("stages.yaml")
_SCHEDULER_API = "kubescheduler.config.k8s.io/v1"
# A client's default of 50 requests per second would be what a benchmark measures.
_CLIENT_QPS = 1000
_CLIENT_BURST = 2000

_NEEDS_CONTROLLER_MANAGER = "ServiceAccount,TaintNodesByCondition"

# Everything is recorded once, when it is answered; watches when they end.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
}
_REST_OF_THE_AUDIT = {"level": "Metadata"}


@dataclass(frozen=True, slots=True)
class Component:
    """A program to start: the name of its binary, its arguments, and the URL that answers 200 once it is ready."""

    binary: str
    arguments: tuple[str, ...]
    ready_url: str


def etcd(directory: Path, client_port: int, peer_port: int) -> Component:
    """Store without fsync: its data does not outlive the run."""
    client, peer = f"http://{LOOPBACK}:{client_port}", f"http://{LOOPBACK}:{peer_port}"
    arguments = (
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=5m",
        "--log-level=warn",
    )
    return Component("etcd", arguments, f"{client}/health")


def api_server(
    directory: Path,
    credentials: Credentials,
    *,
    port: int,
    etcd_port: int,
    controller_manager: bool,
    audit_log: Path,
    audit_rules: Sequence[Mapping[str, Any]],
    extra: Sequence[str],
) -> Component:
    """The API server: RBAC, token file and client certificates, audit at metadata level but for what `audit_rules` say.

    Two admission plugins rely on a controller manager: without one, nobody makes the ServiceAccount that every pod
    needs, and nobody takes away the taint that a new node gets.
    """
    policy = directory / "audit-policy.yaml"
    policy.write_text(json.dumps({**_AUDIT_POLICY, "rules": [*audit_rules, _REST_OF_THE_AUDIT]}), "utf-8")
    arguments = (
        f"--etcd-servers=http://{LOOPBACK}:{etcd_port}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",  # it refuses to publish a loopback address
        f"--secure-port={port}",
        f"--tls-cert-file={credentials.server_certificate}",
        f"--tls-private-key-file={credentials.server_key}",
        f"--client-ca-file={credentials.ca_file}",
        f"--token-auth-file={credentials.token_file}",
        "--authorization-mode=RBAC",
        f"--service-account-key-file={credentials.service_account_key}",
        f"--service-account-signing-key-file={credentials.service_account_key}",
        f"--service-account-issuer={_ISSUER}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={audit_log}",
        "--audit-log-mode=blocking",  # a batch would reach the file half a minute later
        "--audit-log-maxsize=4096",
        *(() if controller_manager else (f"--disable-admission-plugins={_NEEDS_CONTROLLER_MANAGER}",)),
        *extra,
    )
    return Component("kube-apiserver", arguments, f"https://{LOOPBACK}:{port}/readyz")


def feature_gates(names: Sequence[str]) -> tuple[str, ...]:
    """The argument by which any program of Kubernetes switches these on."""
    return (f"--feature-gates={','.join(f'{name}=true' for name in names)}",) if names else ()


def scheduler(
    config: Path, credentials: Credentials, kubeconfig: Path, port: int, *, extra: Sequence[str] = ()
) -> Component:
    """A kube-scheduler with a configuration file made by `scheduler_configuration`."""
    arguments = (f"--config={config}", *_secure_serving(credentials, kubeconfig, port), *extra)
    return Component("kube-scheduler", arguments, f"https://{LOOPBACK}:{port}/readyz")


def scheduler_configuration(text: str | None, name: str, kubeconfig: Path) -> dict[str, Any]:
    """Complete a KubeSchedulerConfiguration (YAML) for a scheduler that runs alone on this machine.

    `name` becomes the schedulerName of the first profile unless that has one. Election is off, and requests are
    hardly throttled unless the text says otherwise.
    """
    given: dict[str, Any] = yaml.safe_load(text) if text else {}
    config: dict[str, Any] = {"apiVersion": _SCHEDULER_API, "kind": "KubeSchedulerConfiguration"} | given
    connection = {"qps": _CLIENT_QPS, "burst": _CLIENT_BURST} | (given.get("clientConnection") or {})
    config["clientConnection"] = connection | {"kubeconfig": str(kubeconfig)}
    config["leaderElection"] = (given.get("leaderElection") or {}) | {"leaderElect": False}
    first, *others = given.get("profiles") or [{}]
    config["profiles"] = [{"schedulerName": name} | first, *others]
    return config


def controller_manager(
    credentials: Credentials, kubeconfig: Path, port: int, *, extra: Sequence[str] = ()
) -> Component:
    """kube-controller-manager, each controller under its own ServiceAccount as in a real cluster."""
    arguments = (
        f"--kubeconfig={kubeconfig}",
        *_secure_serving(credentials, kubeconfig, port),
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={credentials.service_account_key}",
        f"--root-ca-file={credentials.ca_file}",
        f"--kube-api-qps={_CLIENT_QPS}",
        f"--kube-api-burst={_CLIENT_BURST}",
        *extra,
    )
    return Component("kube-controller-manager", arguments, f"https://{LOOPBACK}:{port}/healthz")


def kwok(directory: Path, kubeconfig: Path, port: int) -> Component:
    """One kwok for every node of the cluster.

    Its default lease is renewed too seldom for the node controller, which then marks the nodes NotReady every 40 s.
    """
    stages = string.Template(_STAGES.read_text("utf-8"))
    config = directory / "kwok.yaml"
    keys = {"COMPLETE_AFTER": COMPLETE_AFTER, "DELETE_AFTER": DELETE_AFTER, "OTHER_KUBELET": OTHER_KUBELET}
    config.write_text(stages.safe_substitute(keys), "utf-8")
    arguments = (
        f"--kubeconfig={kubeconfig}",
        f"--config={config}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        "--cidr=10.64.0.0/10",
        f"--server-address={LOOPBACK}:{port}",
    )
    return Component("kwok", arguments, f"http://{LOOPBACK}:{port}/healthz")


def _secure_serving(credentials: Credentials, kubeconfig: Path, port: int) -> tuple[str, ...]:
    return (
        f"--tls-cert-file={credentials.server_certificate}",
        f"--tls-private-key-file={credentials.server_key}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    )

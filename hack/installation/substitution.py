"""What has to be different outside a cluster, and nothing else: pure functions over rendered objects.

A kubelet would start a Deployment's container with its configuration mounted and its environment filled in; a Service
would lead the API server to it. Here a process on loopback takes the container's place.
"""

import copy
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

_NOTHING: Mapping[str, Any] = MappingProxyType({})

LOOPBACK = "127.0.0.1"
COMMAND = "cardquota"

_HOST = "localhost"
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a kubelet would have provided: the pod's name, its ports, its mounted files, its way to the API server.

    `ports` leads from container ports to local ones, `mounts` from mount paths to local folders.
    """

    pod_name: str
    namespace: str
    ports: Mapping[int, int]
    mounts: Mapping[str, Path]
    kubeconfig: Path


def container_of(deployment: Object) -> Object:
    """Return the only container of a Deployment's pods."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, Mapping)
    return container


def container_port(deployment: Object, name: str) -> int:
    """Return the number of a named port."""
    return int(next(p["containerPort"] for p in container_of(deployment)["ports"] if p["name"] == name))


def command_line(deployment: Object, around: Surroundings) -> tuple[str, ...]:
    """Return the command line that does locally what the Deployment's container would do.

    Different are: the program, the ports, the paths of mounted files, the variables that come from the pod, and that
    the process listens on loopback and finds the API server by a kubeconfig.
    """
    container = container_of(deployment)
    if container["command"] != [COMMAND]:
        raise ValueError(f"the container runs {container['command']}, not {COMMAND}")
    variables = environment(deployment, around)
    return (
        sys.executable,
        "-m",
        "cli",
        *(_argument(argument, variables, around) for argument in container["args"]),
        f"--kubeconfig={around.kubeconfig}",
        f"--bind-address={LOOPBACK}",
    )


def pod_command(pod: Object) -> tuple[str, ...]:
    """Return the command line that does locally what the only container of a stored pod would do."""
    (container,) = pod["spec"]["containers"]
    if container["command"] != [COMMAND]:
        raise ValueError(f"the container runs {container['command']}, not {COMMAND}")
    fields = {f"metadata.{key}": pod["metadata"][key] for key in ("name", "namespace")}
    variables = {e["name"]: fields[e["valueFrom"]["fieldRef"]["fieldPath"]] for e in container.get("env", ())}
    arguments = (_REFERENCE.sub(lambda m: variables[m[1]], argument) for argument in container["args"])
    return (sys.executable, "-m", "cli", *arguments)


def environment(deployment: Object, around: Surroundings) -> dict[str, str]:
    """Return the variables that a kubelet would set for the Deployment's container."""
    fields = {
        "metadata.name": around.pod_name,
        "metadata.namespace": around.namespace,
        "status.podIP": LOOPBACK,
    }
    return {
        entry["name"]: fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        for entry in container_of(deployment)["env"]
    }


def config_mounts(deployment: Object) -> dict[str, str]:
    """Return the ConfigMap behind each mount path of the Deployment's container."""
    volumes = {v["name"]: v for v in deployment["spec"]["template"]["spec"]["volumes"]}
    mounts = {m["mountPath"]: volumes[m["name"]] for m in container_of(deployment)["volumeMounts"]}
    return {path: volume["configMap"]["name"] for path, volume in mounts.items()}


def backend(service: Object, port: int, deployments: Sequence[Object]) -> tuple[Object, int]:
    """Return the Deployment behind a Service, and the container port behind one of its ports."""
    selector = service["spec"]["selector"].items()
    chosen = [d for d in deployments if selector <= d["spec"]["template"]["metadata"]["labels"].items()]
    if len(chosen) != 1:
        raise ValueError(f"Service {service['metadata']['name']} selects {len(chosen)} Deployments")
    target = next(p["targetPort"] for p in service["spec"]["ports"] if p["port"] == port)
    return chosen[0], container_port(chosen[0], target)


def without_pods(deployment: Object) -> dict[str, Any]:
    """Return the Deployment scaled to zero: the pods that it would have are processes here."""
    scaled = copy.deepcopy(dict(deployment))
    scaled["spec"]["replicas"] = 0
    return scaled


def on_loopback(configuration: Object, urls: Mapping[str, str], stored: Object = _NOTHING) -> dict[str, Any]:
    """Return a webhook configuration whose entries call `urls` (by Service name) in place of their Services.

    Entries whose Service is not in `urls` are left out: nothing serves them. One without a path keeps the path that it has
    in `stored`, as it would if it called a Service all the time.
    """
    paths = {w["name"]: urlsplit(w["clientConfig"].get("url", "")).path for w in stored.get("webhooks", ())}
    local = copy.deepcopy(dict(configuration))
    kept = [w for w in local["webhooks"] if w["clientConfig"]["service"]["name"] in urls]
    for webhook in kept:
        service = webhook["clientConfig"].pop("service")
        webhook["clientConfig"]["url"] = urls[service["name"]] + service.get(
            "path", paths.get(webhook["name"], "")
        )
    local["webhooks"] = kept
    return local


def for_loopback(certificate: Object) -> dict[str, Any]:
    """Return a Certificate of cert-manager that is good for the addresses of the processes as well."""
    local = copy.deepcopy(dict(certificate))
    if "dnsNames" in local["spec"]:
        local["spec"]["dnsNames"] = [*local["spec"]["dnsNames"], _HOST]
        local["spec"]["ipAddresses"] = [LOOPBACK]
    return local


def url(port: int) -> str:
    """Return the address of a process that serves TLS; its certificate is good for `localhost`."""
    return f"https://{_HOST}:{port}"


def _argument(argument: str, variables: Mapping[str, str], around: Surroundings) -> str:
    flag, equals, value = _REFERENCE.sub(lambda m: variables[m[1]], argument).partition("=")
    for path, folder in around.mounts.items():
        if value == path or value.startswith(path + os.sep):
            value = str(folder) + value.removeprefix(path)
    for port, local in around.ports.items():
        value = re.sub(rf"(^|:){port}$", rf"\g<1>{local}", value)
    return flag + equals + value

"""What all containers of a pod ask for together, counted the way kubectl and the scheduler count."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from core import names
from core.objects import raw as read

_NATIVE = "kubernetes.io/"
_KEPT = 4096
"""Names of resources that are remembered; a name has at most some 300 characters."""


def aggregate(
    spec: Mapping[str, Any], kind: str, granted: Mapping[str, Mapping[str, int]] = MappingProxyType({})
) -> dict[str, int]:
    """`limits` or `requests` of the whole pod in thousandths.

    The sum over the containers and the sidecars (init containers that restart always), or the peak of the init
    sequence where that is higher; what the pod itself names takes its place; then the overhead is added: the way kubectl
    and the scheduler count. `granted` has what a container holds at least, by its name.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in read.listed(spec, "initContainers") if "initContainers" in spec else ():
        asked = _container(container, kind, granted)
        if isinstance(container, dict) and container.get("restartPolicy") == "Always":
            _add(running, asked)
            # Of the others nothing has changed, and there may be thousands.
            _raise_to(peak, {name: running[name] for name in asked})
        else:
            _raise_to(peak, {name: amount + running.get(name, 0) for name, amount in asked.items()})
    for container in read.listed(spec, "containers"):
        _add(running, _container(container, kind, granted))
    if peak:
        _raise_to(running, peak)
    if "resources" in spec:
        if kind == "requests":
            # Those of the containers stand before a limit of the pod, as the API server defaults it.
            running = read.resources(spec, "resources", "limits") | running
        running |= read.resources(spec, "resources", kind)
    if "overhead" in spec:
        for name, amount in read.resources(spec, "overhead").items():
            # An overhead never turns "no limit" into a limit.
            if kind == "requests" or name in running:
                running[name] = running.get(name, 0) + amount
    return running


def _container(container: object, kind: str, granted: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """One container's amounts; a request that is missing equals the limit, as the API server defaults it."""
    resources = read.mapping(container, "resources")
    asked = read.resources(resources[kind]) if kind in resources else {}
    if kind == "requests" and "limits" in resources:
        asked = read.resources(resources["limits"]) | asked
    if granted:
        _raise_to(asked, granted.get(read.text(read.mapping({"c": container}, "c"), "name"), {}))
    return asked


def granted_by(status: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """What the node holds for each container: more than is asked for while a resize in place is not done."""
    found: dict[str, dict[str, int]] = {}
    for key in ("initContainerStatuses", "containerStatuses"):
        for entry in read.listed(status, key):
            held = read.resources(entry, "resources", "requests")
            _raise_to(held, read.resources(entry, "allocatedResources"))
            if held:
                found[read.text(entry, "name")] = held
    return found


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        total[name] = max(total.get(name, amount), amount)


def extended(amounts: Mapping[str, int]) -> list[str]:
    """Of the resources that are asked for, those that a DeviceClass may serve: all extended ones but shares of mGPU cards.

    Kubernetes' own names are none, save those that stand for a DeviceClass.
    """
    return [
        resource
        for resource, milli in amounts.items()
        if milli > 0 and "/" in resource and len(resource) <= names.LONGEST_RESOURCE and _extended(resource)
    ]


@lru_cache(maxsize=_KEPT)
def _extended(resource: str) -> bool:
    own = resource in names.MGPU_RESOURCES
    return not own and (_NATIVE not in resource or resource.startswith(names.DEVICE_CLASS_RESOURCE_PREFIX))

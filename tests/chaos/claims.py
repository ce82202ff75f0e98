"""The objects of dynamic resource allocation that the load has: a class, nodes that offer devices of it, claims and pods with them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from core import names
from tests.apiserver import manifests
from tests.apiserver.manifests import Object

CLASS: Final = "chaos.example.com"
_API: Final = "resource.k8s.io/v1"
_OFFERED: Final = 16
"""By each node: more than the quota, so that nobody waits for anything else."""


def cluster_objects(nodes: Sequence[str]) -> list[Object]:
    """The class, and what each of these nodes offers of it."""
    selectors = [{"cel": {"expression": f"device.driver == '{CLASS}'"}}]
    return [
        {
            "apiVersion": _API,
            "kind": "DeviceClass",
            "metadata": {"name": CLASS},
            "spec": {"selectors": selectors},
        },
        *(
            {
                "apiVersion": _API,
                "kind": "ResourceSlice",
                "metadata": {"name": f"chaos-{node}"},
                "spec": {
                    "driver": CLASS,
                    "nodeName": node,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"d{number}"} for number in range(_OFFERED)],
                },
            }
            for node in nodes
        ),
    ]


def of_tenants(templates: Mapping[str, int], shared: Mapping[str, int]) -> Iterable[Object]:
    """Templates and claims by how many devices they ask for."""
    for name, count in templates.items():
        spec = {"spec": _asking(count)}
        yield {"apiVersion": _API, "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}
    for name, count in shared.items():
        yield {
            "apiVersion": _API,
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": _asking(count),
        }


def pod(name: str, queue: str, templates: Iterable[str], shared: Iterable[str]) -> Object:
    """A pod with a claim of its own of each of these templates, and with these claims."""
    entries = [
        *({"name": f"own-{template}", "resourceClaimTemplateName": template} for template in templates),
        *({"name": f"shared-{claim}", "resourceClaimName": claim} for claim in shared),
    ]
    annotations = {names.QUEUE_NAME_ANNOTATION: queue}
    return manifests.pod(name, annotations=annotations, resourceClaims=entries)


def _asking(count: int) -> Object:
    exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}

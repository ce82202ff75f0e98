"""The table of the kinds that decisions rest on: where each is found on an API server, and what is kept of its objects.

The informers of both processes, the readers of live clusters and of files, and the ledger all go by it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from core import names
from core.objects import (
    Claim,
    ClaimTemplate,
    DeviceClass,
    Group,
    Job,
    Namespace,
    Node,
    Pod,
    Queue,
    claim,
    device_class,
    group,
    job,
    namespace,
    node,
    pod,
    queue,
)

View = Node | Namespace | Queue | Group | Job | DeviceClass | Claim | ClaimTemplate | Pod
V = TypeVar("V", Node, Namespace, Queue, Group, Job, DeviceClass, Claim, ClaimTemplate, Pod)


@dataclass(frozen=True, slots=True)
class Kind(Generic[V]):
    """A row. `versions` are those that are understood, the best one first; `resource` is the lower-case plural."""

    group: str
    versions: tuple[str, ...]
    resource: str
    kind: str
    collection: str
    """What all objects of the kind are called where there is a collection for each."""
    view: type[V]
    project: Callable[[Mapping[str, Any]], V]
    """What is kept of an object as the API server shows it."""
    namespaced: bool = False
    optional: bool = True
    """Whether there are API servers without it: it is younger than they are, or not installed."""
    dispensable: bool = False
    """Whether nobody is let in wrongly where it may not be read, as with the ClusterRole of a release that knew nothing of it."""


_VOLCANO: Final = names.VOLCANO_GROUPS
_DEVICES: Final = "resource.k8s.io"
_DEVICE_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")

NODE: Final = Kind("", ("v1",), "nodes", "Node", "nodes", Node, node.project, optional=False)
NAMESPACE: Final = Kind(
    "", ("v1",), "namespaces", "Namespace", "namespaces", Namespace, namespace.project, optional=False
)
QUEUE: Final = Kind(_VOLCANO, ("v1beta1",), "queues", "Queue", "queues", Queue, queue.project)
GROUP: Final = Kind(
    _VOLCANO, ("v1beta1",), "podgroups", "PodGroup", "groups", Group, group.project, namespaced=True
)
KUBERNETES_GROUP: Final = Kind(
    names.KUBERNETES_GROUPS,
    ("v1alpha2",),
    "podgroups",
    "PodGroup",
    "kubernetes_groups",
    Group,
    group.project_kubernetes,
    namespaced=True,
    # Before a pod that names one is let in, discovery is asked whether there are any: where there are, the pod waits.
    dispensable=True,
)
JOB: Final = Kind("batch.volcano.sh", ("v1alpha1",), "jobs", "Job", "jobs", Job, job.project, namespaced=True)
DEVICE_CLASS: Final = Kind(
    _DEVICES,
    _DEVICE_VERSIONS,
    "deviceclasses",
    "DeviceClass",
    "device_classes",
    DeviceClass,
    device_class.project,
)
CLAIM: Final = Kind(
    _DEVICES,
    _DEVICE_VERSIONS,
    "resourceclaims",
    "ResourceClaim",
    "claims",
    Claim,
    claim.project,
    namespaced=True,
)
CLAIM_TEMPLATE: Final = Kind(
    _DEVICES,
    _DEVICE_VERSIONS,
    "resourceclaimtemplates",
    "ResourceClaimTemplate",
    "templates",
    ClaimTemplate,
    claim.project_template,
    namespaced=True,
)
POD: Final = Kind("", ("v1",), "pods", "Pod", "pods", Pod, pod.project, namespaced=True, optional=False)

KINDS: Final[tuple[Kind[Any], ...]] = (
    NODE,
    NAMESPACE,
    QUEUE,
    GROUP,
    KUBERNETES_GROUP,
    JOB,
    DEVICE_CLASS,
    CLAIM,
    CLAIM_TEMPLATE,
    POD,
)
"""All of them, in the order in which they are taken in with the least to be counted anew."""

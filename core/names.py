"""Every annotation, label, gate, resource and manager name that crosses a process boundary, once."""

from collections.abc import Iterable
from typing import Final

# Ours.
GATE: Final = "cardquota.io/quota"
MANAGED_LABEL: Final = "cardquota.io/managed"
ASSIGNED_ANNOTATION: Final = "cardquota.io/assigned"
CHARGED_QUEUE_ANNOTATION: Final = "cardquota.io/queue"
"""Which queue a pod was let in by: it is charged to that one, whatever the objects say that it refers to."""
GANG_ANNOTATION: Final = "cardquota.io/gang"
"""How many members of a gang were let in together, those before them counted: it is unfinished as long as fewer are in."""
GANG_OF_ANNOTATION: Final = "cardquota.io/gang-of"
"""To which gang without a PodGroup, or PodGroup of Kubernetes itself, a pod belonged when it was let in, by its key: labels, owners
and the PodGroup of Volcano that it names may change after that."""
CLAIMS_ANNOTATION: Final = "cardquota.io/claims"
"""What was counted for the claims of a pod when it was let in, and their UIDs: others under their names were not."""
NODE_ANNOTATION: Final = "cardquota.io/node"
"""To which node a pod with mGPU shares was narrowed: room is booked for it there until it is bound."""
SHARE_CARD_ANNOTATION: Final = "cardquota.io/share-card"
"""Of which card the mGPU shares of a pod are, and how many hundredths: they count against its quota where `mgpu.cardQuota` says so."""
NOMINATED_ANNOTATION: Final = "cardquota.io/nominated-node"
"""For which node a pod with mGPU shares was nominated: room is booked for it there as well, but it may go elsewhere."""
LIFTED_ANNOTATION: Final = "cardquota.io/lifted"
"""What versions before wrote where a lift left nothing else behind."""
LET_IN: Final = frozenset({CHARGED_QUEUE_ANNOTATION, ASSIGNED_ANNOTATION, LIFTED_ANNOTATION})
"""The records of which each pod that was let in carries one. Not everything under our prefix: some of that users write."""
NAMESPACES_ANNOTATION: Final = "cardquota.io/namespaces"
"""On queues: the namespaces that may use it, by name."""
NAMESPACE_SELECTOR_ANNOTATION: Final = "cardquota.io/namespace-selector"
"""The same by their labels."""
DEFAULT_CARD_ANNOTATION: Final = "cardquota.io/default-card"
"""On namespaces: the card of their pods that ask for one and name none, where `cards.podsWithoutCardName` is `infer`."""
READ_AT_ANNOTATION: Final = "cardquota.io/read-at"
"""On the List that a dump is: when the cluster was read. A file by itself does not know."""
UNSEEN_ANNOTATION: Final = "cardquota.io/unseen"
"""On such a List: the kinds of which nothing could be listed, with commas between them."""
PODS_OF_ANNOTATION: Final = "cardquota.io/pods-of"
"""On such a List: the only namespace whose pods could be listed."""
HOME_ANNOTATION: Final = "cardquota.io/installed-in"
"""On the ClusterRole of the chart for people who use queues: the namespace of the release."""
GANG_NAME_ANNOTATION: Final = "cardquota.io/gang-name"
"""On pod templates: the gang that the pods belong to, where no PodGroup says so. Users write it, so it is no record."""
GANG_SIZE_ANNOTATION: Final = "cardquota.io/gang-size"
"""How many members of it start together."""
GANG_KEYS: Final = (GANG_NAME_ANNOTATION, GANG_SIZE_ANNOTATION)
LEADER_WORKER_GROUP_LABEL: Final = "leaderworkerset.sigs.k8s.io/group-key"
GROUP_LABELS: Final = (LEADER_WORKER_GROUP_LABEL,)
"""Labels of pods that are equal for those that belong together, though their controlling owners differ."""
OWN_PREFIX: Final = "cardquota.io/"
FIELD_MANAGER: Final = "cardquota"
ANSWERS_ROOT: Final = "/answers/v1/"
"""Under which the leader answers people."""
TOKEN_HEADER: Final = "X-Cardquota-Token"  # noqa: S105 - a name
"""Where a caller's token stands that an API server would take off on its way: it keeps `Authorization` for itself."""

# Cards.
CARD_QUOTA_ANNOTATION: Final = "volcano.sh/card.quota"
CARD_REQUEST_ANNOTATION: Final = "volcano.sh/card.request"
CARD_NAME_ANNOTATION: Final = "volcano.sh/card.name"
CARD_NAME_MISPRINT: Final = "volcano.sh/card.card"
"""Occurs once in the documents the project was made from; never read, only warned about."""

NVIDIA_RESOURCE: Final = "nvidia.com/gpu"
MPS_RESOURCE: Final = "nvidia.com/gpu.shared"
MIG_RESOURCE_PREFIX: Final = "nvidia.com/mig-"
MPS_REPLICAS_LABEL: Final = "nvidia.com/gpu.replicas"

# Queues and groups, as Volcano writes them.
VOLCANO_GROUPS: Final = "scheduling.volcano.sh"
"""The API group of its PodGroups."""
QUEUE_NAME_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"
JOB_QUEUE_ANNOTATION: Final = "volcano.sh/queue-name"
GROUP_NAME_ANNOTATION: Final = "scheduling.k8s.io/group-name"
VOLCANO_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
TASK_SPEC_ANNOTATION: Final = "volcano.sh/task-spec"
DRA_QUOTA_ANNOTATION: Final = "volcano.sh/dra.quota"
ROOT_QUEUE: Final = "root"

# mGPU.
MGPU_CORE: Final = "vke.volcengine.com/mgpu-core"
MGPU_MEMORY: Final = "vke.volcengine.com/mgpu-memory"
MGPU_RESOURCES: Final = (MGPU_CORE, MGPU_MEMORY)
MGPU_NODE_TYPE_LABEL: Final = "vke.node.gpu.schedule"
MGPU_POLICY_KEY: Final = "vke.volcengine.com/mgpu-compute-policy"
"""The same key is a node label and a pod annotation."""
MGPU_MULTIPLE_ANNOTATION: Final = "vke.volcengine.com/container-multiple-gpu"
GPU_INDEX_PREFIX: Final = "vke.volcengine.com/gpu-index-container-"
GPU_INDEX_GUARD_PREFIX: Final = "vke.volcengine.com/gpu-index-"
"""What the protection rules match: wider than what is written, so that no near miss slips through."""
ASSUMED_ANNOTATION: Final = "vke.volcengine.com/assumed"
MGPU_CONTAINER_NAME_MAX: Final = 43
"""An annotation key's name part holds 63 characters; `gpu-index-container-` takes 20 of them."""

LONGEST_RESOURCE: Final = 317
"""Characters of the name of a resource: 253 of the domain, the slash, and 63. Admission sees longer ones that are never stored."""

# CrossQuota.
CROSSQUOTA_PREFIX: Final = "volcano.sh/crossquota-"
"""On nodes, with the name of a resource after it."""
CROSSQUOTA_STRATEGY_ANNOTATION: Final = CROSSQUOTA_PREFIX + "scoring-strategy"
"""On pods."""

# Kubernetes.
KUBERNETES_GROUPS: Final = "scheduling.k8s.io"
"""The API group of its own PodGroups."""
DEVICE_CLASS_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""With the name of a DeviceClass after it: the resource that stands for one device of the class."""
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
NODE_NAME_FIELD: Final = "metadata.name"
"""The one field that node affinity knows; the API server takes one name for it."""
MIRROR_POD_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""On the image of a static pod, which only kubelets make."""
NODE_ACCOUNTS: Final = "system:node:"
"""What the user names of kubelets start with."""
TEMPLATE_HASH_LABEL: Final = "pod-template-hash"
DEFAULT_SCHEDULER: Final = "default-scheduler"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Every namespace has it: the API server sees to that."""
LAST_APPLIED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


_READ_ON_PODS: Final = (
    OWN_PREFIX,
    "volcano.sh/",
    "scheduling.volcano.sh/",
    "scheduling.k8s.io/",
    "vke.volcengine.com/",
    MIRROR_POD_ANNOTATION,
)


def is_read_on_pods(annotation: str) -> bool:
    """Whether rules or records may be about this annotation of a pod: every one of the domains that the names above are in."""
    return annotation.startswith(_READ_ON_PODS)


RECORD_PREFIXES: Final = (GPU_INDEX_GUARD_PREFIX, OWN_PREFIX)
"""What a record begins with, unless it is `ASSUMED_ANNOTATION`; of ours users write the `GANG_KEYS`."""


def records(annotations: Iterable[str]) -> list[str]:
    """Those of the keys that only the controller may write."""
    found = []
    for key in annotations:
        if key == ASSUMED_ANNOTATION or (key.startswith(RECORD_PREFIXES) and key not in GANG_KEYS):
            found.append(key)  # noqa: PERF401 - a comprehension is one more call, with every pod
    return found


def is_record(annotation: str) -> bool:
    """Whether only the controller may write this pod annotation: GPU indexes, `assumed`, and of ours what users do not write."""
    if annotation in GANG_KEYS:
        return False
    return annotation == ASSUMED_ANNOTATION or annotation.startswith(RECORD_PREFIXES)


def is_protected(annotation: str) -> bool:
    """Whether this annotation of a stored pod changes by the controller alone: its records, and the gang that the pod was made for."""
    return annotation in GANG_KEYS or is_record(annotation)

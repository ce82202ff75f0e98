"""The catalogue of reasons: one stable code, what it means and what to do about it.

Admission errors, events, metric labels, `plan`, `place`, `check` and the documentation all name a reason by the
code given here. The message itself is built where the numbers are; the remedy is the same everywhere.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """A code that never changes its meaning, one line of what it says, and the way out."""

    code: str
    meaning: str
    remedy: str


def _catalogue(*reasons: Reason) -> dict[str, Reason]:
    catalogue = {reason.code: reason for reason in reasons}
    if len(catalogue) != len(reasons):
        raise ValueError("a reason code is listed twice")
    return catalogue


# Why a pod waits (events on pods and podgroups). The first five keep the names under which Volcano users know them.
GET_TASK_REQUEST_RESOURCE_FAILED: Final = "GetTaskRequestResourceFailed"
EMPTY_QUEUE_CAPABILITY: Final = "EmptyQueueCapability"
INSUFFICIENT_CPU_QUOTA: Final = "InsufficientCPUQuota"
INSUFFICIENT_MEMORY_QUOTA: Final = "InsufficientMemoryQuota"
INSUFFICIENT_SCALAR_QUOTA: Final = "InsufficientScalarQuota"
QUEUE_NOT_FOUND: Final = "QueueNotFound"
QUEUE_NOT_OPEN: Final = "QueueNotOpen"
QUEUE_HIERARCHY_BROKEN: Final = "QueueHierarchyBroken"
GANG_INCOMPLETE: Final = "GangIncomplete"
NO_FREE_CARD: Final = "NoFreeCard"
AFFINITY_EXCLUDES_CARDS: Final = "AffinityExcludesCards"
INSUFFICIENT_DEVICE_QUOTA: Final = "InsufficientDeviceQuota"
CLAIM_NOT_FOUND: Final = "ClaimNotFound"
CLAIM_NOT_COMPUTABLE: Final = "ClaimNotComputable"
CARD_QUOTA_MALFORMED: Final = "CardQuotaMalformed"
RESERVED_TOO_LONG: Final = "ReservedTooLong"

# Why an object is refused, or warned about.
OBJECT_MALFORMED: Final = "ObjectMalformed"
MANIFEST_MALFORMED: Final = "ManifestMalformed"
CARD_NAME_MALFORMED: Final = "CardNameMalformed"
CARD_REQUEST_MALFORMED: Final = "CardRequestMalformed"
CARD_RESOURCES_DIFFER: Final = "CardResourcesDiffer"
CARD_RESOURCE_MISSING: Final = "CardResourceMissing"
CARD_UNKNOWN: Final = "CardUnknown"
CARD_NAME_MISSING: Final = "CardNameMissing"
CARD_NAME_MISSPELT: Final = "CardNameMisspelt"
NODE_NAME_PRESET: Final = "NodeNamePreset"
RECORD_PROTECTED: Final = "RecordProtected"
GATE_PROTECTED: Final = "GateProtected"
FIELD_FIXED: Final = "FieldFixed"
MGPU_QUANTITY: Final = "MgpuQuantity"
MGPU_LIMIT_DIFFERS: Final = "MgpuLimitDiffers"
MGPU_INIT_CONTAINER: Final = "MgpuInitContainer"
MGPU_CONTAINER_NAME: Final = "MgpuContainerName"
MGPU_CORE: Final = "MgpuCore"
MGPU_MEMORY: Final = "MgpuMemory"
MGPU_CARD_COUNTS: Final = "MgpuCardCounts"
MGPU_POLICY: Final = "MgpuPolicy"

# Why a pod does not fit a node, or why a bind is refused.
MGPU_NODE_TYPE: Final = "MgpuNodeType"
MGPU_POLICY_MISMATCH: Final = "MgpuPolicyMismatch"
MGPU_TOO_FEW_CARDS: Final = "MgpuTooFewCards"
MGPU_NO_ROOM: Final = "MgpuNoRoom"
NODE_NOT_FOUND: Final = "NodeNotFound"
POD_NOT_FOUND: Final = "PodNotFound"
POD_REPLACED: Final = "PodReplaced"
POD_GATED: Final = "PodGated"
POD_ALREADY_BOUND: Final = "PodAlreadyBound"
POD_TERMINATING: Final = "PodTerminating"
NO_LEADER: Final = "NoLeader"
API_UNAVAILABLE: Final = "ApiUnavailable"

CATALOGUE: Final = _catalogue(
    Reason(
        GET_TASK_REQUEST_RESOURCE_FAILED,
        "what the pod asks for cannot be computed",
        "give the pod limits for the card's resource, or wait for a node that carries the card",
    ),
    Reason(
        EMPTY_QUEUE_CAPABILITY,
        "the queue has neither card quota nor capability",
        "set the annotation volcano.sh/card.quota on the queue",
    ),
    Reason(INSUFFICIENT_CPU_QUOTA, "the queue has no CPU left", "wait, or raise spec.capability.cpu"),
    Reason(
        INSUFFICIENT_MEMORY_QUOTA, "the queue has no memory left", "wait, or raise spec.capability.memory"
    ),
    Reason(
        INSUFFICIENT_SCALAR_QUOTA,
        "the queue has no card or share left",
        "wait for cards to come back, or raise the queue's card quota",
    ),
    Reason(QUEUE_NOT_FOUND, "the pod's queue does not exist", "create the queue, or name another one"),
    Reason(QUEUE_NOT_OPEN, "the pod's queue is closed or closing", "open the queue"),
    Reason(
        QUEUE_HIERARCHY_BROKEN,
        "the chain of parents of the queue has a gap or a cycle",
        "mend spec.parent of the named queue",
    ),
    Reason(
        GANG_INCOMPLETE, "fewer members than minMember exist", "wait for the missing pods, or lower minMember"
    ),
    Reason(
        NO_FREE_CARD,
        "the queue has quota, but no node has room",
        "wait for cards to come free, or add a node",
    ),
    Reason(
        AFFINITY_EXCLUDES_CARDS,
        "the pod's own affinity admits no node of its cards",
        "widen the node affinity, or name another card",
    ),
    Reason(
        INSUFFICIENT_DEVICE_QUOTA, "the queue has no devices left", "wait, or raise the DeviceClass quota"
    ),
    Reason(CLAIM_NOT_FOUND, "a ResourceClaim or its template does not exist", "create the named object"),
    Reason(CLAIM_NOT_COMPUTABLE, "a ResourceClaim asks in a way that cannot be counted", "change the claim"),
    Reason(
        CARD_QUOTA_MALFORMED,
        "the queue's card quota cannot be read, so the queue has no cards",
        'write a JSON object of whole numbers, such as {"NVIDIA-H200": 8}',
    ),
    Reason(
        RESERVED_TOO_LONG,
        "the pod holds quota but is not bound",
        "look at the scheduler's events of the pod; delete it to give the quota back",
    ),
    Reason(OBJECT_MALFORMED, "a field has the wrong type", "correct the field that the path names"),
    Reason(
        MANIFEST_MALFORMED,
        "a manifest is no YAML or JSON, names a key twice, or holds something that is no Kubernetes object",
        "correct the line that is named",
    ),
    Reason(
        CARD_NAME_MALFORMED,
        "the card name breaks the grammar",
        "write names as `cardquota cards` shows them, joined by | without blanks",
    ),
    Reason(
        CARD_REQUEST_MALFORMED,
        "the card request of the job cannot be read",
        'write a JSON object of whole numbers, such as {"NVIDIA-H200": 8}',
    ),
    Reason(
        CARD_RESOURCES_DIFFER,
        "the alternatives of the card name need different resources",
        "name only alternatives that are served by one resource",
    ),
    Reason(
        CARD_RESOURCE_MISSING,
        "the pod does not ask for the card's resource",
        "add the resource to the limits",
    ),
    Reason(CARD_UNKNOWN, "no node carries the card now", "check the spelling against `cardquota cards`"),
    Reason(
        CARD_NAME_MISSING,
        "the pod asks for a card resource without naming a card, so no card quota counts it",
        "add the annotation volcano.sh/card.name to the pod template",
    ),
    Reason(CARD_NAME_MISSPELT, "volcano.sh/card.card is not read", "write volcano.sh/card.name"),
    Reason(
        NODE_NAME_PRESET, "spec.nodeName is set at creation", "leave spec.nodeName out, use node affinity"
    ),
    Reason(RECORD_PROTECTED, "a record of the controller was set or edited", "leave the record out"),
    Reason(
        GATE_PROTECTED, "only the controller lifts the quota gate", "free quota, or raise the queue's quota"
    ),
    Reason(
        FIELD_FIXED, "the field is fixed once the quota gate is gone", "delete the pod and create it anew"
    ),
    Reason(MGPU_QUANTITY, "an mGPU quantity is not a whole number above 0", "write a whole number above 0"),
    Reason(MGPU_LIMIT_DIFFERS, "an mGPU request differs from its limit", "set the limit only"),
    Reason(
        MGPU_INIT_CONTAINER,
        "an init container asks for mGPU",
        "move the mGPU work to a container of spec.containers",
    ),
    Reason(MGPU_CONTAINER_NAME, "the container's name is too long", "use at most 43 characters"),
    Reason(MGPU_CORE, "the mGPU core share is not possible", "use 1 to 99, or a multiple of 100"),
    Reason(MGPU_MEMORY, "the mGPU memory does not go with the core share", "correct mgpu-memory (MiB)"),
    Reason(
        MGPU_CARD_COUNTS,
        "container-multiple-gpu does not go with the containers",
        "write one whole number per container of spec.containers, in their order",
    ),
    Reason(
        MGPU_POLICY, "the compute policy is unknown or does not go with several cards", "correct the policy"
    ),
    Reason(
        MGPU_NODE_TYPE, "the node serves no mGPU shares", "use a node labelled vke.node.gpu.schedule=mgpu"
    ),
    Reason(MGPU_POLICY_MISMATCH, "pod and node have different compute policies", "change the pod's policy"),
    Reason(MGPU_TOO_FEW_CARDS, "a container asks for more cards than the node has", "ask for fewer cards"),
    Reason(MGPU_NO_ROOM, "the node's cards have no room for the pod", "wait for shares to come free"),
    Reason(NODE_NOT_FOUND, "the node does not exist", "the scheduler will choose another node"),
    Reason(POD_NOT_FOUND, "the pod does not exist", "nothing: the pod is gone"),
    Reason(POD_REPLACED, "another pod has the name now", "nothing: the scheduler sees the new pod"),
    Reason(POD_GATED, "the pod still carries a scheduling gate", "wait until the gates are lifted"),
    Reason(POD_ALREADY_BOUND, "the pod is bound already", "nothing"),
    Reason(POD_TERMINATING, "the pod is being deleted or has ended", "nothing"),
    Reason(
        API_UNAVAILABLE,
        "the API server did not answer the binding hook in time",
        "the scheduler retries; check the API server",
    ),
    Reason(
        NO_LEADER, "no leader of the controller can be reached", "the scheduler retries; check the controller"
    ),
)


def remedy(code: str) -> str:
    """The way out of a reason. Raises KeyError for a code that the catalogue does not hold."""
    return CATALOGUE[code].remedy

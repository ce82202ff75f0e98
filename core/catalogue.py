"""The catalogue of reasons: what each code means and what to do about it.

The message itself is built where the numbers are; the remedy is the same everywhere.
"""

from dataclasses import dataclass
from typing import Final

from core import reasons


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


CATALOGUE: Final = _catalogue(
    Reason(
        reasons.GET_TASK_REQUEST_RESOURCE_FAILED,
        "what the pod asks for cannot be computed",
        "give the pod limits for the card's resource, or wait for a node that carries the card",
    ),
    Reason(
        reasons.EMPTY_QUEUE_CAPABILITY,
        "the queue has neither card quota nor capability",
        "set the annotation volcano.sh/card.quota on the queue",
    ),
    Reason(reasons.INSUFFICIENT_CPU_QUOTA, "the queue has no CPU left", "wait, or raise spec.capability.cpu"),
    Reason(
        reasons.INSUFFICIENT_MEMORY_QUOTA,
        "the queue has no memory left",
        "wait, or raise spec.capability.memory",
    ),
    Reason(
        reasons.INSUFFICIENT_SCALAR_QUOTA,
        "the queue has no card or share left",
        "wait for cards or shares to come back, or raise the queue's quota",
    ),
    Reason(
        reasons.LIFTED,
        "the pod, which was said to wait, has got its quota",
        "nothing: a scheduler looks for a node now, and its own events say how that goes",
    ),
    Reason(
        reasons.QUEUE_NOT_FOUND, "the pod's queue does not exist", "create the queue, or name another one"
    ),
    Reason(
        reasons.QUEUE_NOT_OPEN,
        "the pod's queue is closed or closing, or the root of all queues",
        "open the queue, or name another one",
    ),
    Reason(
        reasons.QUEUE_NOT_ALLOWED,
        "the pod's queue is not open to the namespace of the pod",
        "name another queue, or have cardquota.io/namespaces or cardquota.io/namespace-selector of the queue admit the namespace",
    ),
    Reason(
        reasons.QUEUE_HIERARCHY_BROKEN,
        "the chain of parents of the queue has a gap or a cycle",
        "mend spec.parent of the named queue",
    ),
    Reason(
        reasons.OTHER_GATES,
        "the pod carries scheduling gates of others, and quota is given to nobody who could not start with it",
        "wait for who put them there; name gates that wait for ours in gates.waitForUs",
    ),
    Reason(
        reasons.GANG_INCOMPLETE,
        "fewer members than minMember exist",
        "wait for the missing pods, or lower minMember",
    ),
    Reason(
        reasons.GANG_SEARCH_GIVEN_UP,
        "the gang has so many different members that no way to fit them all was found in time",
        "let its members ask for the same, or name fewer cards in each",
    ),
    Reason(
        reasons.POD_GROUP_NOT_FOUND,
        "the PodGroup that the pod belongs to does not exist, or is not named yet",
        "wait for the controller that makes it, create it, or take the group's name off the pod template",
    ),
    Reason(
        reasons.LIFT_REFUSED,
        "the API server, or somebody's webhook or policy, refuses the write that lifts the gate, so the quota was given back",
        "mend what the message names; the pod is tried again by itself within minutes",
    ),
    Reason(
        reasons.MIXED_CARDS,
        "the pods of one group must be served by one card, and no card serves them all",
        "wait until one card has enough free, name one card in all tasks, or set cards.multiCardJob and cards.multiCardTask to spread",
    ),
    Reason(
        reasons.NO_FREE_CARD,
        "the queue has quota, but no node has room",
        "wait for cards to come free, or add a node",
    ),
    Reason(
        reasons.AFFINITY_EXCLUDES_CARDS,
        "the pod's own affinity admits no node of its cards",
        "widen the node affinity, or name another card",
    ),
    Reason(
        reasons.INSUFFICIENT_DEVICE_QUOTA,
        "the queue has no devices left",
        "wait, or raise the DeviceClass quota",
    ),
    Reason(
        reasons.CLAIM_NOT_FOUND, "a ResourceClaim or its template does not exist", "create the named object"
    ),
    Reason(
        reasons.CLAIM_NOT_COMPUTABLE,
        "a ResourceClaim asks in a way that cannot be counted",
        "change the claim",
    ),
    Reason(
        reasons.DEVICE_QUOTA_MALFORMED,
        "the queue's device quota cannot be read, so the DeviceClasses it may be about are closed",
        "correct the field that the path names",
    ),
    Reason(
        reasons.CARD_QUOTA_MALFORMED,
        "the queue's card quota cannot be read, so the queue has no cards",
        'write a JSON object of whole numbers, such as {"NVIDIA-H200": 8}',
    ),
    Reason(
        reasons.RESERVED_TOO_LONG,
        "the pod holds quota but is not bound",
        "look at the scheduler's events of the pod; delete it to give the quota back",
    ),
    Reason(
        reasons.MGPU_NODE_FULL,
        "the scheduler sends the pod to a node without room again and again, while others have room",
        "have the scheduler ask the extender, or delete the pod, so that its successor is led to a node with room",
    ),
    Reason(
        reasons.MGPU_ROOM_GONE,
        "none of the nodes that the pod was led to takes it any more",
        "undo what the message says of them, or delete the pod, so that its successor is led elsewhere",
    ),
    Reason(
        reasons.RESERVATION_EVICTED,
        "the pod held quota without being bound for longer than reservation.evictAfter, and was deleted",
        "nothing: its owner creates it anew; if that goes on, find out why no node takes it",
    ),
    Reason(
        reasons.GANG_UNFINISHED,
        "some members of a gang hold quota and cannot start, for others that have to start with them are not in",
        "delete pods of this gang or of another one in the same plight, or set reservation.unfinishedAfter",
    ),
    Reason(
        reasons.GANG_GIVEN_BACK,
        "the pod belonged to a gang that was unfinished for longer than reservation.unfinishedAfter, and was deleted",
        "nothing: its owner creates it anew, and it waits until the whole gang fits",
    ),
    Reason(
        reasons.TASK_SPREAD,
        "pods of one task of a gang got different cards, and Volcano's scheduler may start none of them",
        "set predicateErrorCacheEnable: false in Volcano's scheduler configuration, or cards.multiCardTask to single",
    ),
    Reason(
        reasons.TERMINATION_OVERDUE,
        "the pod was deleted, had to be gone more than a minute ago and still runs, so that it counts again",
        "find out why the kubelet of its node does not end it; nobody is evicted for it",
    ),
    Reason(
        reasons.ROLLOUT_NEEDS_QUOTA,
        "a rollout waits for quota that older pods of the same Deployment hold",
        "set maxSurge 0 and maxUnavailable 1 on the Deployment, or raise the queue's card quota",
    ),
    Reason(
        reasons.QUOTA_EXCEEDED,
        "the queue uses more than its quota, as after a cut, or when a pod runs on that was deleted",
        "wait until pods end, delete some, or raise the queue's quota",
    ),
    Reason(
        reasons.QUEUE_ACCESS_MALFORMED,
        "an annotation of the queue that says who may use it cannot be read, so it admits nobody",
        "write names and * patterns with commas between, or a label selector as kubectl -l takes it",
    ),
    Reason(reasons.OBJECT_MALFORMED, "a field has the wrong type", "correct the field that the path names"),
    Reason(
        reasons.MANIFEST_MALFORMED,
        "a manifest is no YAML or JSON, names a key twice, or holds something that is no Kubernetes object",
        "correct the line that is named",
    ),
    Reason(
        reasons.CARD_NAME_MALFORMED,
        "the card name breaks the grammar",
        "write names as `cardquota cards` shows them, joined by | without blanks",
    ),
    Reason(
        reasons.AFFINITY_TOO_LARGE,
        "the required node affinity of a pod that waits at the gate has more than 2,000 expressions",
        "label the nodes that are meant, and select that label",
    ),
    Reason(
        reasons.TOO_MANY_TEMPLATES,
        "one object has more than 500 new or changed pod templates",
        "make several objects of it",
    ),
    Reason(
        reasons.OBJECT_TOO_LARGE,
        "a pod has more than 10,000 containers, amounts, claims, gates and owners, or all templates of a job more than 20,000 (a container counts as five); or a queue lists more than 5,000 resources or DeviceClasses",
        "ask for less in one object",
    ),
    Reason(
        reasons.CARD_REQUEST_MALFORMED,
        "the card request of the job cannot be read",
        'write a JSON object of whole numbers, such as {"NVIDIA-H200": 8}',
    ),
    Reason(
        reasons.CARD_RESOURCES_DIFFER,
        "the alternatives of the card name need different resources",
        "name only alternatives that are served by one resource",
    ),
    Reason(
        reasons.CARD_RESOURCE_MISSING,
        "the pod does not ask for the card's resource",
        "add the resource to the limits",
    ),
    Reason(
        reasons.CARD_UNKNOWN, "no node carries the card now", "check the spelling against `cardquota cards`"
    ),
    Reason(
        reasons.CARD_NAME_MISSING,
        "the pod asks for a card resource without naming a card, so no card quota counts it",
        "add the annotation volcano.sh/card.name to the pod template",
    ),
    Reason(
        reasons.KEY_UNREAD,
        "a key of a manifest is read by nobody where it stands",
        "write it as the message says, and where it is read",
    ),
    Reason(reasons.CARD_NAME_MISSPELT, "volcano.sh/card.card is not read", "write volcano.sh/card.name"),
    Reason(
        reasons.DEVICE_QUOTA_CONTRADICTORY,
        "two parts of the queue's device quota contradict each other",
        "write the same limits wherever a DeviceClass is limited, and guarantee, deserved, capability in rising order",
    ),
    Reason(
        reasons.DEVICE_QUOTA_INERT,
        "a part of the device quota is stored and not enforced",
        "set spec.dra.capability to limit devices",
    ),
    Reason(
        reasons.DEVICE_QUOTA_ABOVE_PARENT,
        "a queue above has a smaller limit, which holds for this queue too",
        "lower the limit, or raise that of the queue above",
    ),
    Reason(
        reasons.CARD_QUOTA_ABOVE_PARENT,
        "queues are promised more cards together than the queue above them has",
        "nothing where cards are oversold on purpose; else lower a quota, or raise that of the queue above",
    ),
    Reason(
        reasons.CARD_QUOTA_INERT,
        "a card quota does not hold for the queues below its queue, as cards.hierarchy is off",
        "set cards.hierarchy, or give each queue below a quota of its own",
    ),
    Reason(
        reasons.DEVICE_QUOTA_PRUNED,
        "the API server dropped spec.dra, since its definition of Queue does not have the field",
        "put the same JSON into the annotation volcano.sh/dra.quota, or set dra.queueCRD to extend and apply again",
    ),
    Reason(
        reasons.DEVICES_COUNTED_TWICE,
        "pods of the queue may have the same devices by a card name and by a claim, under two quotas",
        "give the queue one of the two: no card quota, or a limit of 0 for the DeviceClass",
    ),
    Reason(
        reasons.QUEUE_DEFINITION_EXTENDED,
        "the definition of Queue lacked spec.dra, and the controller has added it",
        "apply the queues again whose events say that they lost their device quota",
    ),
    Reason(
        reasons.DEVICE_CLASS_UNKNOWN,
        "the cluster has no DeviceClass of that name now",
        "check the spelling against kubectl get deviceclasses",
    ),
    Reason(
        reasons.DEVICE_CLASS_CLOSED,
        "a count of 0 lets no pod of the queue use the DeviceClass",
        "leave the DeviceClass out to set no limit",
    ),
    Reason(
        reasons.CARD_REQUEST_DIFFERS,
        "the card request of the job is not what its tasks add up to",
        "declare replicas times cards for each card name, or leave the request out",
    ),
    Reason(
        reasons.BEYOND_QUOTA,
        "more cards are asked for than the whole quota of the queue",
        "ask for less, name another queue, or raise the queue's card quota",
    ),
    Reason(
        reasons.QUEUE_NAME_UNREAD,
        "a task of a Volcano Job names another queue than the job",
        "name the queue in spec.queue of the job",
    ),
    Reason(
        reasons.QUOTA_BEYOND_CLUSTER,
        "the quotas of all queues add up to more cards than the nodes have",
        "nothing where cards are oversold on purpose; else lower a quota",
    ),
    Reason(
        reasons.QUEUE_IN_USE,
        "a queue is deleted of which cards, shares or devices are in use",
        "close the queue and let its pods end first, or create it again",
    ),
    Reason(
        reasons.QUOTA_BELOW_USE,
        "a quota is lowered below what is in use",
        "wait for pods to end, or delete some; nothing is evicted",
    ),
    Reason(
        reasons.NODE_NAME_PRESET,
        "spec.nodeName is set at creation",
        "leave spec.nodeName out, use node affinity",
    ),
    Reason(reasons.RECORD_PROTECTED, "a record of the controller was set or edited", "leave the record out"),
    Reason(
        reasons.GATE_PROTECTED,
        "only the controller lifts the quota gate",
        "free quota, or raise the queue's quota",
    ),
    Reason(
        reasons.FIELD_FIXED,
        "the field is fixed once the quota gate is gone",
        "delete the pod and create it anew",
    ),
    Reason(
        reasons.MGPU_QUANTITY,
        "an mGPU quantity is not a whole number above 0",
        "write a whole number above 0",
    ),
    Reason(reasons.MGPU_LIMIT_DIFFERS, "an mGPU request differs from its limit", "set the limit only"),
    Reason(
        reasons.MGPU_INIT_CONTAINER,
        "an init container asks for mGPU",
        "move the mGPU work to a container of spec.containers",
    ),
    Reason(reasons.MGPU_CONTAINER_NAME, "the container's name is too long", "use at most 43 characters"),
    Reason(reasons.MGPU_CORE, "the mGPU core share is not possible", "use 1 to 99, or a multiple of 100"),
    Reason(
        reasons.MGPU_MEMORY, "the mGPU memory does not go with the core share", "correct mgpu-memory (MiB)"
    ),
    Reason(
        reasons.MGPU_CARD_COUNTS,
        "container-multiple-gpu does not go with the containers",
        "write one whole number per container of spec.containers, in their order",
    ),
    Reason(
        reasons.MGPU_POLICY,
        "the compute policy is unknown or does not go with several cards",
        "correct the policy",
    ),
    Reason(
        reasons.CROSS_QUOTA_MALFORMED,
        "a CrossQuota annotation of a node cannot be read",
        "write an amount such as 32 or 64Gi, or a percentage above 0 and at most 100",
    ),
    Reason(
        reasons.CROSS_QUOTA_UNUSED,
        "a CrossQuota annotation of a node has no effect",
        "name a resource of crossQuota.quotaResources, in one of the two forms",
    ),
    Reason(
        reasons.CROSS_QUOTA_STRATEGY,
        "the CrossQuota scoring strategy is unknown",
        "write most-allocated or least-allocated",
    ),
    Reason(
        reasons.CARD_NOT_ON_NODE,
        "the node carries none of the pod's cards, and others that it would use, or the pod never passed the gate",
        "look at the node's labels, or delete the pod, so that its successor is led to its card",
    ),
    Reason(
        reasons.CARD_NO_ROOM,
        "the node carries the card, but has too few of it free",
        "wait for pods there to end, or ask for fewer cards",
    ),
    Reason(
        reasons.MGPU_NODE_TYPE,
        "the node serves no mGPU shares",
        "use a node labelled vke.node.gpu.schedule=mgpu",
    ),
    Reason(
        reasons.MGPU_POLICY_MISMATCH,
        "pod and node have different compute policies",
        "change the pod's policy",
    ),
    Reason(
        reasons.MGPU_TOO_FEW_CARDS, "a container asks for more cards than the node has", "ask for fewer cards"
    ),
    Reason(reasons.MGPU_NO_ROOM, "the node's cards have no room for the pod", "wait for shares to come free"),
    Reason(
        reasons.CROSS_QUOTA_EXCEEDED,
        "pods without GPU may use no more of the node",
        "wait for such pods to end, or raise the node's quota",
    ),
    Reason(reasons.NODE_NOT_FOUND, "the node does not exist", "the scheduler will choose another node"),
    Reason(reasons.POD_NOT_FOUND, "the pod does not exist", "nothing: the pod is gone"),
    Reason(reasons.POD_REPLACED, "another pod has the name now", "nothing: the scheduler sees the new pod"),
    Reason(reasons.POD_GATED, "the pod still carries a scheduling gate", "wait until the gates are lifted"),
    Reason(reasons.POD_ALREADY_BOUND, "the pod is bound already", "nothing"),
    Reason(reasons.POD_TERMINATING, "the pod is being deleted or has ended", "nothing"),
    Reason(
        reasons.API_UNAVAILABLE,
        "the API server did not answer the binding hook in time",
        "the scheduler retries; check the API server",
    ),
    Reason(
        reasons.NO_LEADER,
        "no leader of the controller can be reached",
        "the scheduler retries; check the controller",
    ),
    Reason(
        reasons.ACCELERATOR_WITHOUT_CARD,
        "the node offers accelerators that give no card, so no card quota counts them",
        "install the vendor's labeller, label the node by hand, or add a row to the setting discovery",
    ),
    Reason(
        reasons.CARD_LABELS_CONTRADICT,
        "what the labels of the node say of its cards and what it offers cannot both be true",
        "restart the vendor's labeller and device plugin on the node, or mend the labels",
    ),
    Reason(
        reasons.MGPU_RECORD_ASSIGNED,
        "the pod was bound without cards and got them afterwards, before it started",
        "nothing for the pod; find out why the binding hook was not asked",
    ),
    Reason(
        reasons.MGPU_RECORD_MISSING,
        "the pod is bound without a record of its cards, and none can be written",
        "delete the pod, so that its successor is bound with cards; find out why the binding hook was not asked",
    ),
    Reason(
        reasons.MGPU_RECORD_RESTORED,
        "the record of the pod's cards was edited and has been put back",
        "leave the record alone; find out why the policies let the edit through",
    ),
    Reason(
        reasons.MGPU_RECORD_IRREGULAR,
        "a record names other cards than the pod can have, or a card is booked beyond its size",
        "delete a pod of that card, so that its successor is bound with cards of its own",
    ),
)


_TOLD: Final = {
    reasons.INSUFFICIENT_SCALAR_QUOTA: ("In cards:", "In whole units:"),
    reasons.INSUFFICIENT_CPU_QUOTA: ("In cores:",),
    reasons.INSUFFICIENT_MEMORY_QUOTA: ("In Gi:",),
    reasons.EMPTY_QUEUE_CAPABILITY: ("The queue has no card quota:",),
    reasons.INSUFFICIENT_DEVICE_QUOTA: ("more than the whole quota",),
}
"""What begins the part of a message that says the way out with the numbers of the moment."""

_TELLING: Final = frozenset(
    {
        reasons.CARD_NAME_MISSING,
        reasons.MGPU_NODE_FULL,
        reasons.MGPU_ROOM_GONE,
        reasons.ROLLOUT_NEEDS_QUOTA,
        reasons.RESERVATION_EVICTED,
        reasons.GANG_GIVEN_BACK,
        reasons.LIFTED,
    }
)
"""Codes whose messages always say it themselves."""

EVENT_LIMIT: Final = 1024
"""Bytes that the API server takes for the note of an event."""

_CUT: Final = "..."


def event_note(code: str, message: str) -> str:
    """The words of an event: the message, as far as there is room for it, and at its end the way out.

    Raises KeyError for a code that the catalogue does not hold.
    """
    if code in _TELLING or any(start in message for start in _TOLD.get(code, ())):
        return message
    end = _ending(code)
    begin = message if message.endswith((".", "!", "?")) else f"{message}."
    room = EVENT_LIMIT - len(end.encode())
    raw = begin.encode("utf-8", errors="replace")
    if len(raw) > room:
        begin = raw[: room - len(_CUT)].decode("utf-8", errors="ignore") + _CUT
    return begin + end


def message_of(code: str, note: str) -> str:
    """The message of an event, whether or not the way out stands at its end: earlier versions did not write it."""
    return note.removesuffix(_ending(code)).removesuffix(".") if code in CATALOGUE else note


def _ending(code: str) -> str:
    out = remedy(code)
    return f" {out[0].upper()}{out[1:]}."


def remedy(code: str) -> str:
    """The way out of a reason. Raises KeyError for a code that the catalogue does not hold."""
    return CATALOGUE[code].remedy

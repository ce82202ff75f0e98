"""Why a pod waits, and what else is said about pods and queues."""

from typing import Final

from core import reasons
from core.catalogue.reason import Reason

ROWS: Final = (
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
        reasons.GANG_MALFORMED,
        "the annotations that name the gang of the pod, and its size, cannot be read, or its size is below the minimum "
        "of the PodGroup by which its scheduler goes",
        "mend cardquota.io/gang-name and cardquota.io/gang-size in the pod template, and make the pods anew",
    ),
    Reason(
        reasons.GANG_INCOMPLETE,
        "fewer members than minMember or minCount, or the size of the gang, exist",
        "wait for the missing pods, lower minMember, or make the pods anew with a smaller cardquota.io/gang-size",
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
        "the API server, or somebody's webhook or policy, refuses the write that lifts the gate or undoes it, so the quota was given back",
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
    Reason(
        reasons.DEVICES_COUNTED_TWICE,
        "pods of the queue may have the same devices by a card name and by a claim, under two quotas",
        "name the class in cards.equivalents if it serves exactly this card; else give the queue one of the two: no card quota, or a limit of 0 for the DeviceClass",
    ),
    Reason(
        reasons.QUEUE_DEFINITION_EXTENDED,
        "the definition of Queue lacked spec.dra, and the controller has added it",
        "apply the queues again whose events say that they lost their device quota",
    ),
)

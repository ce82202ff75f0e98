"""Why a pod does not fit a node, why a bind is refused, and what is said about nodes and the records of bound pods."""

from typing import Final

from core import reasons
from core.catalogue.reason import Reason

ROWS: Final = (
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
        reasons.BOOKS_UNSETTLED,
        "the controller is counting very many pods anew after a change of what they depend on, or decides on very many binds at once",
        "the scheduler retries",
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

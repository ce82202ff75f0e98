"""Extended resources of a pod on its node: a device plugin serves them, or a scheduler makes a claim and they are devices."""

from core.objects import Pod
from core.queues.ledger import Ledger
from core.refusal import Refusal


def is_claimed(pod: Pod, ledger: Ledger) -> bool:
    """Whether a scheduler makes a claim for a pod, which is given with its node: no device plugin serves it there."""
    node = ledger.nodes.get(pod.node_name)
    unclaimed = ledger.devices.unclaimed(pod)
    return node is None or any(node.allocatable.get(resource, 0) <= 0 for resource in unclaimed)


def claimed_shortfall(pod: Pod, ledger: Ledger) -> Refusal | None:
    """Which limit leaves no room for the devices of a pod, which is booked and given with its node, where a claim is made there.

    On a node whose device plugin serves them they cost none, so nobody has asked for them when its bind was granted there.
    """
    return ledger.devices.exchanged(pod) if is_claimed(pod, ledger) else None

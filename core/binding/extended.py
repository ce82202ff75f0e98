"""Extended resources of a pod on its node: a device plugin serves them, or a scheduler makes a claim and they are devices."""

from core.objects import Pod
from core.queues.ledger import Ledger
from core.refusal import Refusal


def claimed_shortfall(pod: Pod, ledger: Ledger) -> Refusal | None:
    """Which limit leaves no room for the devices of a pod, which is booked and given with its node, where a claim is made there.

    On a node whose device plugin serves them they cost none, so nobody has asked for them when its bind was granted there.
    """
    node = ledger.nodes[pod.node_name]
    claimed = any(node.allocatable.get(resource, 0) <= 0 for resource in ledger.devices.unclaimed(pod))
    return ledger.devices.exchanged(pod) if claimed else None

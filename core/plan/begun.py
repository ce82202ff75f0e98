"""Whether a group has begun, by what the cluster shows."""

from core.objects import Pod
from core.queues.group_minimum import counts
from core.queues.ledger import Ledger


def others_are_in(ledger: Ledger, pod: Pod) -> bool:
    """Whether another member of the pod's gang or PodGroup is seen lifted or bound and has not ended; lifts under way do not count.

    The PodGroup itself need not be there. Members that ask for nothing of ours are not looked at.
    """
    members = (
        ledger.observed(entry.pod.uid)
        for entry in ledger.entries_of(pod.group_key)
        if entry.pod.uid != pod.uid
    )
    return any(
        member is not None and not member.terminal and counts(member, ledger.stages) for member in members
    )

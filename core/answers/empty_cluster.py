"""Whether any node that there is could ever run a pod, were it empty and open: else quota, and waiting, are in vain."""

from collections.abc import Hashable, Mapping
from typing import Final

from core.answers.beyond import Beyond, Reach
from core.answers.room import Nodes, Seeker, cards_of, shape_of
from core.objects.taints import Tolerations
from core.queues.entry import Entry
from core.queues.ledger import Ledger

_OTHERWISE: Final = "make the pod anew so that a node that there is would do, or add or change a node"


class EmptyCluster:
    """The nodes as if nobody were on them and all took pods: cards and shares first, then whatever else a pod wants of its node.

    Each distinct ask is judged once. True for as long as no node changes.
    """

    def __init__(self, ledger: Ledger, tolerations: Mapping[str, Tolerations]) -> None:
        """`tolerations` of whoever has no node, by UID."""
        self._ledger = ledger
        self._tolerations = tolerations
        self._reach = Reach(ledger)
        self._nodes: Nodes | None = None
        self._judged: dict[Hashable, Beyond | None] = {}

    def beyond(self, entry: Entry) -> Beyond | None:
        """What is said where no node would ever take a pod; None where one would or a pool may bring one, and once it has one.

        Of a state without nodes nothing is known but that there are no cards; where it cannot be computed what a pod asks for, that
        is what it is told.
        """
        found = self._reach.beyond(entry)
        if found is not None or entry.pod.bound or entry.demand.problem or not self._ledger.nodes:
            return found
        seeker = Seeker(entry.pod, cards_of(entry), self._tolerations.get(entry.pod.uid, ()))
        shape = shape_of(seeker)
        if shape not in self._judged:
            self._judged[shape] = self._of_nodes(seeker, by_quota_alone=entry.demand.mgpu is None)
        return self._judged[shape]

    def _of_nodes(self, seeker: Seeker, *, by_quota_alone: bool) -> Beyond | None:
        if self._nodes is None:
            self._nodes = Nodes(self._ledger, empty=True)
        if self._nodes.seat(seeker):
            return None
        seat = self._nodes.in_vain(seeker)
        if seat.pool:
            return None
        why = f"no node would take it, not even one without pods: {seat.problem.removesuffix(' left')}"
        return Beyond(why, _OTHERWISE, by_quota_alone)

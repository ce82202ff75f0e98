"""A ledger that counts: what a pass costs, whatever a machine takes for it."""

from collections import Counter

from core.objects import Pod
from core.queues.ledger import Ledger
from core.settings import Settings


class Counted(Ledger):
    """Counts what is booked and taken back: in all, and for each PodGroup."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.writes = 0
        self.of_group: Counter[str] = Counter()

    def assume(self, pod: Pod) -> None:
        self._count(pod)
        super().assume(pod)

    def let_in(self, pod: Pod) -> None:
        self._count(pod)
        super().let_in(pod)

    def retract(self, assumed: Pod) -> None:
        self._count(assumed)
        super().retract(assumed)

    def _count(self, pod: Pod) -> None:
        self.writes += 1
        self.of_group[pod.group_name] += 1

"""What pods weigh in CPU and memory, and when that has to be asked again.

Whether a pod that names no card asks for one, and is free of CPU and memory then, depends on what the nodes' cards are asked
for by: that is known of a resource as long as some node carries such a card.
"""

from collections.abc import Callable, Collection

from core.cards.inventory import Inventory
from core.index import Index
from core.objects import Pod
from core.queues.cpu_memory_book import CpuMemoryBook
from core.queues.entry import Entry
from core.queues.usage import card_resources, cpu_memory_of
from core.settings import Settings
from core.stage import Stage, Stages


class Weights:
    """Keeps `book`, that of CPU and memory. `queue_of` is asked for pods that ask for nothing of ours."""

    def __init__(
        self, settings: Settings, stages: Stages, queue_of: Callable[[Pod], str], book: CpuMemoryBook
    ) -> None:
        self._stages = stages
        self._book = book
        self.card_resources: frozenset[str] = frozenset()
        """The resources by which cards are asked for; empty where that matters to nobody."""
        self._settings = settings
        self._queue_of = queue_of
        self._unnamed = Index()
        """Pods that may turn out to ask for a card without naming it, by resource."""

    def follow(self, pod: Pod) -> None:
        """Remembers by which resources the pod may ask for a card that it does not name."""
        if self._settings.cards.unlimited_cpu_memory and not pod.card_name:
            self._unnamed.put(pod.uid, *(name for name in pod.requests if "/" in name))

    def put(self, pod: Pod, entry: Entry | None) -> str:
        """Books a pod's CPU and memory. Returns the queue in which something was given back, empty where nothing was.

        Of a pod that asks for nothing of ours only where it has a node: nobody keeps it back.
        """
        waits = entry is not None and entry.stage is Stage.WAITING
        if waits or (entry is None and not self._stages.holds(pod)):
            return self._book.drop(pod.uid)
        if entry is not None:
            return self._book.put(pod.uid, entry.queue, entry.demand.cpu_memory)
        weight = cpu_memory_of(pod, self.card_resources, self._settings, has_cards=False)
        return self._book.put(pod.uid, self._queue_of(pod), weight)

    def drop(self, uid: str) -> str:
        """Takes out a pod. Returns the queue in which something was given back, empty where nothing was."""
        self._unnamed.put(uid)
        return self._book.drop(uid)

    def relearn(self, inventory: Inventory) -> list[Collection[str]]:
        """Follows the cards that there are now. Returns who may weigh something else, by the resources that have changed."""
        if not self._settings.cards.unlimited_cpu_memory:
            return []
        before, self.card_resources = self.card_resources, card_resources(inventory)
        return [self._unnamed.get(resource) for resource in sorted(before ^ self.card_resources)]

"""What the books should have of a pod by what is known now: its stage, the queue that it charges, and what it asks for."""

from core.cards.inventory import Inventory
from core.objects import Pod
from core.queues.access_book import AccessBook, asks_admission
from core.queues.attribution import Attribution
from core.queues.demand import Demand, demand_of
from core.queues.entry import Entry
from core.queues.sources import QueueSources
from core.queues.weights import Weights
from core.settings import Settings
from core.stage import Stage, Stages


class Counting:
    """Reads the nodes' cards, who may use which queue, and what names the queues of pods, as all of it is when it is asked."""

    def __init__(
        self,
        settings: Settings,
        stages: Stages,
        inventory: Inventory,
        weights: Weights,
        access: AccessBook,
        sources: QueueSources,
    ) -> None:
        self._settings = settings
        self._stages = stages
        self._inventory = inventory
        self._weights = weights
        self._access = access
        self._sources = sources

    def entry_of(
        self, pod: Pod, queue: Attribution | None = None, asked: Demand | None = None
    ) -> Entry | None:
        """None of a pod that has no place in the books. `queue` is what it charges, `asked` what it asks for; None to find out."""
        stage = self._stages.of(pod)
        if stage is Stage.IGNORED:
            return None
        demand = asked or self._demand_of(pod)
        charged = queue or self._sources.attribution(pod)
        if not asks_admission(stage, pod):
            return Entry.of(pod, stage, charged, demand)
        allowed = self._access.allows(charged.queue, pod.namespace)
        return Entry.of(pod, stage if allowed else Stage.WAITING, charged, demand, allowed=allowed)

    def entry_before_end(self, pod: Pod) -> Entry:
        """What the books would have had of a pod that has ended, by its records."""
        return Entry.of(pod, Stage.ALLOCATED, self._sources.attribution(pod), self._demand_of(pod))

    def _demand_of(self, pod: Pod) -> Demand:
        return demand_of(pod, self._inventory, self._weights.card_resources, self._settings)

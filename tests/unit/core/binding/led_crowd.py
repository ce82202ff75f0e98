"""Many pods of any sizes, as many as the gate leads to one node, and their binds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from core import names
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.mgpu.allocation import Policy
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import MgpuSettings, Settings
from tests.builders import a_node, a_pod, a_queue


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a pod may ask for of a card."""

    cores: Sequence[int]
    memories: Sequence[int]


TENS = Sizes(range(10, 61, 10), (1024, 2048, 4096, 8192))
ANY = Sizes(range(3, 61), range(300, 9000))


@dataclass(slots=True)
class Crowd:
    """One node; `under_way` are the pods that were led there and are not bound yet."""

    cards: int
    sizes: Sizes
    random: Random
    policy: Policy = "binpack"
    ledger: Ledger = field(init=False)
    planner: Planner = field(init=False)
    under_way: list[Pod] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        self.ledger = Ledger(Settings(mgpu=MgpuSettings(policy=self.policy)))
        self.ledger.put_queue(a_queue("default").view())
        node = a_node("n1").mgpu(self.cards, memory=16384).label(names.HOSTNAME_LABEL, "n1")
        self.ledger.put_node(node.view())
        self.planner = Planner(self.ledger)

    def come(self, count: int) -> None:
        """So many more pods; those for whom there is room are on their way."""
        for number in range(self._made, self._made + count):
            core, memory = self.random.choice(self.sizes.cores), self.random.choice(self.sizes.memories)
            pod = a_pod(f"p{number}").mgpu(core=core, memory=memory).gated()
            time = f"2024-01-01T00:{number // 60:02}:{number % 60:02}Z"
            self.ledger.put_pod(pod.created(time).view())
        self._made += count
        lifted = [each.lifted for each in self.planner.decide("default") if isinstance(each, Lift)]
        for led in lifted:
            self.ledger.put_pod(led)
        self.under_way += lifted

    def bind(self, count: int) -> list[str]:
        """Binds so many of those under way, in any order; who was refused."""
        self.random.shuffle(self.under_way)
        settings, refused = self.ledger.settings, list[str]()
        binder = Binder(self.ledger, guest_book((), (), settings), settings, lambda: None)
        for pod in self.under_way[:count]:
            answer = binder.decide(pod, "n1")
            if isinstance(answer, Refusal):
                refused.append(pod.name)
            else:
                self.ledger.put_pod(binder.book(pod, "n1", answer))
        del self.under_way[:count]
        return refused

"""What one pod is booked with."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from core.cards.ask import assignment_of
from core.mgpu.destination import booked_on
from core.objects import Pod
from core.queues.amounts import CPU, MEMORY
from core.queues.attribution import Attribution
from core.queues.demand import Demand
from core.stage import Stage

ShareKey = tuple[str, str]
"""The UID of a pod and the node on which room is booked for it; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod in the books."""

    pod: Pod
    stage: Stage
    attribution: Attribution
    demand: Demand
    charged: Mapping[str, int]
    unlifted: bool
    """Whether no gate holds the pod back and yet nobody has granted it what it asks for: its gate was forced off, or it never had
    one. A scheduler may bind it any moment, so it is reserved; but its bind is still to be judged."""
    allowed: bool = True
    """Whether a pod that nobody let in may use the queue at all, see core.queues.access. One that may not waits, gate or no
    gate: it holds nothing of the queue."""
    queue: str = field(default="", compare=False)
    """The queue that is charged: that of the attribution."""
    wish: Hashable = field(default=None, compare=False, repr=False)
    """What decides about a waiting pod besides what is left: pods of an equal wish get the same answer. None where none waits."""

    @classmethod
    def of(
        cls, pod: Pod, stage: Stage, attribution: Attribution, demand: Demand, *, allowed: bool = True
    ) -> Self:
        """The entry of a pod that charges this queue with this demand."""
        granted = assignment_of(pod) is not None if pod.card_name else pod.let_in
        unlifted = stage is Stage.RESERVED and not granted
        wish = _wish(pod, demand, allowed=allowed) if stage is Stage.WAITING else None
        return cls(
            pod, stage, attribution, demand, demand.amounts, unlifted, allowed, attribution.queue, wish
        )

    def lifted(self, pod: Pod) -> Self:
        """The entry of this waiting pod once it is `pod`: without our gate, and with the record of the only card that it names."""
        return type(self)(
            pod, Stage.RESERVED, self.attribution, self.demand, self.charged, False, True, self.queue
        )

    def restated(self, pod: Pod) -> Self:
        """The entry of this pod, which was let in, in a later state that changes nothing else."""
        return type(self)(
            pod,
            self.stage,
            self.attribution,
            self.demand,
            self.charged,
            self.unlifted,
            self.allowed,
            self.queue,
            self.wish,
        )

    @property
    def uncounted(self) -> bool:
        """Whether the pod names a card and cannot be counted."""
        return self.demand.card is None and self.demand.problem != "" and self.pod.card_name != ""

    @property
    def holds_share(self) -> bool:
        """Whether the pod is about to take mGPU shares of a node that nobody knows yet."""
        return self.stage is Stage.RESERVED and self.demand.mgpu is not None

    @property
    def share_key(self) -> ShareKey:
        """The pod together with the node of its room: with another one it is booked anew."""
        return self.pod.uid, "".join(booked_on(self.pod))

    @property
    def charge(self) -> tuple[Attribution, Demand]:
        """Who is charged, and with what."""
        return self.attribution, self.demand

    def alike(self, later: "Entry") -> bool:
        """Whether a later state of the pod differs in nothing that decides about this pod or any other.

        Of a pod with mGPU shares the records count too: they say which cards have room left.
        """
        if self.stage is not later.stage or self.charge != later.charge or self.allowed is not later.allowed:
            return False
        settled = self.stage is not Stage.WAITING and self.demand.mgpu is None
        return settled or replace(self.pod, revision=later.pod.revision) == later.pod

    @property
    def order(self) -> tuple[int, int, str]:
        """Place among the waiting pods of a queue: priority, age, name."""
        return (-self.pod.priority, self.pod.created, self.pod.key)

    @property
    def beside_shares(self) -> Hashable:
        """What of a pod with mGPU shares decides about its nodes besides these and its rules; None for one without."""
        return _beside_shares(self.pod, self.demand)


def _beside_shares(pod: Pod, demand: Demand) -> Hashable:
    if demand.mgpu is None:
        return None
    # Those of the shares are among them: equal shares of several cards may be rounded up from different sums.
    return frozenset(pod.requests.items()), pod.displaces_below, pod.tolerations


def _wish(pod: Pod, demand: Demand, *, allowed: bool) -> Hashable:
    if not allowed and pod.asks:
        return "not allowed", pod.namespace
    if demand.problem or pod.claims or not pod.asks:
        return pod.uid
    asked = demand.card
    card = (asked.expression, asked.milli) if asked is not None else None
    weight = demand.cpu_memory
    # Its PodGroup may be missing, and of Volcano's scheduler's pods the name of it; of its gang the size may be none.
    group: Hashable = pod.scheduler_name
    if pod.group_name or pod.scheduling_group or pod.gang is not None:
        group = pod.namespace, pod.group_name, pod.scheduling_group, pod.group_key, pod.gang
    if demand.mgpu is not None:
        # Those of its task that are on their way decide where it may be led.
        group = group, pod.task
    gates = frozenset(pod.gates) if len(pod.gates) > 1 else None
    # A DeviceClass may serve any of these.
    extended = tuple(sorted((resource, pod.requests[resource]) for resource in pod.extended))
    asks = card, weight.get(CPU, 0), weight.get(MEMORY, 0), demand.mgpu, extended, _beside_shares(pod, demand)
    return asks, pod.node_rules, group, gates

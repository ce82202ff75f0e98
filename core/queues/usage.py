"""What pods and their groups weigh in a queue, counted as the Volcano scheduler counts."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from core.cards.ask import CardAsk, card_ask
from core.cards.expression import stands_for_share
from core.cards.inventory import Inventory
from core.cards.quota import CardJsonError, parse_request
from core.objects import Group, Node, Pod
from core.queues.amounts import Amounts, beyond, cpu_memory, total
from core.settings import Settings
from core.stage import Stages


class Status(StrEnum):
    """A pod's state in the scheduler's words. Only Running and Bound use quota."""

    PENDING = "Pending"
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


_ENDED: Final = {"Succeeded": Status.SUCCEEDED, "Failed": Status.FAILED, "Unknown": Status.UNKNOWN}


def status_of(pod: Pod, stages: Stages) -> Status:
    """The state of a pod; one without phase (a state file may lack it) is as one that is Pending."""
    if pod.phase in _ENDED:
        return _ENDED[pod.phase]
    if pod.deleting and not stages.holds(pod):
        return Status.RELEASING
    if pod.phase == "Running":
        return Status.RUNNING
    return Status.BOUND if pod.bound else Status.PENDING


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod. `cards` has an entry, perhaps of zero, for every pod that asks for cards; `gated` by whatever gate."""

    status: Status
    gated: bool
    cpu_memory: Amounts
    cards: Amounts

    @property
    def allocated(self) -> bool:
        """Whether the pod uses quota. A terminating one has given it back, though its cards may still be busy."""
        return self.status in (Status.BOUND, Status.RUNNING)

    @property
    def ended(self) -> bool:
        """Whether the pod will never run again."""
        return self.status in (Status.SUCCEEDED, Status.FAILED)

    @property
    def amounts(self) -> dict[str, int]:
        """CPU, memory and cards together."""
        return {**self.cpu_memory, **self.cards}


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """A group of pods, or a pod that has none.

    `cpu_memory` is that of spec.minResources, None where the object does not set them. `card_request` is what the
    group declares, expression -> thousandths.
    """

    phase: str = ""
    min_member: int = 0
    cpu_memory: Amounts | None = None
    card_request: Amounts = field(default_factory=dict)
    pods: Sequence[PodUsage] = ()

    @property
    def minimum(self) -> dict[str, int]:
        """What the group needs as a whole.

        The declared cards stand only as long as no pod asks for any. Then the pods' own count, but not those that have
        ended: a finished member needs no cards any more.
        """
        if any(pod.cards for pod in self.pods):
            cards = total(pod.cards for pod in self.pods if not pod.ended)
        else:
            cards = total([self.card_request])
        return {**(self.cpu_memory or {}), **cards}

    @property
    def allocated(self) -> dict[str, int]:
        """What the running and bound pods use."""
        return total(pod.amounts for pod in self.pods if pod.allocated)

    @property
    def request(self) -> dict[str, int]:
        """What is used, and what the pending pods ask for."""
        return total(pod.amounts for pod in self.pods if pod.allocated or pod.status is Status.PENDING)

    @property
    def inqueue(self) -> dict[str, int]:
        """What has been promised to the group and is not in use yet.

        To a group that has not started, without what its gated pods ask for: the scheduler cannot place those and must
        not keep others out for them. To a running one, what it lacks of its minimum, but only while as many members run
        as it needs: a group that is winding down gets nothing back.
        """
        if self.phase == "Inqueue":
            gated = total(pod.amounts for pod in self.pods if pod.gated and pod.status is Status.PENDING)
            return beyond(self.minimum, total([gated, self.allocated]))
        running = sum(pod.allocated for pod in self.pods)
        if self.phase == "Running" and self.cpu_memory is not None and running >= self.min_member:
            return beyond(self.minimum, self.allocated)
        return {}

    @property
    def elastic(self) -> dict[str, int]:
        """What is used beyond the minimum; cards never, since the minimum holds those of all pods."""
        return beyond(self.allocated, self.minimum)


def cluster_total(nodes: Iterable[Node], cards: Amounts) -> dict[str, int]:
    """CPU and memory of all nodes, whatever their state, beside `cards`; a dimension that no node tells is absent."""
    told: dict[str, int] = {}
    for node in nodes:
        for key, milli in cpu_memory(node.allocatable).items():
            told[key] = told.get(key, 0) + milli
    return {**told, **cards}


def card_resources(inventory: Inventory) -> frozenset[str]:
    """The resources by which a card is asked for, as far as nodes and settings name them."""
    return frozenset(name for card in inventory.cards() for name in inventory.resources_of(card))


def names_card(resources: Iterable[str], known: Container[str]) -> bool:
    """Whether one of the resources is that of a card; `known` as by `card_resources`.

    The resources of shares are known without any node, so that a running pod's weight does not change when the last
    node of its share goes.
    """
    return any(name in known or stands_for_share(name) for name in resources)


def pod_usage(
    pod: Pod, inventory: Inventory, known: Container[str], settings: Settings, stages: Stages
) -> PodUsage:
    """What a pod weighs; `known` as by `card_resources`. A pod whose cards cannot be counted has none."""
    asked = None
    if settings.features.cards:
        on_node = inventory.on_node(pod.node_name) if pod.bound else None
        asked = card_ask(pod, inventory.resources_of, on_node)
    cards = {asked.card: asked.milli} if isinstance(asked, CardAsk) else {}
    return PodUsage(
        status=status_of(pod, stages),
        gated=bool(pod.gates),
        cpu_memory=cpu_memory_of(pod, known, settings, has_cards=bool(cards)),
        cards=cards,
    )


def cpu_memory_of(pod: Pod, known: Container[str], settings: Settings, *, has_cards: bool) -> dict[str, int]:
    """What a pod uses of its queue's CPU and memory; `known` as by `card_resources`.

    Where card pods are free of CPU and memory, so is one that asks for a card's resource without naming the card.
    """
    free = _unlimited(settings) and (has_cards or names_card(pod.requests, known))
    return {} if free else cpu_memory(pod.requests)


def group_usage(
    group: Group | None, pods: Sequence[PodUsage], known: Container[str], settings: Settings
) -> GroupUsage:
    """A group with its pods. A pod without group (None) needs all that it asks for, so nothing of it is elastic."""
    if group is None:
        return GroupUsage(cpu_memory=total(pod.cpu_memory for pod in pods), pods=pods)
    request = _declared(group) if settings.features.cards else {}
    has_cards = bool(request) or any(pod.cards for pod in pods)
    return GroupUsage(
        phase=group.phase,
        min_member=group.min_member,
        cpu_memory=min_cpu_memory(group, known, settings, has_cards=has_cards),
        card_request=request,
        pods=pods,
    )


def min_cpu_memory(
    group: Group, known: Container[str], settings: Settings, *, has_cards: bool
) -> dict[str, int] | None:
    """CPU and memory of spec.minResources, None where they are not set.

    Nothing for a group with cards where those are free of CPU and memory.
    """
    if group.min_resources is None:
        return None
    free = _unlimited(settings) and (has_cards or names_card(group.min_resources, known))
    return {} if free else cpu_memory(group.min_resources)


def _unlimited(settings: Settings) -> bool:
    return settings.features.cards and settings.cards.unlimited_cpu_memory


def _declared(group: Group) -> dict[str, int]:
    """The declared cards; what cannot be read declares none."""
    try:
        return {card: count * 1000 for card, count in parse_request(group.card_request).items()}
    except CardJsonError:
        return {}

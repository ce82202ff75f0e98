"""Who holds what a waiting pod lacks: the pods of its queue, or those on the nodes that it needs, the largest first."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from core.dra.amounts import thousandths
from core.objects import Pod
from core.queues.amounts import CPU_AND_MEMORY, add, beyond
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, Steps

_STEP: Final = 200
"""Pods that are looked at in half a millisecond."""
_NOTHING: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that is bound, or may be any moment, and what it takes of the keys in question, in thousandths."""

    pod: Pod
    amounts: Mapping[str, int]

    @property
    def reserved(self) -> bool:
        """Whether it has no node yet."""
        return not self.pod.bound


def holders_of(ledger: Ledger, queue: str, keys: Collection[str]) -> Steps[list[Holder]]:
    """The pods that use any of these keys of a queue; with pauses, as there may be very many.

    Of devices those of the queues below it as well; of all the rest too, where card quotas hold through the tree.
    """
    found: dict[str, tuple[Pod, dict[str, int]]] = {}
    pace = Pace(_STEP)
    for pod, amounts in _uses(ledger, queue, keys):
        if pace.due():
            yield
        wanted = {key: milli for key, milli in amounts.items() if key in keys and milli}
        if wanted:
            add(found.setdefault(pod.uid, (pod, {}))[1], wanted, 1)
    return _largest_first(found.values())


def holders_on_nodes(ledger: Ledger, cards: Collection[str]) -> Steps[list[Holder]]:
    """The pods on nodes that carry one of these cards, whatever queue they charge, with what they take of its resource there."""
    found: dict[str, tuple[Pod, dict[str, int]]] = {}
    pace = Pace(_STEP)
    for card in sorted(cards):
        for node in tuple(ledger.inventory.nodes_with(card)):
            pods = tuple(ledger.pods_on(node))
            if pace.due(1 + len(pods)):
                yield
            carried = ledger.inventory.on_node(node).get(card)
            if carried is None:
                continue  # gone meanwhile
            for pod in pods:
                if pod.requests.get(carried.resource):
                    found.setdefault(pod.uid, (pod, {}))[1][card] = pod.requests[carried.resource]
    return _largest_first(found.values())


def _uses(ledger: Ledger, queue: str, keys: Collection[str]) -> Iterator[tuple[Pod, Mapping[str, int]]]:
    """Of what is in the books when each part begins; the books may change while it is gone through."""
    for entry in tuple(ledger.entries()):
        charged = entry.stage in (Stage.ALLOCATED, Stage.RESERVED)
        if charged and queue in ledger.with_those_above(entry.queue):
            yield entry.pod, entry.charged
        else:
            yield entry.pod, _NOTHING
    if not set(CPU_AND_MEMORY).isdisjoint(keys):
        for uid, name, amounts in tuple(ledger.cpu_memory.weights()):
            pod = ledger.pod(uid) if queue in ledger.with_those_above(name) else None
            if pod is not None:
                yield pod, amounts
    for pod, devices in tuple(ledger.devices.book.holders(queue)):
        booked = ledger.entry(pod.uid)
        # Cards that are had by claims as well stand there with those that the pod names.
        yield pod, beyond(thousandths(devices), booked.charged if booked is not None else _NOTHING)


def _largest_first(found: Collection[tuple[Pod, dict[str, int]]]) -> list[Holder]:
    holders = [Holder(pod, amounts) for pod, amounts in found]
    return sorted(holders, key=lambda one: (-sum(one.amounts.values()), one.pod.created, one.pod.key))

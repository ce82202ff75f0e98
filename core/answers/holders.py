"""Who holds what a waiting pod lacks: the pods of its queue, or those on the nodes that it needs, the largest first."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from core.dra.amounts import thousandths
from core.objects import Pod
from core.queues.amounts import CPU_AND_MEMORY, add, beyond
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, Steps, in_order

_STEP: Final = 150
"""Pods that are looked at, or put in order, in half a millisecond."""
_NOTHING: Final[Mapping[str, int]] = {}
_PLACE: Final = attrgetter("place")


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that is bound, or may be any moment, and what it takes of the keys in question, in thousandths."""

    pod: Pod
    amounts: dict[str, int]

    @property
    def reserved(self) -> bool:
        """Whether it has no node yet."""
        return not self.pod.bound

    @property
    def place(self) -> tuple[int, int, str]:
        """Where it stands among others: the largest first."""
        return -sum(self.amounts.values()), self.pod.created, self.pod.key


def holders_of(ledger: Ledger, queue: str, keys: Collection[str]) -> Steps[list[Holder]]:
    """The pods that use any of these keys of a queue.

    Of devices those of the queues below it as well; of all the rest too, where card quotas hold through the tree.
    """
    found: dict[str, Holder] = {}
    pace = Pace(_STEP)
    for pod, amounts in _uses(ledger, queue, keys):
        if pace.due():
            yield
        wanted = {key: milli for key, milli in amounts.items() if key in keys and milli}
        if pod is not None and wanted:
            add(found.setdefault(pod.uid, Holder(pod, {})).amounts, wanted, 1)
    return (yield from in_order(tuple(found.values()), _PLACE, _STEP))


def holders_on_nodes(ledger: Ledger, cards: Collection[str]) -> Steps[list[Holder]]:
    """The pods on nodes that carry one of these cards, whatever queue they charge, with what they take of its resource there."""
    found: dict[str, Holder] = {}
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
                    holder = found.setdefault(pod.uid, Holder(pod, {}))
                    holder.amounts[card] = pod.requests[carried.resource]
    return (yield from in_order(tuple(found.values()), _PLACE, _STEP))


def _uses(
    ledger: Ledger, queue: str, keys: Collection[str]
) -> Iterator[tuple[Pod | None, Mapping[str, int]]]:
    """Of what is in the books when each part begins; the books may change while it is gone through.

    One for each that is looked at, whether it uses anything or not, so that a step is so many of them.
    """
    for entry in tuple(ledger.entries()):
        charged = entry.stage in (Stage.ALLOCATED, Stage.RESERVED)
        if charged and queue in ledger.with_those_above(entry.queue):
            yield entry.pod, entry.charged
        else:
            yield entry.pod, _NOTHING
    if not set(CPU_AND_MEMORY).isdisjoint(keys):
        for uid, name, amounts in ledger.cpu_memory.weights():
            yield (ledger.pod(uid) if queue in ledger.with_those_above(name) else None), amounts
    for pod, devices in ledger.devices.book.holders(queue):
        booked = ledger.entry(pod.uid)
        # Cards that are had by claims as well stand there with those that the pod names.
        yield pod, beyond(thousandths(devices), booked.charged if booked is not None else _NOTHING)

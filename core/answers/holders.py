"""Who holds what a waiting pod lacks: the pods of its queue, or those on the nodes that it needs, the largest first."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from core.dra.amounts import thousandths
from core.objects import Pod
from core.queues.amounts import CPU_AND_MEMORY, add
from core.queues.ledger import Ledger
from core.stage import Stage


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that is bound, or may be any moment, and what it takes of the keys in question, in thousandths."""

    pod: Pod
    amounts: Mapping[str, int]

    @property
    def reserved(self) -> bool:
        """Whether it has no node yet."""
        return not self.pod.bound


def holders_of(ledger: Ledger, queue: str, keys: Collection[str]) -> list[Holder]:
    """The pods that use any of these keys of a queue.

    Of devices those of the queues below it as well; of all the rest too, where card quotas hold through the tree.
    """
    found: dict[str, tuple[Pod, dict[str, int]]] = {}
    for pod, amounts in _uses(ledger, queue, keys):
        wanted = {key: milli for key, milli in amounts.items() if key in keys and milli}
        if wanted:
            add(found.setdefault(pod.uid, (pod, {}))[1], wanted, 1)
    return _largest_first(found.values())


def holders_on_nodes(ledger: Ledger, cards: Collection[str]) -> list[Holder]:
    """The pods on nodes that carry one of these cards, whatever queue they charge, with what they take of its resource there."""
    found: dict[str, tuple[Pod, dict[str, int]]] = {}
    for card in sorted(cards):
        for node in ledger.inventory.nodes_with(card):
            resource = ledger.inventory.on_node(node)[card].resource
            for pod in ledger.pods_on(node):
                if pod.requests.get(resource):
                    found.setdefault(pod.uid, (pod, {}))[1][card] = pod.requests[resource]
    return _largest_first(found.values())


def _uses(ledger: Ledger, queue: str, keys: Collection[str]) -> Iterator[tuple[Pod, Mapping[str, int]]]:
    for entry in ledger.entries():
        charged = entry.stage in (Stage.ALLOCATED, Stage.RESERVED)
        if charged and queue in ledger.with_those_above(entry.queue):
            yield entry.pod, entry.charged
    if not set(CPU_AND_MEMORY).isdisjoint(keys):
        for uid, name, amounts in ledger.cpu_memory.weights():
            pod = ledger.pod(uid) if queue in ledger.with_those_above(name) else None
            if pod is not None:
                yield pod, amounts
    for pod, devices in ledger.devices.book.holders(queue):
        yield pod, thousandths(devices)


def _largest_first(found: Collection[tuple[Pod, dict[str, int]]]) -> list[Holder]:
    holders = [Holder(pod, amounts) for pod, amounts in found]
    return sorted(holders, key=lambda one: (-sum(one.amounts.values()), one.pod.created, one.pod.key))

"""Whether pods that are let in would find nodes, as far as labels, taints, CPU, memory and whole devices say it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from core.node_match import NodeMatch, compiled
from core.objects import Node, Pod
from core.objects.taints import Tolerations
from core.plan.node_load import NodeLoad, requests_of
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, finish

_UNHURRIED: Final = 10**9
"""Nobody else waits while a person is answered."""
_NEAREST, _CLOSED, _LABELS, _DEVICES = range(4)
"""How far a node is from taking a pod: the one that comes closest is told."""


@dataclass(frozen=True, slots=True)
class Seeker:
    """A pod that looks for a node. `cards` are those it was let in for; empty where it asks for none."""

    pod: Pod
    cards: frozenset[str] = frozenset()
    tolerations: Tolerations = ()


@dataclass(frozen=True, slots=True)
class Seat:
    """A node with room; without one `problem` is why the one that comes closest has not."""

    node: str = ""
    problem: str = ""


class Nodes:
    """The nodes with who is on them. Who has found room takes it from those after."""

    def __init__(self, ledger: Ledger, *, empty: bool = False) -> None:
        """`empty`: as if nobody were on any node."""
        self._ledger = ledger
        everybody = {} if empty else {name: partial(_on, ledger, name) for name in ledger.nodes}
        self._loads = {
            name: NodeLoad(node, everybody.get(name, tuple)) for name, node in ledger.nodes.items()
        }
        self._free = {
            name: Counter({key: milli for key, milli in node.allocatable.items() if "/" in key})
            for name, node in ledger.nodes.items()
        }
        for name, pods in everybody.items():
            for pod in pods():
                self._free[name].subtract(pod.requests)

    def seat_the_reserved(self, tolerations: Mapping[str, Tolerations], besides: Iterable[str] = ()) -> None:
        """Those who were let in and have no node yet take the first room there is; `besides` are UIDs of others."""
        others = frozenset(besides)
        for entry in list(self._ledger.entries()):
            if entry.stage is Stage.RESERVED and entry.pod.uid not in others:
                card = entry.demand.card
                cards = frozenset() if card is None else frozenset((card.card,))
                self.seat(Seeker(entry.pod, cards, tolerations.get(entry.pod.uid, ())))

    def seat(self, seeker: Seeker) -> Seat:
        """Where a pod finds room, the fullest such node first; it is expected there from then on."""
        pod = seeker.pod
        match, devices = finish(compiled(pod.node_rules)), [key for key in pod.requests if "/" in key]
        best, closest = len(_PROBLEMS), "there is no node"
        for name in sorted(self._loads, key=partial(self._rank, devices)):
            distance, problem = self._problem(seeker, match, self._ledger.nodes[name])
            if not problem:
                self._loads[name].expect(pod)
                self._free[name].subtract(pod.requests)
                return Seat(name)
            if distance < best:
                best, closest = distance, f"node {name}: {problem}"
        return Seat(problem=closest)

    def _rank(self, devices: list[str], name: str) -> tuple[int, str]:
        return sum(self._free[name][key] for key in devices), name

    def _problem(self, seeker: Seeker, match: NodeMatch, node: Node) -> tuple[int, str]:
        """How far the node is from doing, and why it does not; no reason where it does."""
        pod, inventory = seeker.pod, self._ledger.inventory
        known = {card for card in seeker.cards if inventory.nodes_with(card)}
        if known and known.isdisjoint(inventory.on_node(node.name)):
            return _DEVICES, f"it carries no {', '.join(sorted(known))}"
        load, requests = self._loads[node.name], requests_of(pod)
        if not pod.claims and not load.shows(requests):
            lacking = [key for key, _ in requests if "/" in key and key not in node.allocatable]
            return _DEVICES, f"it has no {', '.join(lacking)}"
        if not finish(match.admits(node, Pace(_UNHURRIED))):
            return _LABELS, "the pod's node selector or affinity does not admit it"
        if node.unschedulable or not node.ready:
            return _CLOSED, "it is not ready, or takes no pods now"
        return _NEAREST, load.lack(requests, pod.priority, seeker.tolerations)


_PROBLEMS: Final = (_NEAREST, _CLOSED, _LABELS, _DEVICES)


def _on(ledger: Ledger, name: str) -> list[Pod]:
    return [*ledger.pods_on(name), *ledger.bystanders_on(name)]

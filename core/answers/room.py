"""Whether pods that are let in would find nodes, as far as labels, taints, CPU, memory and whole devices say it."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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

    def choices(self, seeker: Seeker) -> int:
        """How many nodes would do for a pod, were nobody there."""
        match = finish(compiled(seeker.pod.node_rules))
        nodes = self._ledger.nodes.values()
        return sum(self._unfit(seeker, match, node) is None for node in nodes)

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
        unfit = self._unfit(seeker, match, node)
        if unfit is not None:
            return unfit
        pod = seeker.pod
        return _NEAREST, self._loads[node.name].lack(requests_of(pod), pod.priority, seeker.tolerations)

    def _unfit(self, seeker: Seeker, match: NodeMatch, node: Node) -> tuple[int, str] | None:
        """The same of a node that would not do if nobody were there; None of one that would, but for its taints."""
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
        return None


_PROBLEMS: Final = (_NEAREST, _CLOSED, _LABELS, _DEVICES)


def reserved(
    ledger: Ledger, tolerations: Mapping[str, Tolerations], besides: Iterable[str] = ()
) -> list[Seeker]:
    """Those who were let in and have no node yet; `besides` are UIDs of others."""
    others, found = frozenset(besides), list[Seeker]()
    for entry in ledger.entries():
        if entry.stage is Stage.RESERVED and entry.pod.uid not in others:
            card = entry.demand.card
            cards = frozenset() if card is None else frozenset((card.card,))
            found.append(Seeker(entry.pod, cards, tolerations.get(entry.pod.uid, ())))
    return found


def seats(nodes: Callable[[], Nodes], before: Sequence[Seeker], new: Sequence[Seeker]) -> list[Seat]:
    """Where new pods find room beside those that were let in `before` and have no node yet.

    Each takes the first room there is. Where that leaves a new one without, those with the fewest nodes to go to come first: a
    scheduler may place who can go anywhere where nobody else has to, and whether it does is not known. What is found that way
    counts only where nobody goes short who had room.
    """
    everybody = [*before, *new]
    first = _seated(nodes(), everybody, range(len(everybody)))
    if all(seat.node for seat in first[len(before) :]):
        return first[len(before) :]
    empty = nodes()
    # Alike are those that one template has made.
    known = dict[Hashable, int]()
    for seeker in everybody:
        shape = _shape(seeker)
        if shape not in known:
            known[shape] = empty.choices(seeker)
    order = sorted(range(len(everybody)), key=lambda number: known[_shape(everybody[number])])
    second = _seated(empty, everybody, order)
    worse = any(one.node and not other.node for one, other in zip(first, second, strict=True))
    return (first if worse else second)[len(before) :]


def _seated(nodes: Nodes, seekers: Sequence[Seeker], order: Iterable[int]) -> list[Seat]:
    found = {number: nodes.seat(seekers[number]) for number in order}
    return [found[number] for number in range(len(seekers))]


def _shape(seeker: Seeker) -> Hashable:
    pod = seeker.pod
    devices = frozenset(key for key, milli in pod.requests.items() if milli and "/" in key)
    return pod.node_rules, seeker.cards, devices, bool(pod.claims)


def _on(ledger: Ledger, name: str) -> list[Pod]:
    return [*ledger.pods_on(name), *ledger.bystanders_on(name)]

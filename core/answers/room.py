"""Whether pods that are let in would find nodes, as far as labels, taints, CPU, memory and devices say it."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from core import names
from core.affinity import NodeRequirement, meets
from core.cards.expression import split
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.node_match import NodeMatch, compiled
from core.objects import Node, Pod
from core.objects.node import opened
from core.objects.taints import Tolerations, untolerated
from core.plan.node_load import NodeLoad, requests_of
from core.plan.pools import CardPools
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, finish

_UNHURRIED: Final = 10**9
"""Nobody else waits while a person is answered."""
_NEAREST, _CLOSED, _LABELS, _DEVICES = range(4)
"""How far a node is from taking a pod: the one that comes closest is told."""
_MOVES: Final = 2000
"""So many nodes are looked at for others to make way to; each costs about as much as to look for one seat."""


_ANYWHERE: Final = NodeRequirement()


@dataclass(frozen=True, slots=True)
class Seeker:
    """A pod that looks for a node. `cards` are those it was let in for; empty where it asks for none.

    `requirement` is what its lift narrows it to, where that is not written yet.
    """

    pod: Pod
    cards: frozenset[str] = frozenset()
    tolerations: Tolerations = ()
    requirement: NodeRequirement = _ANYWHERE


@dataclass(frozen=True, slots=True)
class Seat:
    """A node with room; without one `problem` is why the one that comes closest has not.

    `pool` is the card whose node pool may bring a node then; empty where none does.
    """

    node: str = ""
    problem: str = ""
    pool: str = ""


class Nodes:
    """The nodes with who is on them. Who has found room takes it from those after."""

    def __init__(self, ledger: Ledger, *, empty: bool = False) -> None:
        """`empty`: as if nobody were on any node, and all of them took pods."""
        self._ledger = ledger
        self._nodes = {name: opened(node) if empty else node for name, node in ledger.nodes.items()}
        self._pools = CardPools(ledger)
        everybody = {} if empty else {name: partial(_on, ledger, name) for name in ledger.nodes}
        self._loads = {name: NodeLoad(node, everybody.get(name, tuple)) for name, node in self._nodes.items()}
        self._free = {
            name: Counter({key: milli for key, milli in node.allocatable.items() if "/" in key})
            for name, node in self._nodes.items()
        }
        for name, pods in everybody.items():
            for pod in pods():
                self._free[name].subtract(pod.requests)

    def seat(self, seeker: Seeker, closed: Collection[str] = ()) -> str:
        """A node with room, the fullest first, none of those that are `closed` to the pod; empty where there is none."""
        open_to_it = (name for name in self.would_do(seeker) if name not in closed)
        return next((name for name in open_to_it if self.has_room(seeker, name)), "")

    def in_vain(self, seeker: Seeker, besides: str = "") -> Seat:
        """What is told of a pod that finds no room: why not, and whether a node pool may bring a node for it."""
        for card in sorted(seeker.cards):
            if finish(self._pools.may_bring(seeker.pod.node_rules, card)):
                if not self._ledger.inventory.nodes_with(card):
                    return Seat(problem=f"none has {card} yet, and its pool brings one", pool=card)
                return self._unless_brought(seeker, besides, card)
        ask = mgpu_ask(seeker.pod)
        if isinstance(ask, MgpuAsk):
            card = finish(self._pools.may_bring_shares(seeker.pod.node_rules, ask))
            if card:
                return self._unless_brought(seeker, besides, card)
        return Seat(problem=self._problem_of(seeker) + besides)

    def _unless_brought(self, seeker: Seeker, besides: str, card: str) -> Seat:
        problem = f"{self._problem_of(seeker)}{besides}; the pool of {card} may bring another node"
        return Seat(problem=problem, pool=card)

    def _problem_of(self, seeker: Seeker) -> str:
        """Why the node that comes closest to having room for a pod has not."""
        match, best, closest = _match(seeker), len(_PROBLEMS), "there is no node"
        for name in self._names(seeker):
            distance, problem = self._problem(seeker, match, self._nodes[name])
            if distance < best:
                best, closest = distance, f"node {name}: {problem}"
        return closest

    def would_do(self, seeker: Seeker) -> Iterator[str]:
        """The nodes that a pod may go to, whoever is there, the fullest first."""
        match, nodes = _match(seeker), self._nodes
        for name in self._names(seeker):
            taints = nodes[name].taints
            tolerated = not taints or untolerated(taints, seeker.tolerations) is None
            if tolerated and self._unfit(seeker, match, nodes[name]) is None:
                yield name

    def has_room(self, seeker: Seeker, name: str) -> bool:
        """Whether a node that would do takes a pod beside those who are there and expected."""
        return not self._loads[name].short_of(requests_of(seeker.pod), seeker.pod.displaces_below)

    def take(self, seeker: Seeker, name: str) -> None:
        """Expects a pod on a node."""
        self._loads[name].expect(seeker.pod)
        self._free[name].subtract(seeker.pod.requests)

    def leave(self, seeker: Seeker, name: str) -> None:
        """Expects it there no more."""
        self._loads[name].expect_no_more(seeker.pod)
        self._free[name].update(seeker.pod.requests)

    def _names(self, seeker: Seeker) -> list[str]:
        """Every node, that for which the pod was nominated first, then the fullest; of a pod with room booked that node alone."""
        booked, nominated = _booked(seeker.pod), seeker.pod.annotations.get(names.NOMINATED_ANNOTATION, "")
        if booked in self._loads:
            return [booked]
        devices = [key for key in seeker.pod.requests if "/" in key]
        return sorted(self._loads, key=lambda name: (name != nominated, self._rank(devices, name)))

    def _rank(self, devices: list[str], name: str) -> tuple[int, str]:
        return sum(self._free[name][key] for key in devices), name

    def _problem(self, seeker: Seeker, match: NodeMatch, node: Node) -> tuple[int, str]:
        """How far the node is from doing, and why it does not; no reason where it does."""
        unfit = self._unfit(seeker, match, node)
        if unfit is not None:
            return unfit
        pod = seeker.pod
        return _NEAREST, self._loads[node.name].lack(
            requests_of(pod), pod.displaces_below, seeker.tolerations
        )

    def _unfit(self, seeker: Seeker, match: NodeMatch, node: Node) -> tuple[int, str] | None:
        """The same of a node that would not do if nobody were there; None of one that would, but for its taints."""
        pod, inventory = seeker.pod, self._ledger.inventory
        known = {card for card in seeker.cards if inventory.nodes_with(card)}
        if known and known.isdisjoint(inventory.on_node(node.name)):
            return _DEVICES, f"it carries no {', '.join(sorted(known))}"
        devices = [key for key, milli in sorted(pod.requests.items()) if milli and "/" in key]
        lacking = [key for key in devices if key not in node.allocatable]
        if lacking and not pod.claims:
            return _DEVICES, f"it has no {', '.join(lacking)}"
        if not (finish(match.admits(node, Pace(_UNHURRIED))) and meets(seeker.requirement, node)):
            return _LABELS, "the pod's node selector or affinity does not admit it"
        if node.unschedulable or not node.ready:
            return _CLOSED, "it is not ready, or takes no pods now"
        return None


def _match(seeker: Seeker) -> NodeMatch:
    return finish(compiled(seeker.pod.node_rules))


_PROBLEMS: Final = (_NEAREST, _CLOSED, _LABELS, _DEVICES)


def reserved(
    ledger: Ledger, tolerations: Mapping[str, Tolerations], besides: Iterable[str] = ()
) -> list[Seeker]:
    """Those who were let in and have no node yet; `besides` are UIDs of others."""
    others, found = frozenset(besides), list[Seeker]()
    for entry in ledger.entries():
        if entry.stage is Stage.RESERVED and entry.pod.uid not in others:
            found.append(Seeker(entry.pod, cards_of(entry), tolerations.get(entry.pod.uid, ())))
    # Of thousands the books have no order, and the same question is to have the same answer.
    return sorted(found, key=lambda seeker: (seeker.pod.created, seeker.pod.key))


def cards_of(entry: Entry) -> frozenset[str]:
    """The cards that a pod was let in for; while that is not decided, those that it names."""
    asked = entry.demand.card
    return frozenset(split(asked.card) if asked is not None else ())


def seats(nodes: Nodes, before: Sequence[Seeker], new: Sequence[Seeker]) -> list[Seat]:
    """Where new pods find room beside those that were let in `before` and have no node yet.

    Each takes the first room there is. For one that finds none others make way who have a node to go to as well: a scheduler may
    place those where nobody else has to go, and whether it does is not known. Nobody who has a seat goes short for one who
    comes later.
    """
    plan = _Seating(nodes, [*before, *new])
    for number in range(len(plan.seekers)):
        plan.seat(number)
    return plan.seats[len(before) :]


class _Seating:
    """Who sits where, of those that have no node of their own."""

    def __init__(self, nodes: Nodes, seekers: Sequence[Seeker]) -> None:
        self.seekers = seekers
        self.seats = [Seat() for _ in seekers]
        self._nodes = nodes
        self._on = dict[str, list[int]]()
        self._in_vain = dict[Hashable, Seat]()
        """Shapes of which one found no seat: as seats only get fewer, the next one would not either."""
        self._moves: list[tuple[int, str]] = []
        """Who sat where before, move by move."""
        self._left = _MOVES

    def seat(self, number: int) -> None:
        """Gives one a seat if there is a way to, whoever has to make way for that."""
        seeker = self.seekers[number]
        shape = shape_of(seeker)
        if shape in self._in_vain:
            self.seats[number] = self._in_vain[shape]
            return
        found = self._nodes.seat(seeker)
        if found:
            self._move(number, found)
        elif not self._placed(number, set()):
            untried = "; whether others who have no node yet could make way was not tried to the end"
            found_none = self._nodes.in_vain(seeker, untried if self._left <= 0 else "")
            self.seats[number] = self._in_vain[shape] = found_none

    def _placed(self, number: int, tried: set[str]) -> bool:
        """Seats one on a node that others leave for it; where that does not work out everybody sits as before.

        Who leaves has to be seated again, and for that nobody comes back to a node that was `tried`.
        """
        for name in tuple(self._nodes.would_do(self.seekers[number])):
            if name in tried or not self._on.get(name):
                continue
            if self._left <= 0:
                return False
            self._left -= 1
            tried.add(name)
            mark = len(self._moves)
            if self._cleared(number, name, tried):
                self._move(number, name)
                return True
            self._back_to(mark)
        return False

    def _cleared(self, number: int, name: str, tried: set[str]) -> bool:
        """Whether so many could leave a node that one has room there; those who can sit elsewhere then."""
        for other in tuple(self._on[name]):
            mark = len(self._moves)
            self._move(other, "")
            found = self._nodes.seat(self.seekers[other], closed=tried)
            if found:
                self._move(other, found)
            elif not self._placed(other, tried):
                self._back_to(mark)
                continue
            if self._nodes.has_room(self.seekers[number], name):
                return True
        return False

    def _move(self, number: int, to: str) -> None:
        """Has one sit on another node; on none where that is empty."""
        self._moves.append((number, self.seats[number].node))
        self._sit(number, to)

    def _sit(self, number: int, to: str) -> None:
        seeker, left = self.seekers[number], self.seats[number].node
        if left:
            self._nodes.leave(seeker, left)
            self._on[left].remove(number)
        if to:
            self._nodes.take(seeker, to)
            self._on.setdefault(to, []).append(number)
        self.seats[number] = Seat(to)

    def _back_to(self, mark: int) -> None:
        while len(self._moves) > mark:
            self._sit(*self._moves.pop())


def shape_of(seeker: Seeker) -> Hashable:
    """What is equal of pods that one template has made."""
    pod = seeker.pod
    asks = requests_of(pod), pod.displaces_below, bool(pod.claims)
    return pod.node_rules, seeker.cards, seeker.requirement, seeker.tolerations, asks, _booked(pod)


def _booked(pod: Pod) -> str:
    return pod.annotations.get(names.NODE_ANNOTATION, "")


def _on(ledger: Ledger, name: str) -> list[Pod]:
    return [*ledger.pods_on(name), *ledger.bystanders_on(name)]

"""How full the cards of a node are, with whom, and what nobody is charged with: what pods physically use, whatever queues promise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

from core.cards.discovery import CardStock
from core.cards.expression import split
from core.mgpu import records
from core.mgpu.node import Card, NodeModel, model_of
from core.mgpu.occupancy import occupancy
from core.mgpu.pieces import in_steps
from core.mgpu.shares import FULL_CARD
from core.objects import Node, Pod
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

FILLS: Final = ("00", "01-25", "26-50", "51-75", "76-99", "full")
"""In hundredths, and in their order also by their letters; of a card's core or its memory, whichever is taken more."""
_PARTS: Final = 4
_PODS_IN_A_STEP: Final = 100


def fill_of(ledger: Ledger, name: str) -> dict[str, Any]:
    """A node's `cards` by name in whole cards, and its `mgpu` cards in hundredths and MiB. Raises KeyError where there is no such node.

    Of the `pods` that use a card, the `unnamed` ones do not name it.
    """
    pods = ledger.pods_on(name)
    return {"cards": _cards(ledger, name, pods), "mgpu": _shares(ledger, ledger.nodes[name], pods)}


def has_cards(ledger: Ledger, name: str) -> bool:
    """Whether `fill_of` says anything of a node. Raises KeyError where there is no such node."""
    return bool(
        ledger.inventory.on_node(name)
        or any(_asked(ledger, pod) for pod in ledger.pods_on(name))
        or model_of(ledger.nodes[name]).serves
    )


def _asked(ledger: Ledger, pod: Pod) -> bool:
    entry = ledger.entry(pod.uid)
    return entry is not None and entry.demand.card is not None and pod.bound


def _cards(ledger: Ledger, node: str, pods: list[Pod]) -> dict[str, Any]:
    stock = ledger.inventory.on_node(node)
    users: dict[str, dict[str, int]] = {}
    unnamed: dict[str, list[str]] = {}
    for pod in (pod for pod in pods if pod.bound):
        entry = ledger.entry(pod.uid)
        if entry is not None and entry.demand.card is not None:
            asked = entry.demand.card
            users.setdefault(asked.card, {})[pod.key] = asked.milli // 1000
        for use in _uses(ledger, pod, stock):
            if not use.named and pod.key not in users.setdefault(use.card, {}):
                users[use.card][pod.key] = use.milli // 1000
                unnamed.setdefault(use.card, []).append(pod.key)
    return {
        card: {
            "resource": stock[card].resource if card in stock else "",
            "count": stock[card].milli // 1000 if card in stock else 0,
            "used": sum(users.get(card, {}).values()),
            "pods": users.get(card, {}),
            "unnamed": unnamed.get(card, []),
        }
        for card in sorted(stock.keys() | users.keys())
    }


def _shares(ledger: Ledger, node: Node, pods: list[Pod]) -> list[dict[str, Any]]:
    model = model_of(node)
    if not model.serves:
        return []
    occupied = occupancy(model, pods, ledger.settings.mgpu)
    users: dict[int, list[str]] = {}
    for pod in pods:
        held = {**occupied.held.get(pod.uid, {}), **records.recorded(pod)} if pod.asks_mgpu else {}
        for number in sorted({number for numbers in held.values() for number in numbers}):
            users.setdefault(number, []).append(pod.key)
    return [
        {
            "index": number,
            "core": FULL_CARD,
            "coreUsed": FULL_CARD - card.core,
            "memory": model.memory,
            "memoryUsed": model.memory - card.memory,
            "pods": users.get(number, []),
        }
        for number, card in enumerate(occupied.state.cards)
    ]


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Of one node. Cards are in thousandths by name."""

    cards: Mapping[str, int] = field(default_factory=dict)
    """Those that it carries."""
    used: Mapping[str, int] = field(default_factory=dict)
    """Those of them that pods use, with the card's name or without."""
    unaccounted: Mapping[str, int] = field(default_factory=dict)
    """Those that pods use without the name."""
    taken: Sequence[Fraction] = ()
    """Of each mGPU card by its number, which part is taken: of its core or its memory, whichever is more."""

    @property
    def fills(self) -> Sequence[int]:
        """How many mGPU cards there are by each of `FILLS`."""
        found = [0] * len(FILLS)
        for taken in self.taken:
            # Of parts of a card only a full one is the last.
            found[len(FILLS) - 1 if taken == 1 else ceil(taken * _PARTS)] += 1
        return found


def use_of(ledger: Ledger, name: str) -> Steps[NodeUse]:
    """What is used of a node by the pods that are on it when this begins; nothing of one that does not exist."""
    node = ledger.nodes.get(name)
    if node is None:
        return NodeUse()
    pods = ledger.pods_on(name)
    stock = ledger.inventory.on_node(name)
    used, unaccounted = yield from _sums(ledger, pods, stock)
    model = model_of(node)
    shares: Sequence[Card] = ()
    if model.serves:
        shares = (yield from in_steps(lambda: occupancy(model, pods, ledger.settings.mgpu))).state.cards
    return NodeUse(
        {card: carried.milli for card, carried in stock.items()},
        used,
        unaccounted,
        tuple(_taken(share, model) for share in shares),
    )


def _sums(
    ledger: Ledger, pods: Sequence[Pod], stock: Mapping[str, CardStock]
) -> Steps[tuple[dict[str, int], dict[str, int]]]:
    """Of each card what pods use, and what of that without its name; in thousandths."""
    used, unaccounted, pace = dict.fromkeys(stock, 0), dict[str, int](), Pace(_PODS_IN_A_STEP)
    for pod in pods if stock else ():
        if pace.due():
            yield
        for use in _uses(ledger, pod, stock):
            used[use.card] += use.milli
            if not use.named:
                unaccounted[use.card] = unaccounted.get(use.card, 0) + use.milli
    return used, unaccounted


class _Use(NamedTuple):
    """What a pod uses of one card of its node, in thousandths, and whether it says so by the name of any card of that resource."""

    card: str
    milli: int
    named: bool


def _uses(ledger: Ledger, pod: Pod, stock: Mapping[str, CardStock]) -> list[_Use]:
    """By what it asks for, but for devices of claims."""
    if ledger.devices.wanted(pod):
        return []
    named = {stock[card].resource for card in split(pod.card_name) if card in stock}
    return [
        _Use(card, asked, carried.resource in named)
        for card, carried in stock.items()
        if (asked := pod.requests.get(carried.resource, 0))
    ]


def _taken(card: Card, model: NodeModel) -> Fraction:
    taken = Fraction(FULL_CARD - card.core, FULL_CARD)
    return max(taken, Fraction(model.memory - card.memory, model.memory)) if model.memory else taken

"""How full the cards of a node are, and with whom: what pods physically use, whatever their queues were promised."""

from typing import Any

from core.mgpu import records
from core.mgpu.node import model_of
from core.mgpu.occupancy import occupancy
from core.mgpu.shares import FULL_CARD
from core.objects import Node, Pod
from core.queues.ledger import Ledger


def fill_of(ledger: Ledger, name: str) -> dict[str, Any]:
    """A node's `cards` by name in whole cards, and its `mgpu` cards in hundredths and MiB. Raises KeyError where there is no such node."""
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
    for pod in pods:
        entry = ledger.entry(pod.uid)
        if entry is not None and entry.demand.card is not None and pod.bound:
            asked = entry.demand.card
            users.setdefault(asked.card, {})[pod.key] = asked.milli // 1000
    return {
        card: {
            "resource": stock[card].resource if card in stock else "",
            "count": stock[card].milli // 1000 if card in stock else 0,
            "used": sum(users.get(card, {}).values()),
            "pods": users.get(card, {}),
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

"""A node that shows the product of a card and does not carry it: what it lacks, and the node as it would be with that."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from core.cards.inventory import Inventory
from core.cards.product import integer
from core.cards.vendor import Vendor
from core.cards.vendors import MPS_SHARING, REPLICAS_LABEL, SHARED_SUFFIX, STRATEGY_LABEL, TIME_SLICING
from core.objects import Node

_SLICED: Final = re.compile(r"(?P<kind>mps|ts)-(?P<memory>[0-9]+)g\*1/(?P<replicas>[0-9]+)")
_ANY_MEMORY: Final = "1024"
"""MiB; whole cards have no memory in their name."""


def mended(inventory: Inventory, node: Node, card: str, resource: str, least: int) -> Node | None:
    """The node with the labels and the resource that make it carry the card; None where it does not become so.

    What is there stays, save numbers that are none. Of a resource that is missing it gets as much as its labels say, else `least`
    (thousandths).
    """
    product, _, share = card.partition("/")
    for label, value in sorted(node.labels.items()):
        row = inventory.row_of(label) if value.removesuffix(SHARED_SUFFIX) == product else None
        if row is None:
            continue
        labels = {**node.labels, **_lacking(row, share, node.labels)}
        amounts = dict(node.allocatable)
        if amounts.get(resource, 0) <= 0:
            count = next((number for key in row.counts if (number := integer(labels.get(key, "")))), 0)
            amounts[resource] = count * 1000 if count > 0 and not share else least
        changed = replace(node, labels=labels, allocatable=amounts)
        if card in inventory.discovered(changed).cards:
            return changed
    return None


def _lacking(row: Vendor, share: str, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels beside the product's that tell the card, as far as they are missing, or are no numbers."""
    wanted: dict[str, str] = {}
    if row.memory_needed and row.memories and not any(labels.get(key) for key in row.memories):
        wanted[row.memories[0]] = _ANY_MEMORY
    sliced = _SLICED.fullmatch(share)
    if sliced is not None and row.memories:
        memory = next((key for key in row.memories if labels.get(key)), row.memories[0])
        if integer(labels.get(memory, "")) is None:
            wanted[memory] = str(int(sliced["memory"]) * 1024)
        if integer(labels.get(REPLICAS_LABEL, "")) is None:
            wanted[REPLICAS_LABEL] = sliced["replicas"]
        if not labels.get(STRATEGY_LABEL):
            wanted[STRATEGY_LABEL] = MPS_SHARING if sliced["kind"] == "mps" else TIME_SLICING
    elif share and row.partitions and not any(labels.get(key) for key in row.partitions):
        wanted[row.partitions[0]] = share
    return wanted


def passed_over(inventory: Inventory, node: Node, cards: Collection[str]) -> tuple[str, ...]:
    """What is remarked about a node that carries none of these cards, though a label of it names the product of one.

    Empty for any other node; an administrator who mends what is told gets the card.
    """
    notes = inventory.notes(node.name)
    if not notes or not inventory.on_node(node.name).keys().isdisjoint(cards):
        return ()
    products = {card.partition("/")[0] for card in cards}
    shown = {value.removesuffix(SHARED_SUFFIX) for value in node.labels.values()}
    return () if products.isdisjoint(shown) else notes

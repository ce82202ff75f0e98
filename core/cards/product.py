"""Which product a node's labels name, and by which row of the table."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.cards import expression, vendors
from core.cards.vendor import Vendor, generic
from core.cards.vendors import NVIDIA
from core.objects import Node

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Product:
    """A recognised product label. `memory` in MiB, where it is a plain number."""

    vendor: Vendor
    label: str
    value: str
    name: str
    memory: int | None

    def offers(self, resource: str) -> bool:
        """Whether a resource is one of the product's vendor."""
        vendor = self.vendor
        return vendor.position(resource) is not None or resource.partition("/")[0] in vendor.domains


def product_of(node: Node, table: Sequence[Vendor], notes: list[str]) -> Product | None:
    """The node's product: one whose own resource is there, else one of whose vendor any is, else the first label."""
    found = [
        product
        for label, vendor in sorted(_rows(node.labels, table), key=lambda row: row[0])
        if (product := _described(vendor, label, node.labels, notes)) is not None
    ]
    if not found:
        return None
    chosen = min(found, key=lambda product: _absence(product, node.allocatable))
    if len(found) > 1:
        notes.append(f"several product labels, {chosen.label} is used")
    return chosen


def _rows(labels: Mapping[str, str], table: Sequence[Vendor]) -> Iterator[tuple[str, Vendor]]:
    """Each product label of the node with its row, the first that has it; of several labels of one row the first."""
    listed: set[str] = set()
    for vendor in table:
        label = next((label for label in vendor.products if labels.get(label) and label not in listed), None)
        listed.update(vendor.products)
        if label is not None:
            yield label, vendor
    for label in labels.keys() - listed:
        row = generic(label) if labels[label] else None
        if row is not None:
            yield label, row


def _described(vendor: Vendor, label: str, labels: Mapping[str, str], notes: list[str]) -> Product | None:
    value = labels[label]
    name = value.removesuffix(vendors.SHARED_SUFFIX) if _is_shared_by_name(vendor, value, labels) else value
    memory = next((labels[key] for key in vendor.memories if labels.get(key)), None)
    if not expression.is_product(name):
        notes.append(f"label {label} cannot be a card name")
        return None
    if vendor.memory_needed:
        if memory is None:
            notes.append(f"label {vendor.memories[0]} is missing, {name} is not recognised")
            return None
        numbers = [key for key in (*vendor.counts, *vendor.memories) if labels.get(key)]
        notes += [f"label {key} is no number" for key in numbers if integer(labels[key]) is None]
    return Product(vendor, label, value, name, integer(memory or ""))


def _absence(product: Product, allocatable: Mapping[str, int]) -> int:
    """How far from the node's resources a product is. One of which nothing is left comes after one that is there."""
    own = [milli for name, milli in allocatable.items() if product.vendor.position(name) is not None]
    if any(milli > 0 for milli in own):
        return 0
    domains = product.vendor.domains
    if any(milli > 0 and name.partition("/")[0] in domains for name, milli in allocatable.items()):
        return 1
    return 2 if own else 3


def _is_shared_by_name(vendor: Vendor, value: str, labels: Mapping[str, str]) -> bool:
    """Whether the product's suffix says that the cards are shared under the name of whole ones.

    A feature discovery that writes no strategy knows time-slicing alone.
    """
    if vendor is not NVIDIA or not value.endswith(vendors.SHARED_SUFFIX):
        return False
    strategy = labels.get(vendors.STRATEGY_LABEL, "")
    if strategy:
        return strategy in (vendors.TIME_SLICING, vendors.MPS_SHARING)
    return (integer(labels.get(vendors.REPLICAS_LABEL, "")) or 0) > 1


def integer(text: str) -> int | None:
    """A plain decimal integer; Python's `int` alone would also take `1_0`, blanks and other digits."""
    return int(text) if _INTEGER.fullmatch(text) else None

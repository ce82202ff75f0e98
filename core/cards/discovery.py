"""Which cards a node carries: names from its labels, amounts from `status.allocatable` alone.

Labels never give amounts, capacity is never read, and readiness does not matter: a card on a broken node still exists.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core import names
from core.cards import expression
from core.objects import Node

_PRODUCT_LABEL: Final = re.compile(r"(?P<prefix>(?P<vendor>.+?)/\w+)\.product", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class CardStock:
    """How much of a card a node has: the resource that stands for it, in thousandths."""

    resource: str
    milli: int


@dataclass(frozen=True, slots=True)
class NodeCards:
    """The cards of one node by name, and remarks about labels or resources that were passed over."""

    cards: Mapping[str, CardStock]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Product:
    """A recognised product label: `nvidia.com/gpu` is the prefix, `nvidia.com` the vendor. `memory` in MiB."""

    prefix: str
    vendor: str
    name: str
    memory: int | None


def discover(node: Node, overrides: Mapping[str, str]) -> NodeCards:
    """The cards of a node. `overrides` maps a product to its resource, whatever the node shows. Never raises."""
    notes: list[str] = []
    product = _product(node, notes)
    amounts = {name: milli for name, milli in sorted(node.allocatable.items()) if milli > 0}
    cards: dict[str, CardStock] = {}
    for resource, milli in amounts.items():
        card = _share(resource, node.labels, product, notes)
        if card is not None:
            cards[card] = CardStock(resource, milli)
    if product is not None:
        whole = overrides.get(product.name) or _whole(product, node.allocatable, notes)
        if whole in amounts:
            cards[product.name] = CardStock(whole, amounts[whole])
        if not cards:
            notes.append(f"{product.name} has a label, but no resource in status.allocatable")
    return NodeCards(cards, tuple(notes))


def _product(node: Node, notes: list[str]) -> _Product | None:
    """The node's product: one whose own resource is there, else one of whose vendor any is, else the first label."""
    found: list[_Product] = []
    for key in sorted(node.labels):
        match = _PRODUCT_LABEL.fullmatch(key)
        if match is None or not node.labels[key]:
            continue
        product = _described(match["prefix"], match["vendor"], node.labels, notes)
        if product is not None:
            found.append(product)
    if not found:
        return None
    chosen = min(found, key=lambda product: _absence(product, node.allocatable))
    if len(found) > 1:
        notes.append(f"several product labels, {chosen.prefix}.product is used")
    return chosen


def _described(prefix: str, vendor: str, labels: Mapping[str, str], notes: list[str]) -> _Product | None:
    name, memory, count = (
        labels[f"{prefix}.product"],
        labels.get(f"{prefix}.memory"),
        labels.get(f"{prefix}.count"),
    )
    if not expression.is_product(name):
        notes.append(f"label {prefix}.product cannot be a card name")
        return None
    if not memory:
        notes.append(f"label {prefix}.memory is missing, {name} is not recognised")
        return None
    if count and _integer(count) is None:
        notes.append(f"label {prefix}.count is no number")
    if _integer(memory) is None:
        notes.append(f"label {prefix}.memory is no number")
    return _Product(prefix, vendor, name, _integer(memory))


def _absence(product: _Product, allocatable: Mapping[str, int]) -> int:
    if product.prefix in allocatable:
        return 0
    return 1 if any(resource.startswith(f"{product.vendor}/") for resource in allocatable) else 2


def _share(
    resource: str, labels: Mapping[str, str], product: _Product | None, notes: list[str]
) -> str | None:
    """The name of the share that the resource stands for; None when it stands for none, or for none with a name."""
    if resource != names.MPS_RESOURCE and not resource.startswith(names.MIG_RESOURCE_PREFIX):
        return None
    if product is None:
        notes.append(f"{resource} is passed over: no product label is recognised")
        return None
    card = _mps_name(product, labels) if resource == names.MPS_RESOURCE else _mig_name(product, resource)
    if card is None or not expression.is_share(card):
        notes.append(f"{resource} is passed over: the labels or its name give no card name")
        return None
    return card


def _mps_name(product: _Product, labels: Mapping[str, str]) -> str | None:
    replicas = _integer(labels.get(names.MPS_REPLICAS_LABEL, ""))
    if product.memory is None or replicas is None or replicas <= 0:
        return None
    # Half a gibibyte rounds up; Python's round() would go to the even neighbour.
    return f"{product.name}/mps-{(product.memory + 512) // 1024}g*1/{replicas}"


def _mig_name(product: _Product, resource: str) -> str:
    return f"{product.name}/mig-{resource.removeprefix(names.MIG_RESOURCE_PREFIX)}-mixed"


def _whole(product: _Product, allocatable: Mapping[str, int], notes: list[str]) -> str:
    """The resource of whole cards: the label's own, else the vendor's only other one, else the smallest name.

    The label's own counts even at 0: on a node whose cards are all cut, nothing else stands for whole cards.
    """
    if product.prefix in allocatable:
        return product.prefix
    others = sorted(
        resource
        for resource, milli in allocatable.items()
        if milli > 0 and resource.startswith(f"{product.vendor}/") and not _is_share_resource(resource)
    )
    if len(others) > 1:
        notes.append(f"{product.name} could be any of {', '.join(others)}; {others[0]} is used")
    return others[0] if others else ""


def _is_share_resource(resource: str) -> bool:
    fraction = resource == names.MPS_RESOURCE or resource in names.MGPU_RESOURCES
    return fraction or resource.startswith(names.MIG_RESOURCE_PREFIX)


def _integer(text: str) -> int | None:
    """A plain decimal integer; Python's `int` alone would also take `1_0`, blanks and other digits."""
    return int(text) if _INTEGER.fullmatch(text) else None

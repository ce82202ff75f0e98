"""Which cards a node carries: names from its labels, amounts from `status.allocatable` alone.

Labels never give amounts, capacity is never read, and readiness does not matter: a card on a broken node still exists. Which label
and which resource belong together stands in the table of `core.cards.vendors`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from core import names
from core.cards import expression, shares, vendors
from core.cards.alarms import Alarm, alarms_of
from core.cards.product import Product, integer, product_of
from core.cards.vendor import Vendor
from core.cards.vendors import NVIDIA, VENDORS
from core.objects import Node

_CORES_OF_A_CARD: Final = 100

Labels = tuple[tuple[str, str], ...]
"""Labels of a node by which one of its cards is told, the product's first; an empty value is a label that must not be there."""


@dataclass(frozen=True, slots=True)
class CardStock:
    """How much of a card a node has: the resource that stands for it, in thousandths."""

    resource: str
    milli: int


@dataclass(frozen=True, slots=True)
class NodeCards:
    """The cards of one node by name, by which labels each is told, and remarks about what was passed over.

    The `alarms` are among the `notes`; a remark that is part of one is not there a second time.
    """

    cards: Mapping[str, CardStock]
    notes: tuple[str, ...] = ()
    labels: Mapping[str, Labels] = field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    product: Product | None = None
    """What the labels name, whatever of it is offered."""
    shared: int | None = None
    """How many cards the node gives out in mGPU shares; None where it offers none."""


def discover(node: Node, overrides: Mapping[str, str], table: Sequence[Vendor] = VENDORS) -> NodeCards:
    """The cards of a node. `overrides` maps a product to its resource, whatever the node shows. Never raises."""
    notes: list[str] = []
    product = product_of(node, table, notes)
    amounts = {name: milli for name, milli in sorted(node.allocatable.items()) if milli > 0}
    cards: dict[str, CardStock] = {}
    labels: dict[str, Labels] = {}
    if product is not None:
        for card, resource, told in _cards(product, node, amounts, overrides, notes):
            cards[card], labels[card] = CardStock(resource, amounts[resource]), told
        if not cards and names.MGPU_CORE not in node.allocatable:
            notes.append(f"{product.name} has a label, but no resource in status.allocatable")
    whole = {stock.resource: stock.milli for card, stock in cards.items() if "/" not in card}
    counted = {stock.resource for stock in cards.values()}
    alarms = tuple(alarms_of(node, product, whole, counted, amounts, notes))
    messages = tuple(alarm.message for alarm in alarms)
    others = tuple(note for note in notes if not any(note in message for message in messages))
    core = node.allocatable.get(names.MGPU_CORE)
    shared = None if core is None else core // 1000 // _CORES_OF_A_CARD
    return NodeCards(cards, (*others, *messages), labels, alarms, product, shared)


def _cards(
    product: Product,
    node: Node,
    amounts: Mapping[str, int],
    overrides: Mapping[str, str],
    notes: list[str],
) -> Iterator[tuple[str, str, Labels]]:
    """(card, resource, labels by which it is told) of everything that the node offers of its product."""
    for resource in amounts:
        share = _share(product, resource, node.labels, notes)
        if share is not None:
            yield share[0], resource, share[1]
    whole = overrides.get(product.name) or _whole(product, node.allocatable, notes)
    if whole not in amounts:
        return
    if product.name in overrides:
        yield product.name, whole, ((product.label, product.value),)
        return
    card, told = _sharing(product, node, whole, notes)
    if card is not None:
        yield card, whole, told


def _share(
    product: Product, resource: str, labels: Mapping[str, str], notes: list[str]
) -> tuple[str, Labels] | None:
    """The share that a resource stands for by its name; None when it stands for none, or for none with a name."""
    told: Labels = ((product.label, product.value),)
    if product.vendor is not NVIDIA and _is_nvidia_share(resource):
        # The documents know these two whatever the product's label is called.
        return _nvidia_share(product, resource, labels, notes)
    for kind in product.vendor.shares:
        match = kind.offered.fullmatch(resource) if kind.offered is not None else None
        if match is None:
            continue
        if kind in (shares.MPS, shares.MIG):
            return _nvidia_share(product, resource, labels, notes)
        part = match["template"] if kind is shares.VNPU else match["partition"]
        return f"{product.name}/{kind.prefix}{part}", told
    return None


def _is_nvidia_share(resource: str) -> bool:
    return resource == names.MPS_RESOURCE or resource.startswith(names.MIG_RESOURCE_PREFIX)


def _nvidia_share(
    product: Product, resource: str, labels: Mapping[str, str], notes: list[str]
) -> tuple[str, Labels] | None:
    told: Labels = ((product.label, product.value),)
    if resource != names.MPS_RESOURCE:
        card: str | None = f"{product.name}/mig-{resource.removeprefix(names.MIG_RESOURCE_PREFIX)}-mixed"
    elif labels.get(vendors.STRATEGY_LABEL) == vendors.TIME_SLICING:
        card, told = _replicated(product, "ts", labels)
    else:
        card, told = _replicated(product, "mps", labels)
    if card is None or not expression.is_share(card):
        notes.append(f"{resource} is passed over: the labels or its name give no card name")
        return None
    return card, told


def _replicated(product: Product, kind: str, labels: Mapping[str, str]) -> tuple[str | None, Labels]:
    """A share of which the labels tell how many one card is cut into, and the labels that tell it."""
    replicas = integer(labels.get(vendors.REPLICAS_LABEL, ""))
    if product.memory is None or replicas is None or replicas <= 0:
        return None, ()
    keys = (
        product.label,
        vendors.REPLICAS_LABEL,
        next((key for key in product.vendor.memories if labels.get(key)), ""),
        vendors.STRATEGY_LABEL,
    )
    told = tuple((key, labels[key]) for key in keys if key in labels)
    # Half a gibibyte rounds up; Python's round() would go to the even neighbour.
    return f"{product.name}/{kind}-{(product.memory + 512) // 1024}g*1/{replicas}", told


def _sharing(product: Product, node: Node, resource: str, notes: list[str]) -> tuple[str | None, Labels]:
    """What the resource of whole cards stands for on a node whose cards may be shared or cut under that name."""
    labels = node.labels
    told: Labels = ((product.label, product.value),)
    if product.vendor is NVIDIA and resource == names.NVIDIA_RESOURCE:
        kind = _sharing_kind(product, node)
        if kind:
            card, told = _replicated(product, kind, labels)
            if card is None:
                notes.append(f"{resource} is passed over: the labels give no name for its shares")
            return card, told
    if product.vendor.position(resource) == 0 and product.vendor.partitions:
        return _partition(product, resource, labels, notes)
    return product.name, told


def _partition(
    product: Product, resource: str, labels: Mapping[str, str], notes: list[str]
) -> tuple[str | None, Labels]:
    """What cards are cut into whose resource is the same, cut or whole; whole ones are told by the label's absence as well."""
    keys = product.vendor.partitions
    told: Labels = ((product.label, product.value), *((key, labels.get(key, "")) for key in keys))
    found = next((labels[key] for key in keys if labels.get(key)), "").lower()
    if found in ("", vendors.UNCUT_PARTITION):
        return product.name, told
    card = f"{product.name}/{found}"
    if expression.is_share(card):
        return card, told
    notes.append(f"{resource} is passed over: {found} is no partition")
    return None, ()


def _sharing_kind(product: Product, node: Node) -> str:
    """`ts` or `mps` where `nvidia.com/gpu` stands for shares; empty where it stands for whole cards.

    Where the plugin renames shares, what is left under the name of whole cards is whole.
    """
    strategy = node.labels.get(vendors.STRATEGY_LABEL, "")
    renamed = node.allocatable.get(names.MPS_RESOURCE, 0) > 0
    replicas = integer(node.labels.get(vendors.REPLICAS_LABEL, "")) or 0
    shared = product.value != product.name or (replicas > 1 and not renamed)
    if strategy == vendors.MPS_SHARING:
        return "mps" if shared else ""
    if strategy == vendors.TIME_SLICING:
        return "ts" if shared else ""
    return "ts" if product.value != product.name else ""


def _whole(product: Product, allocatable: Mapping[str, int], notes: list[str]) -> str:
    """The resource of whole cards: the row's own, else the vendor's only other one, else the smallest name.

    NVIDIA's own counts even at 0: on a node whose cards are all cut, nothing else stands for whole cards. Elsewhere one at 0
    does not take the cards of its sibling.
    """
    vendor = product.vendor
    own = sorted(
        (position, resource)
        for resource in allocatable
        if (position := vendor.position(resource)) is not None
    )
    offered = [resource for _, resource in own if allocatable[resource] > 0]
    if offered:
        if len(offered) > 1 and len(vendor.resources) == 1:
            notes.append(f"{product.name} could be any of {', '.join(offered)}; {offered[0]} is used")
        return offered[0]
    if not vendor.any_resource or (own and vendor is NVIDIA):
        return ""
    others = sorted(
        resource
        for resource, milli in allocatable.items()
        if milli > 0 and resource.partition("/")[0] in vendor.domains and not _is_share_resource(resource)
    )
    if len(others) > 1:
        notes.append(f"{product.name} could be any of {', '.join(others)}; {others[0]} is used")
    return others[0] if others else ""


def _is_share_resource(resource: str) -> bool:
    return resource in names.MGPU_RESOURCES or expression.stands_for_share(resource)

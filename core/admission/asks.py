"""Whether a pod, or the template of one, asks for anything of ours; judged on raw JSON.

The API server decides with a CEL expression which pods it sends here at all. That expression is a little wider
(it also lets through an empty card name, a list of card counts without an mGPU resource); what counts in the end
is the meaning below, which is that of `core.objects.Pod`: whatever is gated here must be lifted by the controller.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.admission.view import Context
from core.cards.expression import stands_for_share
from core.mgpu.amounts import asks_mgpu
from core.objects import raw as read
from core.objects.pod_resources import aggregate, extended
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class Asks:
    """What a pod asks for: cards by name, shares of mGPU cards, ResourceClaims."""

    cards: bool
    mgpu: bool
    claims: bool

    def __bool__(self) -> bool:
        return self.cards or self.mgpu or self.claims


def asks_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Asks:
    """What the pod with this metadata and spec asks for. An empty card name asks for nothing."""
    return Asks(
        cards=bool(read.text(read.mapping(metadata, "annotations"), names.CARD_NAME_ANNOTATION)),
        mgpu=asks_mgpu(spec),
        claims=bool(read.sequence(spec, "resourceClaims")),
    )


def counted(asks: Asks, settings: Settings) -> bool:
    """Whether the pod asks for something whose feature is on."""
    features = settings.features
    return (asks.cards and features.cards) or (asks.mgpu and features.mgpu) or (asks.claims and features.dra)


def _asks_unnamed_card(spec: Mapping[str, Any], context: Context) -> bool:
    """Whether a pod that names no card asks for one, where that is gated; any extended resource while no node was seen."""
    settings, inventory = context.settings, context.view.inventory
    if settings.cards.pods_without_card_name != "infer" or not settings.features.cards:
        return False
    resources = extended(aggregate(spec, "requests"))
    if inventory is None:
        return bool(resources)
    return any(stands_for_share(resource) or inventory.cards_of(resource) for resource in resources)


def asks_ours(metadata: Mapping[str, Any], spec: Mapping[str, Any], context: Context) -> bool:
    """Whether a pod asks for something of ours whose feature is on.

    Among that are extended resources which a DeviceClass serves, or which stand for a card that nobody named and that is to
    be inferred. Where the DeviceClasses are not known yet, any may be one: the controller lets a pod go that waits for nothing.
    """
    if counted(asks_of(metadata, spec), context.settings) or _asks_unnamed_card(spec, context):
        return True
    classes = context.view.serving
    if not context.settings.features.dra or (classes is not None and not classes):
        return False
    resources = extended(aggregate(spec, "requests"))
    return any(classes is None or classes.serving(resource) for resource in resources)

"""Whether a pod, or the template of one, asks for anything of ours; judged on raw JSON.

The API server decides with a CEL expression which pods it sends here at all. That expression is a little wider
(it also lets through an empty card name, a list of card counts without an mGPU resource); what counts in the end
is the meaning below, which is that of `core.objects.Pod`: whatever is gated here must be lifted by the controller.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.mgpu.amounts import asks_mgpu
from core.objects import raw as read
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

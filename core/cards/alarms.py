"""What does not add up on a node and costs somebody cards: accelerators that no quota counts, labels that cannot be true."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core import names, reasons
from core.cards import expression, vendors
from core.cards.product import Product, integer
from core.cards.vendors import NVIDIA
from core.objects import Node

_SEEN: Final = "docs/cards.md says what a node has to show"
UNLABELLED: Final = {
    "Cambricon": ("cambricon.com/mlu", "Cambricon/cambricon-k8s-device-plugin, device-plugin/README.md"),
    "Moore Threads": ("mthreads.com/gpu", "Project-HAMi/HAMi, its guide to Moore Threads"),
    "Kunlunxin": ("kunlunxin.com/xpu", "Tencent Cloud, document 457/138230, component xpu-gpu"),
}
"""Vendors whose software names no product in a public node label: name -> (resource, where it was looked up)."""
_DOMAINS: Final = frozenset(
    {
        "nvidia.com",
        "amd.com",
        "huawei.com",
        "gpu.intel.com",
        "habana.ai",
        "cambricon.com",
        "hygon.com",
        "enflame.com",
        "metax-tech.com",
        "iluvatar.com",
        "iluvatar.ai",
        "mthreads.com",
        "kunlunxin.com",
    }
)
_WORDS: Final = re.compile(
    r"(?:^|[^a-z])v?(?:gpu|npu|xpu|dcu|mlu|gcu|ppu|tpu|gaudi|neuron|accelerator|ascend[0-9a-z]*)s?(?:$|[^a-z])"
)
_NOT_DEVICES: Final = re.compile(r"mem|core|rdma|hca|hostdev|monitoring|percentage|priority")
"""Words in resources that the same vendors offer beside their cards."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A reason, and the words for a person."""

    reason: str
    message: str


def alarms_of(
    node: Node,
    product: Product | None,
    whole: Mapping[str, int],
    counted: Container[str],
    amounts: Mapping[str, int],
    notes: Sequence[str],
) -> Iterator[Alarm]:
    """The alarms of a node that offers these `amounts` in thousandths, those of the resources `counted` as its cards.

    `whole` are its whole cards by the name of their resource, in thousandths; `notes` what was passed over, and why.
    """
    if product is not None:
        for text in _contradicted(node.labels, product, whole, amounts):
            yield Alarm(
                reasons.CARD_LABELS_CONTRADICT, f"labels contradict status.allocatable: {text}; {_SEEN}"
            )
    served = {resource.partition("/")[0] for resource in amounts if resource in counted}
    for resource in amounts:
        if resource in counted or not _is_missed(resource, served):
            continue
        why = next((note for note in notes if resource in note), None) or next(iter(notes), None)
        text = f"{resource} is offered and gives no card, so no card quota counts it"
        message = f"{text}: {why or 'no product label is recognised'}; {_SEEN}"
        yield Alarm(reasons.ACCELERATOR_WITHOUT_CARD, message)


def _is_missed(resource: str, served: Container[str]) -> bool:
    """Whether a resource without card should have one: by its own name, or by its vendor where this has no card here at all."""
    if resource in names.MGPU_RESOURCES:
        return False
    if expression.stands_for_share(resource) or is_named_like_accelerator(resource):
        return True
    return looks_like_accelerator(resource) and resource.partition("/")[0] not in served


def _contradicted(
    labels: Mapping[str, str], product: Product, whole: Mapping[str, int], amounts: Mapping[str, int]
) -> Iterator[str]:
    if not any(product.offers(resource) or resource in names.MGPU_RESOURCES for resource in amounts):
        yield f"{product.name} has a label, but no resource in status.allocatable"
    for key in product.vendor.counts:
        count = integer(labels.get(key, ""))
        for resource, milli in whole.items():
            if count is not None and 0 < count * 1000 < milli:
                yield f"{key} says {count}, and {milli // 1000} {resource} are offered, as if cards were shared"
    if product.vendor is NVIDIA:
        yield from _contradicted_by_nvidia(labels, product, amounts)


def _contradicted_by_nvidia(
    labels: Mapping[str, str], product: Product, amounts: Mapping[str, int]
) -> Iterator[str]:
    if product.value == product.name and product.value.endswith(vendors.SHARED_SUFFIX):
        yield (
            f"{product.label} says {product.value}, and neither {vendors.STRATEGY_LABEL} nor "
            f"{vendors.REPLICAS_LABEL} says that cards are shared"
        )
    strategy = labels.get(vendors.MIG_STRATEGY_LABEL)
    cut = [resource for resource in amounts if resource.startswith(names.MIG_RESOURCE_PREFIX)]
    if cut and strategy in ("single", "none"):
        yield f"{vendors.MIG_STRATEGY_LABEL} says {strategy}, and {cut[0]} is offered"


def looks_like_accelerator(resource: str) -> bool:
    """Whether an extended resource seems to stand for accelerators: by its vendor, or by a word in its name."""
    return is_named_like_accelerator(resource) or (
        resource.partition("/")[0] in _DOMAINS and not _stands_beside_devices(resource)
    )


def is_named_like_accelerator(resource: str) -> bool:
    """Whether a word in its name says so, whoever its vendor is."""
    _, slash, kind = resource.partition("/")
    return bool(slash) and not _stands_beside_devices(resource) and _WORDS.search(kind.lower()) is not None


def _stands_beside_devices(resource: str) -> bool:
    return _NOT_DEVICES.search(resource.partition("/")[2].lower()) is not None

"""Which extended resources seem to stand for accelerators, whether or not the table of vendors knows their labels."""

import re
from typing import Final

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

"""The kinds of shares of a card: how the part after the slash of a card name is written, and which resource it means.

A share is a card of its own: it has a name, a quota and a number, and one share is never counted as a whole card.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from core import names

Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class Share:
    """A kind of share.

    `written` is the grammar of the part after the slash, `prefix` what begins it (a name that begins like this and does not
    follow the grammar is a mistake; empty where nothing else can be told by that), `like` an example for messages.
    `resources` gives the resources that may stand for such a share, from its name alone; none where only nodes can tell.
    `offered` is the grammar of resources that stand for shares of this kind and for nothing else.
    """

    title: str
    written: re.Pattern[str]
    prefix: str
    like: str
    resources: Callable[[Match], frozenset[str]]
    offered: re.Pattern[str] | None = None


_AMD_PARTITION: Final = r"(?:spx|dpx|tpx|qpx|cpx)_nps[0-9]+"

MPS: Final = Share(
    "an MPS share",
    re.compile(r"mps-[0-9]+g\*1/[1-9][0-9]*"),
    "mps-",
    "A100/mps-80g*1/8",
    lambda _: frozenset({names.MPS_RESOURCE}),
    re.compile(re.escape(names.MPS_RESOURCE)),
)
MIG: Final = Share(
    "a MIG share",
    re.compile(r"mig-(?P<profile>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)-mixed"),
    "mig-",
    "H200/mig-1g.18gb-mixed",
    lambda match: frozenset({names.MIG_RESOURCE_PREFIX + match["profile"]}),
    re.compile(re.escape(names.MIG_RESOURCE_PREFIX) + ".*"),
)
TIME_SLICE: Final = Share(
    "a time-slice",
    re.compile(r"ts-[0-9]+g\*1/[1-9][0-9]*"),
    "ts-",
    "H200/ts-140g*1/4",
    # The device plugin renames the resource only where it is told to.
    lambda _: frozenset({names.NVIDIA_RESOURCE, names.MPS_RESOURCE}),
)
AMD_PARTITION: Final = Share(
    "an AMD partition",
    re.compile(_AMD_PARTITION),
    "",
    "AMD_Instinct_MI300X_OAM/cpx_nps4",
    # By the plugin's naming strategy: `single` or `mixed`.
    lambda match: frozenset({"amd.com/gpu", f"amd.com/{match[0]}"}),
    re.compile(rf"amd\.com/(?!spx_nps1$)(?P<partition>{_AMD_PARTITION})"),
)
VNPU: Final = Share(
    "an Ascend vNPU",
    re.compile(r"vnpu-(?P<template>[0-9]+c(?:\.[0-9a-z]+)*)"),
    "vnpu-",
    "310P3/vnpu-4c.3cpu",
    # The name of the chip does not tell the family that stands in the resource.
    lambda _: frozenset(),
    re.compile(r"huawei\.com/(?:Ascend[0-9A-Za-z]+|npu)-(?P<template>[0-9]+c(?:\.[0-9a-z]+)*)"),
)

SHARES: Final = (MPS, MIG, TIME_SLICE, AMD_PARTITION, VNPU)


def kind_of(share: str) -> tuple[Share, Match] | None:
    """The kind of share that the part after the slash names; None for one that is not known."""
    for kind in SHARES:
        match = kind.written.fullmatch(share)
        if match is not None:
            return kind, match
    return None


def misspelt(share: str) -> Share | None:
    """The kind that the part after the slash was meant to name, if it begins like one and does not follow its grammar."""
    for kind in SHARES:
        if kind.prefix and share.startswith(kind.prefix) and kind.written.fullmatch(share) is None:
            return kind
    return None


def stands_for_share(resource: str) -> bool:
    """Whether a resource is that of a share of a card, by its name alone."""
    return len(resource) <= names.LONGEST_RESOURCE and _stands_for_share(resource)


@lru_cache(maxsize=4096)
def _stands_for_share(resource: str) -> bool:
    return any(kind.offered is not None and kind.offered.fullmatch(resource) for kind in SHARES)

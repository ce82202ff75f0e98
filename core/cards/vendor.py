"""What a row of the table of vendors holds, and the row of a label that no vendor of the table writes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.cards.shares import Share


@dataclass(frozen=True, slots=True)
class Example:
    """A node as the vendor's software makes it, and the cards that it shows: name -> (resource, number)."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    cards: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Vendor:
    """A row. Labels are tried in their order, the first that is there counts; resources are patterns, tried likewise.

    `memories` hold the memory of one card; where `memory_needed`, a node without one is not recognised. `partitions` are labels
    that say into which shares all cards of the node are cut while their resource stays the same. `any_resource`: what else the
    vendor's domain offers is its card too when none of `resources` is there.
    """

    name: str
    products: tuple[str, ...]
    resources: tuple[str, ...]
    memories: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    memory_needed: bool = False
    any_resource: bool = False
    partitions: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()
    written_by: str = ""
    sources: tuple[str, ...] = ()
    """Where labels and resources were looked up."""
    examples: tuple[Example, ...] = field(default=(), compare=False)

    @property
    def domains(self) -> frozenset[str]:
        """The domains of its resources."""
        return frozenset(pattern.replace("\\", "").partition("/")[0] for pattern in self.resources)

    def position(self, resource: str) -> int | None:
        """Which of `resources` a resource is; None for none."""
        found = (number for number, pattern in enumerate(self.resources) if re.fullmatch(pattern, resource))
        return next(found, None)


_GENERIC_LABEL: Final = re.compile(r"(?P<prefix>(?P<domain>.+?)/\w+)\.product", re.ASCII)


def generic(label: str) -> Vendor | None:
    """The row of a label that is named after its resource: `<resource>.product`, with `<resource>.memory` beside it."""
    match = _GENERIC_LABEL.fullmatch(label)
    if match is None:
        return None
    prefix = match["prefix"]
    return Vendor(
        name=match["domain"],
        products=(label,),
        memories=(f"{prefix}.memory",),
        counts=(f"{prefix}.count",),
        memory_needed=True,
        any_resource=True,
        resources=(re.escape(prefix),),
    )

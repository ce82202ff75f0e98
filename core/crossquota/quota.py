"""What all guests of a node together may use of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from core import names, quantity
from core.crossquota.guest import enabled, holds_gpu
from core.objects import Node
from core.settings import Settings
from core.settings.crossquota import percentage

Quota = Mapping[str, Fraction]
"""Limited resource -> its limit in thousandths, exact; in the order of the checks."""

PERCENTAGE_PREFIX: Final = names.CROSSQUOTA_PREFIX + "percentage-"


@dataclass(frozen=True, slots=True)
class NodeAnnotation:
    """A limit in a node's annotations: for which resource, in which of the two forms, and the text."""

    key: str
    resource: str
    percentage: bool
    text: str

    def read(self) -> Fraction:
        """The amount in the base unit, or the percentage. Raises ValueError, which says why it cannot be read."""
        text = self.text.strip()
        if self.percentage:
            return percentage(text)
        amount = quantity.parse(text)
        if amount < 0:
            raise ValueError("must not be negative")
        return amount


def node_annotations(annotations: Mapping[str, str]) -> Iterator[NodeAnnotation]:
    """The limits that a node's annotations set; a blank one sets none."""
    for key, text in annotations.items():
        if not text.strip() or not key.startswith(names.CROSSQUOTA_PREFIX):
            continue
        relative = key.startswith(PERCENTAGE_PREFIX)
        prefix = PERCENTAGE_PREFIX if relative else names.CROSSQUOTA_PREFIX
        yield NodeAnnotation(key, key.removeprefix(prefix), relative, text)


def node_quota(node: Node, settings: Settings) -> Quota | None:
    """The limits of a node; None for a node without GPUs, which has none."""
    rule = settings.cross_quota
    if not enabled(settings) or not holds_gpu(node.allocatable, rule.gpu_resource_names):
        return None
    own = {(found.resource, found.percentage): found for found in node_annotations(node.annotations)}
    return {resource: _limit(resource, node, own, settings) for resource in rule.quota_resources}


def _limit(
    resource: str, node: Node, own: Mapping[tuple[str, bool], NodeAnnotation], settings: Settings
) -> Fraction:
    """The first source that there is: the node's amount, its percentage, those of the settings, all of the node.

    An annotation that cannot be read is a limit of 0, so that a slip of the pen lets nobody in. Amounts are not cut to
    what the node has.
    """
    allocatable = Fraction(node.allocatable.get(resource, 0))
    rule = settings.cross_quota
    found = own.get((resource, False)) or own.get((resource, True))
    if found is not None:
        try:
            value = found.read()
        except ValueError:
            return Fraction(0)
        return allocatable * value / 100 if found.percentage else value * 1000
    if resource in rule.quota:
        return rule.quota[resource] * 1000
    return allocatable * rule.quota_percentage.get(resource, Fraction(100)) / 100

"""What all guests of a node together may use of it, and what is wrong with annotations that say so."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Final

from core import names, quantity, reasons
from core.crossquota.guest import STRATEGIES, enabled, holds_gpu
from core.objects import Node
from core.objects.draft import Draft
from core.settings import Settings
from core.settings.crossquota import percentage
from core.violations import Findings, Hint, Violation, child, show

Quota = Mapping[str, Fraction]
"""Limited resource -> its limit in thousandths, exact; in the order of the checks."""

PERCENTAGE_PREFIX: Final = names.CROSSQUOTA_PREFIX + "percentage-"
_TOLD: Final = 100
"""Of more in one object nobody reads."""


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


def node_findings(now: Mapping[str, str], was: Mapping[str, str], limited: Container[str]) -> Findings:
    """What is wrong with the annotations of a node, of those that are new or changed alone.

    A value that cannot be read would be a limit of 0. `limited` are the resources that have limits at all.
    """
    present = list(node_annotations(now))
    fresh = {found.key for found in present if was.get(found.key) != found.text}
    unreadable, unused = _unreadable(present, fresh), _unused(present, fresh, limited)
    return Findings([*islice(unreadable, _TOLD)], [*islice(unused, _TOLD)])


def _unreadable(annotations: list[NodeAnnotation], fresh: set[str]) -> Iterator[Violation]:
    for found in annotations:
        if found.key not in fresh:
            continue
        try:
            found.read()
        except ValueError as error:
            yield Violation(reasons.CROSS_QUOTA_MALFORMED, _path(found.key), str(error), value=found.text)


def _unused(annotations: list[NodeAnnotation], fresh: set[str], limited: Container[str]) -> Iterator[Hint]:
    present = {found.key for found in annotations}
    for found in annotations:
        path = _path(found.key)
        if found.key in fresh and found.resource not in limited:
            detail = f"has no effect: {show(found.resource)} is none of crossQuota.quotaResources"
            yield Hint(reasons.CROSS_QUOTA_UNUSED, path, detail)
        absolute = names.CROSSQUOTA_PREFIX + found.resource
        if found.percentage and absolute in present and fresh & {found.key, absolute}:
            yield Hint(reasons.CROSS_QUOTA_UNUSED, path, f"has no effect: {absolute} is set as well and wins")


def pod_hints(draft: Draft) -> Iterator[Hint]:
    """A strategy that nobody knows: the default takes its place, so the pod need not be refused."""
    named = draft.texts.get(names.CROSSQUOTA_STRATEGY_ANNOTATION)
    if named is not None and named not in STRATEGIES:
        detail = f"{show(named)} is no strategy, {STRATEGIES[0]} is used; the other one is {STRATEGIES[1]}"
        path = draft.path_of(names.CROSSQUOTA_STRATEGY_ANNOTATION)
        yield Hint(reasons.CROSS_QUOTA_STRATEGY, path, detail)


def _path(key: str) -> str:
    return child("metadata.annotations", key)

"""What is wrong with CrossQuota's annotations, said where they are written."""

from collections.abc import Container, Iterator, Mapping
from itertools import islice
from typing import Final

from core import names, reasons
from core.crossquota.guest import STRATEGIES
from core.crossquota.quota import NodeAnnotation, node_annotations
from core.objects.draft import Draft
from core.violations import Findings, Hint, Violation, child, show

_TOLD: Final = 100
"""Of more in one object nobody reads."""


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

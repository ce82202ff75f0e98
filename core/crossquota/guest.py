"""Whom the rule is about: guests, which is what pods without GPU are on nodes with GPUs.

The LabelSelectors in settings have been checked, so nothing here can be malformed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from core import names
from core.objects import Pod
from core.settings import Settings

Strategy = Literal["most-allocated", "least-allocated"]

STRATEGIES: Final[tuple[Strategy, ...]] = ("most-allocated", "least-allocated")
"""The first one is the default."""

_ON_EVERY_NODE: Final = ("apps", "DaemonSet")
_PODS: Final = "pods"
_ONE: Final = 1000


@dataclass(frozen=True, slots=True)
class Guest:
    """A pod that the rule is about.

    `amounts`: what it asks for of the limited resources, in thousandths, in the order of the checks; none of them is 0.
    """

    amounts: Mapping[str, int]
    strategy: Strategy = "most-allocated"


def enabled(settings: Settings) -> bool:
    """Whether there is a rule at all: without a pattern no node has GPUs."""
    return settings.features.cross_quota and bool(settings.cross_quota.gpu_resource_names)


def holds_gpu(amounts: Mapping[str, int], patterns: tuple[str, ...]) -> bool:
    """Whether some of the amounts, of a pod or of a node, is more than nothing of a GPU resource."""
    return any(
        milli > 0 and len(name) <= names.LONGEST_RESOURCE and _names_gpu(name, patterns)
        for name, milli in amounts.items()
    )


@lru_cache(maxsize=4096)
def _names_gpu(resource: str, patterns: tuple[str, ...]) -> bool:
    """Searched for, not matched: `nvidia.com/gpu` finds `nvidia.com/gpu.shared` too."""
    return any(re.search(pattern, resource) for pattern in patterns)


def guest(pod: Pod, settings: Settings) -> Guest | None:
    """The pod as the rule sees it; None where it is not about the pod.

    `pod` has the labels that `selector.keys` names.
    """
    return guest_of(pod.requests, pod.labels, pod.annotations, settings)


def guest_of(
    requests: Mapping[str, int],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    settings: Settings,
) -> Guest | None:
    """The pod that asks for all this, in thousandths, as the rule sees it; None where it is not about the pod."""
    rule = settings.cross_quota
    if not enabled(settings) or holds_gpu(requests, rule.gpu_resource_names):
        return None
    if not selects(rule.label_selector, labels):
        return None
    asked = {key: _ONE if key == _PODS else requests.get(key, 0) for key in rule.quota_resources}
    return Guest({key: milli for key, milli in asked.items() if milli > 0}, strategy_of(annotations))


def held_back(pod: Pod) -> bool:
    """Whether a guest stays out where there is no room. The pods of a DaemonSet count, but go in all the same.

    No other node would do for them, and nodes hardly work without them. A kind of that name in another group may be anything;
    what names a DaemonSet of this one that does not exist Kubernetes deletes by itself.
    """
    return pod.owner is None or (pod.owner.group, pod.owner.kind) != _ON_EVERY_NODE


def strategy_of(annotations: Mapping[str, str]) -> Strategy:
    """The strategy that a pod names, to the letter; the default for any other text."""
    named = annotations.get(names.CROSSQUOTA_STRATEGY_ANNOTATION)
    return next((strategy for strategy in STRATEGIES if strategy == named), STRATEGIES[0])


def keys(selector: Mapping[str, Any] | None) -> frozenset[str]:
    """The labels that the selector looks at."""
    if selector is None:
        return frozenset()
    expressions = selector.get("matchExpressions") or []
    return frozenset(selector.get("matchLabels") or {}) | {expression["key"] for expression in expressions}


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is selected; None and an empty selector select everything."""
    if selector is None:
        return True
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels

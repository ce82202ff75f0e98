"""LabelSelectors. What settings hold has been checked, so nothing here can be malformed."""

from collections.abc import Mapping
from typing import Any


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

"""Node affinity: what a pod's own rules admit, and how they are narrowed while the pod is gated.

The API server lets a gated pod's node affinity only be narrowed: keys may be added to existing required terms,
terms may not be added, dropped or exchanged. An empty term matches no node and must stay empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.objects import Node, Pod
from core.objects import raw as read

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Patch = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Expression:
    """A node selector requirement."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The requirement as it stands in a manifest."""
        asked: dict[str, Any] = {"key": self.key, "operator": self.operator}
        if self.values:
            asked["values"] = list(self.values)
        return asked


def admits(pod: Pod, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity admit the node."""
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    required = read.mapping(pod.affinity, "nodeAffinity", REQUIRED)
    if not required:
        return True
    return any(_term_admits(term, node) for term in read.sequence(required, "nodeSelectorTerms"))


def _term_admits(term: object, node: Node) -> bool:
    expressions = read.sequence(term, "matchExpressions")
    fields = read.sequence(term, "matchFields")
    if not expressions and not fields:
        return False
    return all(_matches(expression, node.labels) for expression in expressions) and all(
        _matches(field, {"metadata.name": node.name}) for field in fields
    )


def _matches(raw: object, labels: Mapping[str, str]) -> bool:
    expression = read.mapping({"": raw}, "")
    value = labels.get(read.text(expression, "key"))
    values = read.sequence(expression, "values")
    match read.text(expression, "operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(value, values, greater=operator == "Gt")
        case _:
            return False


def _compares(value: str | None, values: Sequence[Any], *, greater: bool) -> bool:
    try:
        have, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError, TypeError):
        return False
    return have > bound if greater else have < bound


def narrowing(
    affinity: Mapping[str, Any], alternatives: Sequence[Sequence[Expression]], common: Sequence[Expression]
) -> Patch:
    """The JSON patch that narrows a pod's `spec.affinity` to nodes that satisfy one of the `alternatives`.

    Where the pod has required terms already, an alternative cannot be added to them; each non-empty term then gets
    `common`, a conjunction that implies one of the alternatives. No alternatives: nothing to narrow.
    """
    if not alternatives:
        return []
    base = "/spec/affinity"
    node_affinity = affinity.get("nodeAffinity")
    terms = read.sequence(affinity, "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    if terms:
        return _into_terms(f"{base}/nodeAffinity/{REQUIRED}/nodeSelectorTerms", terms, common)
    value: dict[str, Any] = {
        "nodeSelectorTerms": [
            {"matchExpressions": [expression.to_json() for expression in alternative]}
            for alternative in alternatives
        ]
    }
    # Each missing parent is added together with its content; an existing sibling (a preference, pod affinity) stays.
    if isinstance(node_affinity, dict):
        return [{"op": "add", "path": f"{base}/nodeAffinity/{REQUIRED}", "value": value}]
    if affinity:
        return [{"op": "add", "path": f"{base}/nodeAffinity", "value": {REQUIRED: value}}]
    return [{"op": "add", "path": base, "value": {"nodeAffinity": {REQUIRED: value}}}]


def _into_terms(base: str, terms: Sequence[Any], common: Sequence[Expression]) -> Patch:
    patch: Patch = []
    for number, term in enumerate(terms):
        if read.sequence(term, "matchExpressions"):
            patch += [
                {"op": "add", "path": f"{base}/{number}/matchExpressions/-", "value": expression.to_json()}
                for expression in common
            ]
        elif read.sequence(term, "matchFields"):
            expressions = [expression.to_json() for expression in common]
            patch.append({"op": "add", "path": f"{base}/{number}/matchExpressions", "value": expressions})
    return patch

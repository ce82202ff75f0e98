"""Node affinity: what a pod's own rules admit, and how they are narrowed while the pod is gated.

The API server lets a gated pod's node affinity only be narrowed: keys may be added to existing required terms,
terms may not be added, dropped or exchanged. An empty term matches no node and must stay empty.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from core.names import NODE_NAME_FIELD
from core.objects import Node
from core.objects import raw as read
from core.objects.node_rules import REQUIRED

_NODE_AFFINITY: Final = "/spec/affinity/nodeAffinity"
_PARTS: Final = ("matchExpressions", "matchFields")

Patch = list[dict[str, Any]]
"""Operations of a JSON patch, as RFC 6902 writes them."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A node selector requirement on the labels of a node, or, of a `field`, on what else there is of it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False

    def to_json(self) -> dict[str, Any]:
        """The requirement as it stands in a manifest."""
        asked: dict[str, Any] = {"key": self.key, "operator": self.operator}
        if self.values:
            asked["values"] = list(self.values)
        return asked


Conjunction = tuple[Expression, ...]
"""Expressions that all have to hold."""


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    """What a node must look like: one of `alternatives` holds; without any, every node will do.

    An alternative cannot be added to terms that a pod has already. `implied` is for those: a conjunction under which
    one of the alternatives holds.
    """

    alternatives: tuple[Conjunction, ...] = ()
    implied: Conjunction = ()

    @classmethod
    def all_of(cls, *expressions: Expression) -> Self:
        """Every one of these, as the only alternative; none of them requires nothing."""
        return cls((expressions,) if expressions else (), expressions)

    def __and__(self, other: "NodeRequirement") -> "NodeRequirement":
        """Both requirements together; the expressions of this one come first."""
        if not (self.alternatives and other.alternatives):
            return self if self.alternatives else other
        return NodeRequirement(
            tuple((*mine, *its) for mine in self.alternatives for its in other.alternatives),
            (*self.implied, *other.implied),
        )


def meets(requirement: NodeRequirement, node: Node) -> bool:
    """Whether a node is as it is required."""
    if not requirement.alternatives:
        return True
    return any(
        all(_holds(expression, node) for expression in conjunction)
        for conjunction in requirement.alternatives
    )


def _holds(expression: Expression, node: Node) -> bool:
    told = {NODE_NAME_FIELD: node.name} if expression.field else node.labels
    return matches(expression.to_json(), told)


def matches(raw: object, labels: Mapping[str, str]) -> bool:
    """Whether one expression, as it stands in a spec, holds for these labels."""
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
    except (ValueError, IndexError, TypeError, OverflowError):
        return False
    return have > bound if greater else have < bound


def narrowing(affinity: Mapping[str, Any], requirement: NodeRequirement) -> Patch:
    """The JSON patch that narrows a pod's `spec.affinity` to nodes that meet the requirement.

    Where the pod has required terms already, each non-empty one gets the conjunction that the requirement is implied
    by; else the alternatives become the terms. Nothing required: nothing to narrow.
    """
    if not requirement.alternatives:
        return []
    terms = read.sequence(affinity, "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    if terms:
        return _into_terms(terms, requirement.implied)
    alternatives = [_as_json(each) for each in requirement.alternatives]
    value: dict[str, Any] = {"nodeSelectorTerms": alternatives}
    # Each missing parent is added together with its content; an existing sibling (a preference, pod affinity) stays.
    if isinstance(affinity.get("nodeAffinity"), dict):
        return [_add(f"{_NODE_AFFINITY}/{REQUIRED}", value)]
    if affinity:
        return [_add(_NODE_AFFINITY, {REQUIRED: value})]
    return [_add("/spec/affinity", {"nodeAffinity": {REQUIRED: value}})]


def _into_terms(terms: Sequence[Any], expressions: Conjunction) -> Patch:
    patch: Patch = []
    more = _as_json(expressions)
    for number, term in enumerate(terms):
        if not any(read.sequence(term, part) for part in _PARTS):
            continue
        for part, added in more.items():
            path = f"{_NODE_AFFINITY}/{REQUIRED}/nodeSelectorTerms/{number}/{part}"
            said = read.sequence(term, part)
            if said:
                # A lift before this one may have been undone in part.
                patch += [_add(f"{path}/-", expression) for expression in added if expression not in said]
            else:
                patch.append(_add(path, added))
    return patch


def _as_json(expressions: Iterable[Expression]) -> dict[str, list[dict[str, Any]]]:
    """The parts of a term that say this; those that say nothing are left out."""
    parts: dict[str, list[dict[str, Any]]] = {part: [] for part in _PARTS}
    for expression in expressions:
        parts[_PARTS[expression.field]].append(expression.to_json())
    return {part: said for part, said in parts.items() if said}


def _add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}

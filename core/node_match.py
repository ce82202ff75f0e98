"""Node rules compiled: whether they admit a node, as `core.affinity.admits` says it, in a fraction of the time.

Nobody limits the terms of a pod but the size of an object, and a megabyte of them is asked about every node. So all is done
in steps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.objects import Node
from core.objects import raw as read
from core.objects.node_rules import NodeRules
from core.steps import Pace, Steps

_COMPILED_IN_A_STEP: Final = 100
"""Expressions; half a millisecond."""
_VALUES_AT_ONCE: Final = 20
"""Values that cost about as much as an expression."""

_Test = Callable[[str | None], bool]


@dataclass(frozen=True, slots=True)
class _Conjunction:
    """Expressions that all have to hold: keys that must be there, keys that must not, and tests of values."""

    needs: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    tests: tuple[tuple[str, _Test], ...] = ()

    def holds(self, values: Mapping[str, str], pace: Pace) -> Steps[bool]:
        """Whether all hold for these labels or fields. The keys count as one piece of work, each test as one more."""
        if pace.due():
            yield
        if not (self.needs <= values.keys() and self.lacks.isdisjoint(values)):
            return False
        for key, test in self.tests:
            if pace.due():
                yield
            if not test(values.get(key)):
                return False
        return True


_EVERYTHING: Final = _Conjunction()


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """What admits a node: the selector, and one of the terms, where there are any to be met.

    A term is what it asks of the name, and what it asks of the labels. `size` is the number of expressions that are kept.
    """

    selector: Mapping[str, str]
    terms: tuple[tuple[_Conjunction, _Conjunction], ...] | None
    size: int

    def admits(self, node: Node, pace: Pace) -> Steps[bool]:
        """Whether the node is admitted; a step is as many pieces of work as `pace` says."""
        if pace.due():
            yield
        if not self.selector.items() <= node.labels.items():
            return False
        if self.terms is None:
            return True
        fields = {"metadata.name": node.name}
        for of_fields, of_labels in self.terms:
            if of_fields is not _EVERYTHING and not (yield from of_fields.holds(fields, pace)):
                continue
            if (yield from of_labels.holds(node.labels, pace)):
                return True
        return False


def compiled(rules: NodeRules) -> Steps[NodeMatch]:
    """The rules, without what can never hold and without repetitions."""
    if not rules.required:
        return NodeMatch(rules.selector, None, 0)
    pace = Pace(_COMPILED_IN_A_STEP)
    terms: dict[object, tuple[_Conjunction, _Conjunction]] = {}
    size = 0
    for term in read.sequence(rules.required, "nodeSelectorTerms"):
        if pace.due():
            yield
        fields = yield from _read(read.sequence(term, "matchFields"), pace)
        labels = yield from _read(read.sequence(term, "matchExpressions"), pace)
        if fields is None or labels is None or not (fields.known or labels.known):
            continue
        both = frozenset(fields.known), frozenset(labels.known)
        if both not in terms:
            terms[both] = fields.conjunction(), labels.conjunction()
            size += len(fields.known) + len(labels.known)
    return NodeMatch(rules.selector, tuple(terms.values()), size)


def _read(raw: Sequence[Any], pace: Pace) -> Steps["_Expressions | None"]:
    """The expressions, each once; None when one of them can never hold."""
    found = _Expressions()
    for each in raw:
        expression = read.mapping({"": each}, "")
        values = read.sequence(expression, "values")
        if pace.due(1 + len(values) // _VALUES_AT_ONCE):
            yield
        if not found.add(read.text(expression, "key"), read.text(expression, "operator"), values):
            return None
    return found


class _Expressions:
    """Expressions of one term, as they are read."""

    def __init__(self) -> None:
        self.known: set[object] = set()
        self._needs: set[str] = set()
        self._lacks: set[str] = set()
        self._tests: list[tuple[str, _Test]] = []

    def add(self, key: str, operator: str, values: Sequence[Any]) -> bool:
        """Takes one in. False when it can never hold.

        Labels are text, and a label that is not there is None: nothing else that is listed can be met.
        """
        operand: tuple[str | None, ...] | int | None = None
        if operator in ("In", "NotIn"):
            operand = tuple(value for value in values if value is None or isinstance(value, str))
        elif operator in ("Gt", "Lt"):
            operand = _bound(values)
        expression = key, operator, operand
        if expression in self.known:
            return True
        self.known.add(expression)
        match operator, operand:
            case "In", tuple() if operand:
                if None not in operand:
                    self._needs.add(key)
                self._tests.append((key, frozenset(operand).__contains__))
            case "NotIn", tuple():
                self._tests.append((key, _absence(frozenset(operand))))
            case "Exists", _:
                self._needs.add(key)
            case "DoesNotExist", _:
                self._lacks.add(key)
            case "Gt" | "Lt", int():
                self._needs.add(key)
                self._tests.append((key, _comparison(operand, greater=operator == "Gt")))
            case _:
                return False
        return True

    def conjunction(self) -> _Conjunction:
        """All of them."""
        if not self.known:
            return _EVERYTHING
        return _Conjunction(frozenset(self._needs), frozenset(self._lacks), tuple(self._tests))


def _bound(values: Sequence[Any]) -> int | None:
    try:
        return int(values[0])
    except (ValueError, IndexError, TypeError, OverflowError):
        return None


def _absence(values: frozenset[str | None]) -> _Test:
    return lambda value: value not in values


def _comparison(bound: int, *, greater: bool) -> _Test:
    def compares(value: str | None) -> bool:
        try:
            have = int(value or "")
        except ValueError:
            return False
        return have > bound if greater else have < bound

    return compares

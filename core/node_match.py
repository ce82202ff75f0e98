"""Node rules compiled: which nodes they admit.

Nobody limits the terms of a pod but the size of an object. So all is done in steps; and a megabyte of them costs about as much
for hundreds of nodes as for one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from core.labelled import Labelled, Values
from core.names import NODE_NAME_FIELD
from core.objects import Node
from core.objects import raw as read
from core.objects.node_rules import NodeRules
from core.steps import Pace, Steps, batched

_COMPILED_IN_A_STEP: Final = 100
"""Expressions; half a millisecond."""
_VALUES_AT_ONCE: Final = 20
"""Values that cost about as much as an expression."""
_VALUES_IN_A_PIECE: Final = 4000
"""So that a list without end is read in steps, and looked through in few pieces; each takes a millisecond or two."""


class _Expression(NamedTuple):
    """What is asked of a label, or `of_name`, the only field that there is: one of the values; or a number above `operand`.

    Not `straight`: none of the values; or a number below. `size` is what it costs to ask it, and to keep it.
    """

    key: str
    operand: Values | int
    straight: bool = True
    of_name: bool = False
    size: int = 1

    def nodes(self, known: Labelled) -> int:
        """Those for which it holds."""
        key, operand, straight, _, _ = self
        if isinstance(operand, int):
            return known.beyond(key, operand, above=straight)
        found = known.having(key, operand)
        return found if straight else known.everyone & ~found


_ABSENT: Final[Values] = (frozenset({None}),)
_Term = tuple[_Expression, ...]
"""Expressions that all have to hold."""


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """What admits a node: the selector, and one of the terms, where there are any to be met.

    `keys` are those of all labels that the terms ask for, `numbers` those that are compared as numbers; `named`: whether any
    asks for the name. `size` is the number of expressions that are kept, lists of values counting as several.
    """

    selector: Mapping[str, str]
    terms: tuple[_Term, ...] | None = None
    keys: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    named: bool = False
    size: int = 0

    def admits(self, node: Node, pace: Pace) -> Steps[bool]:
        """Whether the node is admitted; a step is as many pieces of work as `pace` says."""
        return bool((yield from self._meant((node,), pace)))

    def admitted(self, nodes: Sequence[Node], pace: Pace) -> Steps[set[str]]:
        """The names of those of the nodes that are admitted. Each label that counts is a piece of work, and each expression."""
        meant = yield from self._meant(nodes, pace)
        return {node.name for number, node in enumerate(nodes) if meant >> number & 1}

    def _meant(self, nodes: Sequence[Node], pace: Pace) -> Steps[int]:
        labels, selected = Labelled(len(nodes)), 0
        names = Labelled(len(nodes)) if self.named else labels
        for number, node in enumerate(nodes):
            keys = self._asked_of(node)
            if pace.due(len(keys) or 1):
                yield
            if self.selector.items() <= node.labels.items():
                selected |= 1 << number
                labels.put(1 << number, node.labels, keys)
                if self.named:
                    names.put(1 << number, {NODE_NAME_FIELD: node.name}, (NODE_NAME_FIELD,))
        if self.terms is None:
            return selected
        for key in self.numbers:
            if pace.due(labels.variety(key)):
                yield
            labels.put_in_order(key)
        return (yield from _any_term(self.terms, selected, labels, names, pace))

    def _asked_of(self, node: Node) -> Sequence[str]:
        """The keys of its labels that count; there may be many more of either."""
        keys, labels = self.keys, node.labels
        fewer, more = (keys, labels) if len(keys) < len(labels) else (labels, keys)
        return [key for key in fewer if key in more]


def _any_term(
    terms: Iterable[_Term], selected: int, labels: Labelled, names: Labelled, pace: Pace
) -> Steps[int]:
    """Those of the selected nodes for which one of the terms holds."""
    found = 0
    for term in terms:
        # Whoever is admitted already is not asked again.
        left = selected & ~found
        for expression in term:
            if not left:
                break
            if pace.due(expression.size):
                yield
            left &= expression.nodes(names if expression.of_name else labels)
        found |= left
    return found


def compiled(rules: NodeRules) -> Steps[NodeMatch]:
    """The rules, without what can never hold and without repetitions."""
    if not rules.required:
        return NodeMatch(rules.selector)
    pace, asked = Pace(_COMPILED_IN_A_STEP), _Asked()
    terms: dict[frozenset[_Expression], _Term] = {}
    for raw in read.sequence(rules.required, "nodeSelectorTerms"):
        if pace.due():
            yield
        term, its = yield from _read(raw, pace)
        same = frozenset(term)
        if term and same not in terms:
            terms[same] = tuple(term)
            asked.join(its)
    keys, numbers = frozenset(asked.keys), frozenset(asked.numbers)
    return NodeMatch(rules.selector, tuple(terms.values()), keys, numbers, asked.named, asked.size)


@dataclass(slots=True)
class _Asked:
    """What expressions ask for, one of them or several together."""

    keys: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    named: bool = False
    size: int = 0

    def add(self, expression: _Expression) -> None:
        """Takes in one more."""
        self.size += expression.size
        if expression.of_name:
            self.named = True
            return
        self.keys.add(expression.key)
        if isinstance(expression.operand, int):
            self.numbers.add(expression.key)

    def join(self, others: "_Asked") -> None:
        """Takes in all that others ask for."""
        self.keys |= others.keys
        self.numbers |= others.numbers
        self.named = self.named or others.named
        self.size += others.size


def _read(raw: object, pace: Pace) -> Steps[tuple[dict[_Expression, None], _Asked]]:
    """The expressions of a term, each once, and what they ask for; none when one of them can never hold."""
    found, asked = dict[_Expression, None](), _Asked()
    for part, of_name in (("matchExpressions", False), ("matchFields", True)):
        for each in read.sequence(raw, part):
            if pace.due():
                yield
            expression = yield from _expression(read.mapping({"": each}, ""), of_name, pace)
            if expression is None:
                return {}, asked
            if expression not in found:
                found[expression] = None
                asked.add(expression)
    return found, asked


def _expression(raw: Mapping[str, Any], of_name: bool, pace: Pace) -> Steps[_Expression | None]:
    """One expression; None when it can never hold."""
    key, values = read.text(raw, "key"), read.sequence(raw, "values")
    match read.text(raw, "operator"):
        case "In" | "NotIn" as operator:
            listed = yield from _listed(values, pace)
            if operator == "In" and not any(listed):
                return None
            return _Expression(key, listed, operator == "In", of_name, 1 + len(values) // _VALUES_AT_ONCE)
        case "Exists" | "DoesNotExist" as operator:
            return _Expression(key, _ABSENT, operator == "DoesNotExist", of_name)
        case "Gt" | "Lt" as operator:
            bound = _bound(values)
            return None if bound is None else _Expression(key, bound, operator == "Gt", of_name)
        case _:
            return None


def _listed(values: Sequence[Any], pace: Pace) -> Steps[Values]:
    """Labels are text, and a label that is not there is None: nothing else that is listed can be met."""
    found: list[frozenset[str | None]] = []
    for some in batched(values, _VALUES_IN_A_PIECE):
        if pace.due(len(some) // _VALUES_AT_ONCE):
            yield
        found.append(frozenset([value for value in some if value is None or isinstance(value, str)]))
    return tuple(found)


def _bound(values: Sequence[Any]) -> int | None:
    try:
        return int(values[0])
    except (ValueError, IndexError, TypeError, OverflowError):
        return None

"""Which nodes the pods' own rules admit: found out once for each node and for all pods that say the same."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from core.node_match import NodeMatch, compiled
from core.objects.node_rules import NodeRules
from core.plan.changed import ChangedNodes
from core.plan.recent import Recent
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, batched

EVALUATED_IN_A_STEP: Final = 1000
"""Expressions; about half a millisecond."""

_NODES_IN_A_STEP: Final = 500
"""Nodes that have changed in something else than their labels."""

_JUDGED_AT_ONCE: Final = 500
"""Nodes that are asked about together."""
_WORTH: Final = 20
"""Expressions that cost more than to ask about one more node."""

_KEPT: Final = 400_000
"""Verdicts, some fifty bytes each."""
_COMPILED: Final = 200_000
"""Compiled expressions, some hundred bytes each."""


class _Verdicts:
    """What is known about one set of rules."""

    def __init__(self, rules: NodeRules) -> None:
        self.rules = rules
        self.admitted: set[str] = set()
        self.refused: set[str] = set()

    def __len__(self) -> int:
        return len(self.admitted) + len(self.refused)

    def missing(self, names: Iterable[str]) -> Iterator[str]:
        """The nodes that nothing is known of."""
        return (name for name in names if name not in self.admitted and name not in self.refused)

    def put(self, name: str, verdict: bool) -> None:
        """Takes note of the verdict on a node."""
        (self.admitted if verdict else self.refused).add(name)

    def forget(self, name: str) -> None:
        """Nothing is known of this node any more."""
        self.admitted.discard(name)
        self.refused.discard(name)


class _Compiled:
    """Rules in the form in which nodes are asked about, once somebody has needed it."""

    def __init__(self, rules: NodeRules) -> None:
        self._match: NodeMatch | None = None
        self._under_way = self._compile(rules)

    def __len__(self) -> int:
        return self._match.size if self._match is not None else 0

    def match(self) -> Steps[NodeMatch]:
        """Compiled when it is first asked for. Where that is given up halfway, it goes on there the next time."""
        for _ in self._under_way:
            yield
        assert self._match is not None
        return self._match

    def _compile(self, rules: NodeRules) -> Steps[None]:
        self._match = yield from compiled(rules)


class AdmittedNodes:
    """Verdicts of rules on nodes, each kept until the labels of that node change; those of rules asked for lately.

    What rules are compiled to is kept by itself: it is large, and not needed while no node changes. So tenants with more
    rules than are kept compiled do not push out each other's verdicts. Only one question is under way at a time.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._nodes = ledger.nodes
        self._labels: dict[str, Mapping[str, str]] = {}
        self._changed = ChangedNodes(ledger, self._labels.keys(), ledger.nodes)
        self._verdicts: Recent[NodeRules, _Verdicts] = Recent(_Verdicts, _KEPT)
        self._compiled: Recent[NodeRules, _Compiled] = Recent(_Compiled, _COMPILED)
        self._pace = Pace(EVALUATED_IN_A_STEP)
        self._looked_at = Pace(_NODES_IN_A_STEP)

    @property
    def evaluations(self) -> int:
        """How many nodes and expressions of rules have been looked at so far: what all this has cost."""
        return self._pace.done

    def admitted(self, rules: NodeRules, names: Collection[str]) -> Steps[Container[str]]:
        """What contains those of these nodes that the rules admit; of others it may say anything.

        Right until a node changes or the next question is asked. `names` must stay as they are meanwhile.
        """
        if rules.anywhere:
            return self._nodes.keys()
        known = self._verdicts[rules]
        yield from self._forget_relabelled()
        while missing := [name for name in known.missing(names) if name in self._nodes]:
            match = yield from self._compiled[rules].match()
            for some in batched(missing, _JUDGED_AT_ONCE):
                yield from self._judge(known, match, some)
        return known.admitted

    def _judge(self, known: _Verdicts, match: NodeMatch, names: Sequence[str]) -> Steps[None]:
        """Finds out about these nodes and some others, but for those that change meanwhile."""
        asked = dict.fromkeys((*names, *self._others(known, match, _JUDGED_AT_ONCE - len(names))))
        nodes = [self._nodes[name] for name in asked if name in self._nodes]
        admitted = yield from match.admitted(nodes, self._pace)
        yield from self._forget_relabelled()
        for node in nodes:
            if self._labels.get(node.name) is node.labels:
                known.put(node.name, node.name in admitted)

    def _others(self, known: _Verdicts, match: NodeMatch, most: int) -> Iterator[str]:
        """Nodes that are asked about at no great cost together with others, as they may be asked for one after the other."""
        return islice(known.missing(self._nodes), min(most, match.size // _WORTH))

    def _forget_relabelled(self) -> Steps[None]:
        """Forgets the verdicts on nodes that have other labels than before, or are gone."""
        while self._changed:
            name = self._changed.next()
            self._changed.done(name)
            node, before = self._nodes.get(name), self._labels.pop(name, None)
            if node is not None:
                self._labels[name] = node.labels
            relabelled = before is not None and (node is None or node.labels != before)
            if relabelled:
                for known in self._verdicts.values():
                    known.forget(name)
            if self._looked_at.due(_NODES_IN_A_STEP if relabelled else 1):
                yield

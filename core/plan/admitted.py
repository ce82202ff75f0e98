"""Which nodes the pods' own rules admit: found out once for each node and for all pods that say the same."""

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Final

from core.node_match import NodeMatch, compiled
from core.objects.node_rules import NodeRules
from core.plan.changed import ChangedNodes
from core.plan.recent import Recent
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

EVALUATED_IN_A_STEP: Final = 1000
"""Expressions; about a third of a millisecond."""

_NODES_IN_A_STEP: Final = 500
"""Nodes that have changed in something else than their labels."""

_KEPT: Final = 400_000
"""Verdicts and compiled expressions, some hundred bytes each."""


class _Verdicts:
    """What is known about one set of rules."""

    def __init__(self, rules: NodeRules) -> None:
        self.rules = rules
        self.match: NodeMatch | None = None
        self.admitted: set[str] = set()
        self.refused: set[str] = set()

    def __len__(self) -> int:
        size = self.match.size if self.match is not None else 0
        return size + len(self.admitted) + len(self.refused)

    def missing(self, names: Iterable[str]) -> list[str]:
        """The nodes that nothing is known of."""
        return [name for name in names if name not in self.admitted and name not in self.refused]

    def put(self, name: str, verdict: bool) -> None:
        """Takes note of the verdict on a node."""
        (self.admitted if verdict else self.refused).add(name)

    def forget(self, name: str) -> None:
        """Nothing is known of this node any more."""
        self.admitted.discard(name)
        self.refused.discard(name)


class AdmittedNodes:
    """Verdicts of rules on nodes, each kept until the labels of that node change; those of rules asked for lately.

    Only one question is under way at a time.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._nodes = ledger.nodes
        self._labels: dict[str, Mapping[str, str]] = {}
        self._changed = ChangedNodes(ledger, self._labels.keys(), ledger.nodes)
        self._verdicts: Recent[NodeRules, _Verdicts] = Recent(_Verdicts, _KEPT)
        self._pace = Pace(EVALUATED_IN_A_STEP)
        self._looked_at = Pace(_NODES_IN_A_STEP)

    @property
    def evaluations(self) -> int:
        """How many expressions of rules have been compared with a node so far: what all this has cost."""
        return self._pace.done

    def admitted(self, rules: NodeRules, names: Collection[str]) -> Steps[Container[str]]:
        """What contains those of these nodes that the rules admit; of others it may say anything.

        Right until a node changes or the next question is asked. `names` must stay as they are meanwhile.
        """
        if rules.anywhere:
            return self._nodes.keys()
        known = self._verdicts[rules]
        if known.match is None:
            known.match = yield from compiled(rules)
        yield from self._forget_relabelled()
        while missing := [name for name in known.missing(names) if name in self._nodes]:
            for name in missing:
                yield from self._judge(known, known.match, name)
        return known.admitted

    def _judge(self, known: _Verdicts, match: NodeMatch, name: str) -> Steps[None]:
        """Finds out about a node, unless it changes meanwhile."""
        node = self._nodes.get(name)
        if node is None:
            return
        verdict = yield from match.admits(node, self._pace)
        yield from self._forget_relabelled()
        if self._labels.get(name) is node.labels:
            known.put(name, verdict)

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

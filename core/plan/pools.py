"""Node pools that bring a card whether or not they have nodes now: whether a pod may be let in for one of them."""

from collections.abc import Container, Mapping
from typing import Any, Final

from core import names
from core.affinity import Conjunction, Expression, NodeRequirement, matches
from core.mgpu.ask import FIXED_SHARE, MgpuAsk
from core.objects import raw as read
from core.objects.node_rules import NodeRules
from core.queues.ledger import Ledger
from core.settings.model import PoolSettings
from core.steps import Pace, Steps

_IN_A_STEP: Final = 500
"""Expressions."""


def pool_requirement(pool: PoolSettings) -> Conjunction:
    """What a pod requires of a node that is to be one of the pool."""
    return tuple(Expression(key, "In", (value,)) for key, value in sorted(pool.labels.items()))


def share_pool_requirement(pool: PoolSettings) -> NodeRequirement:
    """The same as what a lift is narrowed to."""
    return NodeRequirement.all_of(*pool_requirement(pool))


class CardPools:
    """Asks by the labels alone that nodes of a pool are sure to have: of others nobody knows yet."""

    def __init__(self, ledger: Ledger) -> None:
        self._inventory = ledger.inventory

    def may_bring(self, rules: NodeRules, card: str) -> Steps[bool]:
        """Whether a pool may bring the card to a node that these rules admit."""
        pool = self._inventory.pool_of(card)
        return pool is not None and (yield from self._admitted(rules, pool))

    def may_bring_shares(
        self, rules: NodeRules, ask: MgpuAsk, closed: Container[str] = frozenset()
    ) -> Steps[str]:
        """The card of a pool that may bring mGPU shares to a node that these rules admit; empty where none may.

        Not one of the `closed` cards. Of how much memory and how many cards its nodes will be nobody knows: whoever asks for
        more than any node of the pool has stays pending, as any pod does for which an autoscaler can make no node.
        """
        for card, pool in sorted(self._inventory.share_pools.items()):
            policy = pool.labels.get(names.MGPU_POLICY_KEY, FIXED_SHARE)
            serves = ask.any_policy or ask.policy == policy
            if card not in closed and serves and (yield from self._admitted(rules, pool)):
                return card
        return ""

    def _admitted(self, rules: NodeRules, pool: PoolSettings) -> Steps[bool]:
        if rules.anywhere:
            return True
        if any(pool.labels.get(key, value) != value for key, value in rules.selector.items()):
            return False
        if not rules.required:
            return True
        pace = Pace(_IN_A_STEP)
        for term in read.sequence(rules.required, "nodeSelectorTerms"):
            if pace.due():
                yield
            if (yield from _possible(term, pool.labels, pace)):
                return True
        return False


def _possible(term: object, labels: Mapping[str, str], pace: Pace) -> Steps[bool]:
    """Whether a node with these labels and others may fit a term; one that names its node means one that is there."""
    expressions: list[Any] = read.sequence(term, "matchExpressions")
    if read.sequence(term, "matchFields") or not expressions:
        return False
    for expression in expressions:
        if pace.due():
            yield
        known = read.text(read.mapping({"": expression}, ""), "key") in labels
        if known and not matches(expression, labels):
            return False
    return True

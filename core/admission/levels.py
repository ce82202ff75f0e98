"""The queues as a tree, when one of them is written: the chain of its parents, and card quotas through it (`cards.hierarchy`).

Whatever other queues have to do with it is a hint: they may change. Only a queue that is its own parent is refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Self

from core import names, reasons
from core.admission.request import AdmissionRequest, Context
from core.hierarchy import Chain, chain_of
from core.objects import Queue, queue
from core.queues.limits import cards_of, limits_of
from core.settings import Settings
from core.violations import Findings, Hint, Violation, child, show

QUOTA_PATH: Final = child("metadata.annotations", names.CARD_QUOTA_ANNOTATION)
_PARENT_PATH: Final = "spec.parent"
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Tree:
    """The card quotas of queues, read when they are asked for, and who is below whom."""

    queues: Mapping[str, Queue]
    parents: Mapping[str, str]
    children: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, queues: Mapping[str, Queue]) -> Self:
        """These queues as they are."""
        tree = cls(queues, {name: one.parent for name, one in queues.items()})
        for name, parent in sorted(tree.parents.items()):
            tree.children.setdefault(parent or names.ROOT_QUEUE, []).append(name)
        return tree

    def quota(self, name: str) -> Mapping[str, int]:
        """The card quota of a queue, in whole cards; none where there is no such queue."""
        one = self.queues.get(name)
        return {} if one is None else cards_of(one)

    def chain(self, name: str) -> Chain:
        """The chain of a queue."""
        return chain_of(name, self.parents.get)

    def below(self, name: str) -> list[str]:
        """The queues right below one."""
        return [one for one in self.children.get(name, ()) if one != name]

    def promised(self, name: str) -> Counter[str]:
        """What is promised to all below a queue: of each card, what the topmost say that list it, so that nothing counts twice."""
        found: Counter[str] = Counter()
        self._add(found, name, {name})
        return found

    def upwards(self, name: str) -> Iterator[tuple[str, Mapping[str, int]]]:
        """A queue and those above it, as far as they are there, each with what is promised to all below it.

        What is promised is right until the next is asked for: what one of them lists or sums up is a part of what the next one
        does, so that no queue is looked at twice.
        """
        found: Counter[str] = Counter()
        chain = self.chain(name).queues
        # Where parents form a circle, nobody is below a queue who is above it as well.
        seen = set(chain)
        for here, above in pairwise((*chain, "")):
            self._add(found, here, seen)
            yield here, found
            if above != (self.parents.get(here) or names.ROOT_QUEUE):
                return
            for card, count in self.quota(here).items():
                found[card] = count

    def _add(self, found: Counter[str], name: str, seen: set[str]) -> None:
        """Adds what is promised to all below a queue, but for those seen already: one look at each of them and at each entry."""
        told: set[str] = set()
        waiting: list[tuple[Iterator[str], list[str]]] = [(iter(self.below(name)), [])]
        while waiting:
            siblings, told_by_parent = waiting[-1]
            one = next(siblings, None)
            if one is None:
                told.difference_update(told_by_parent)
                waiting.pop()
            elif one not in seen:
                seen.add(one)
                quota = self.quota(one)
                cards = [card for card in quota if card not in told]
                for card in cards:
                    found[card] += quota[card]
                told.update(cards)
                waiting.append((iter(self.below(one)), cards))

    def total(self) -> Counter[str]:
        """What all queues are promised together, nothing twice."""
        own = self.quota(names.ROOT_QUEUE)
        below = {card: count for card, count in self.promised(names.ROOT_QUEUE).items() if card not in own}
        return Counter({**own, **below})


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The rules for the parent of a queue, and for its card quota among those of other queues."""
    now, was = queue.project(request.object), queue.project(request.old_object)
    if now.parent != was.parent and _hierarchical(context.settings):
        _judge_parent(now, context, found)
    changed = now.parent != was.parent or now.card_quota != was.card_quota
    if context.view.queues is not None and context.settings.features.cards and changed:
        tree = Tree.of({**context.view.queues, now.name: now})
        through = context.settings.cards.hierarchy
        found.hints += _promises(now, tree) if through else _by_itself(now, tree)


def cards_within(found: Queue, context: Context) -> Mapping[str, int]:
    """What a queue could have of each card that it lists, in whole cards, were nobody else there."""
    own, queues = cards_of(found), context.view.queues
    if queues is None or not context.settings.cards.hierarchy:
        return own
    chain = chain_of(found.name, lambda name: queues[name].parent if name in queues else None)
    above = [limits_of(queues[name]) for name in chain.queues[1:] if name in queues]
    closed = any(limits.malformed for limits in above)
    return {
        card: 0
        if closed
        else min([count, *(limits.cards[card] // 1000 for limits in above if card in limits.cards)])
        for card, count in own.items()
    }


def _hierarchical(settings: Settings) -> bool:
    return (settings.features.dra and settings.dra.hierarchy) or (
        settings.features.cards and settings.cards.hierarchy
    )


def _judge_parent(now: Queue, context: Context, found: Findings) -> None:
    """A queue cannot be its own parent; a parent that is not there may still come."""
    if now.parent and now.parent == now.name != names.ROOT_QUEUE:
        detail = "a queue cannot be its own parent"
        found.violations.append(
            Violation(reasons.QUEUE_HIERARCHY_BROKEN, _PARENT_PATH, detail, value=now.parent)
        )
        return
    if context.view.queues is None:
        return
    problem = Tree.of({**context.view.queues, now.name: now}).chain(now.name).problem
    if problem:
        settings = context.settings
        cards = settings.features.cards and settings.cards.hierarchy
        claims = settings.features.dra and settings.dra.hierarchy
        who = "cards or claims" if cards and claims else "cards" if cards else "claims"
        text = f"{problem}; pods with {who} wait until that is mended"
        found.hints.append(Hint(reasons.QUEUE_HIERARCHY_BROKEN, _PARENT_PATH, text))


def _promises(now: Queue, tree: Tree) -> Iterator[Hint]:
    """Queues that are promised more than the one above them has: the smaller limit holds."""
    own, levels = tree.quota(now.name), tree.upwards(now.name)
    _, below = next(levels)
    yield from _beyond(now.name, own, below)
    waiting = {card for card, count in {**below, **own}.items() if count}
    while waiting and (level := next(levels, None)):
        name, promised = level
        # The nearest one above that lists a card says what there is of it.
        listed = {card: count for card, count in tree.quota(name).items() if card in waiting}
        yield from _beyond(name, listed, promised)
        waiting.difference_update(listed)


def _beyond(name: str, quota: Mapping[str, int], promised: Mapping[str, int]) -> Iterator[Hint]:
    for card, count in quota.items():
        if promised.get(card, 0) > count:
            text = (
                f"{show(card)}: the queues below {name} are promised {promised[card]} together, and it has {count}; "
                "the smaller limit holds"
            )
            yield Hint(reasons.CARD_QUOTA_ABOVE_PARENT, QUOTA_PATH, text)


def _by_itself(now: Queue, tree: Tree) -> Iterator[Hint]:
    """A quota that does not hold for those below the queue, though it looks so."""
    below = tree.below(now.name)
    if now.card_quota and below:
        more = f" and {len(below) - _NAMED} more" if len(below) > _NAMED else ""
        text = (
            f"limits the pods of queue {now.name} alone, not those of the queues below it ({', '.join(below[:_NAMED])}"
            f"{more}): cards.hierarchy is off"
        )
        yield Hint(reasons.CARD_QUOTA_INERT, QUOTA_PATH, text)
    if now.parent and tree.quota(now.parent) and now.parent != now.name:
        text = f"the card quota of queue {now.parent} does not limit the pods of this queue: cards.hierarchy is off"
        yield Hint(reasons.CARD_QUOTA_INERT, _PARENT_PATH, text)

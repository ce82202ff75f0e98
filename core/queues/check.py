"""Whether what a pod asks for fits its queue, and those above it where their limits hold for it as well."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Self

from core import reasons
from core.cards.ask import CardAsk
from core.queues.amounts import CPU_AND_MEMORY, Amounts
from core.queues.ceiling import Ceiling
from core.queues.cpu_memory import cpu_memory_fits, cpu_memory_shortfall
from core.queues.entry import Entry
from core.queues.group_request import GroupBalance
from core.queues.ledger import Ledger
from core.queues.limits import Limits
from core.queues.shortfall import card_shortage, share_shortage
from core.queues.whole import Use
from core.refusal import Refusal

_NO_AMOUNTS: Final[Amounts] = {}


def _nothing(_key: str) -> int:
    return 0


def _no_promises(_queue: str) -> Amounts:
    return _NO_AMOUNTS


@dataclass(frozen=True, slots=True)
class Balance:
    """A queue's limits and what is used of them, in thousandths, and the limits of the queues above that hold as well.

    `used` gives allocated plus reserved of a card or an mGPU resource, `cpu_memory_used` of `cpu` and `memory`.
    `cpu_memory` are the limits of these two; one that is absent does not limit. `short` takes in what somebody was told that there is too
    little of, where others than the queue's own pods may give it back.
    """

    queue: str
    limits: Limits
    used: Callable[[str], int]
    cpu_memory: Amounts = field(default_factory=dict)
    cpu_memory_used: Callable[[str], int] = _nothing
    above: tuple[Ceiling, ...] = ()
    short: set[str] | None = None

    def cpu_memory_shortfall(self, wanted: Amounts) -> Refusal | None:
        """None when the CPU and memory wanted fit; only pods with cards are asked."""
        found = cpu_memory_shortfall(self.queue, self.cpu_memory, self.cpu_memory_used, wanted)
        if found is not None:
            self._told(CPU_AND_MEMORY)
            return found
        for level in self.above:
            found = level.cpu_memory_shortfall(wanted)
            if found is not None:
                return found.for_one_below(self.queue)
        return None

    def card_shortfall(self, card: str, milli: int) -> Refusal | None:
        """None when `milli` more of `card` fit. Exactly reaching the limit fits; asking for nothing always does."""
        total = self.used(card) + milli
        limit = self.limits.cards.get(card, 0)
        if milli > 0 and total > limit:
            return self._short(card, milli, total, limit)
        return self._short_above(card, milli) if self.above else None

    def choice_shortfall(self, asked: CardAsk) -> Refusal | None:
        """None when at least one alternative fits.

        The message names the whole expression, with the numbers of the last alternative tried.
        """
        if any(self._fits(card, asked.milli) for card in asked.alternatives):
            return None
        last = asked.alternatives[-1]
        total, limit = self.used(last) + asked.milli, self.limits.cards.get(last, 0)
        if total <= limit:
            return self._short_above(last, asked.milli, asked)
        uses = [Use(card, self.used(card), self.limits.cards.get(card, 0)) for card in asked.alternatives]
        return self._short(asked.expression, asked.milli, total, limit, uses)

    def covers(self, card: str, milli: int, cpu_memory: Amounts) -> bool:
        """Whether `milli` of a card fit, and CPU and memory with it: as `card_shortfall` and `cpu_memory_shortfall`, and nobody is told."""
        if milli > 0 and self.used(card) + milli > self.limits.cards.get(card, 0):
            return False
        if not cpu_memory_fits(self.cpu_memory, self.cpu_memory_used, cpu_memory):
            return False
        return not self.above or all(level.covers(card, milli, cpu_memory) for level in self.above)

    def share_shortfall(self, wanted: Mapping[str, int]) -> Refusal | None:
        """None when the mGPU amounts fit; a key without a limit always does."""
        for key, milli in sorted(wanted.items()):
            total = self.used(key) + milli
            if milli > 0 and key in self.limits.shares and total > self.limits.shares[key]:
                self._told((key,))
                return share_shortage(self.queue, key, milli, total, self.limits.shares[key])
            for level in self.above:
                short = level.share_shortfall(key, milli)
                if short is not None:
                    return short.for_one_below(self.queue)
        return None

    def card_room(self, card: str) -> int:
        """How much of a card is left here and above, perhaps less than nothing."""
        left = self.limits.cards.get(card, 0) - self.used(card)
        if self.short is not None:
            self.short.add(card)
        for level in self.above:
            room = level.room(card)
            if room is not None:
                level.short.add(card)
                left = min(left, room)
        return left

    def cpu_memory_room(self, key: str) -> int | None:
        """How much CPU or memory is left here and above; None where nobody limits it."""
        levels: list[Balance | Ceiling] = [self, *self.above]
        rooms = [
            level.cpu_memory[key] - level.cpu_memory_used(key) for level in levels if key in level.cpu_memory
        ]
        for level in levels:
            if level.short is not None:
                level.short.add(key)
        return min(rooms, default=None)

    def without(self, entry: Entry) -> Self:
        """The balance as it is without a pod that is lifted, or bound."""
        return self.less(lambda _queue: (entry.charged, entry.demand.cpu_memory))

    def less(self, taken: Callable[[str], tuple[Amounts, Amounts]]) -> Self:
        """The balance without what somebody uses: of each queue, what it is charged with, and CPU and memory."""
        charged, cpu_memory = taken(self.queue)
        return replace(
            self,
            used=lambda key: self.used(key) - charged.get(key, 0),
            cpu_memory_used=lambda key: self.cpu_memory_used(key) - cpu_memory.get(key, 0),
            above=tuple(level.less(*taken(level.queue)) for level in self.above),
        )

    def alone(self, taken: Callable[[str], tuple[Amounts, Amounts]]) -> Self:
        """The balance as it would be, used by somebody and nobody else; `taken` as for `less`. Nobody is told of it."""
        charged, cpu_memory = taken(self.queue)
        return replace(
            self,
            used=lambda key: charged.get(key, 0),
            cpu_memory_used=lambda key: cpu_memory.get(key, 0),
            above=tuple(level.alone(*taken(level.queue)) for level in self.above),
            short=None,
        )

    def _short(self, card: str, milli: int, total: int, limit: int, uses: Sequence[Use] = ()) -> Refusal:
        self._told([use.card for use in uses] or (card,))
        return card_shortage(self.queue, self.limits, card, milli, total, limit, denied="allocate", uses=uses)

    def _fits(self, card: str, milli: int) -> bool:
        """As `card_shortfall`, without the words."""
        if milli <= 0:
            return True
        if self.used(card) + milli > self.limits.cards.get(card, 0):
            self._told((card,))
            return False
        return all(level.fits(card, milli) for level in self.above) if self.above else True

    def _short_above(self, card: str, milli: int, asked: CardAsk | None = None) -> Refusal | None:
        for level in self.above:
            short = level.card_shortfall(card, milli, asked)
            if short is not None:
                return short.for_one_below(self.queue)
        return None

    def _told(self, keys: Sequence[str]) -> None:
        if self.short is not None:
            self.short.update(keys)


def balance_of(ledger: Ledger, queue: str) -> Balance | None:
    """The balance of a queue, live: it follows the ledger. None for a queue that does not exist."""
    limits = ledger.limits.get(queue)
    if limits is None:
        return None
    subtrees, capacity = ledger.subtrees, ledger.capacity.limit(queue)
    if subtrees is None:
        return Balance(
            queue, limits, partial(ledger.used, queue), capacity, partial(ledger.cpu_memory.used, queue)
        )
    return Balance(
        queue,
        limits,
        partial(subtrees.used, queue),
        capacity,
        partial(subtrees.cpu_memory_used, queue),
        subtrees.ceilings(queue),
        subtrees.short(queue),
    )


def chain_problem(ledger: Ledger, queue: str) -> Refusal | None:
    """Why nobody knows which limits hold for the cards and shares of a queue; None when that is known."""
    problem = ledger.subtrees.chain(queue).told if ledger.subtrees is not None else ""
    return Refusal(reasons.QUEUE_HIERARCHY_BROKEN, problem) if problem else None


def group_balance(
    ledger: Ledger, balance: Balance, promised: Callable[[str], Amounts] = _no_promises
) -> GroupBalance:
    """What is left of a queue, and of those above it, for a group as a whole.

    What is `promised` to other groups of a queue, or of those below it, counts as used.
    """
    own = _group_level(ledger, balance, promised(balance.queue))
    above = [
        replace(_group_level(ledger, level, promised(level.queue)), listed_only=True)
        for level in balance.above
    ]
    return replace(own, above=tuple(above))


def _group_level(ledger: Ledger, level: Balance | Ceiling, promised: Amounts) -> GroupBalance:
    sums = ledger.sums(level.queue)
    cards = {key for key in promised if key not in CPU_AND_MEMORY}
    keys = sums.allocated.keys() | sums.reserved.keys() | cards | {*ledger.devices.linked}
    return GroupBalance(
        queue=level.queue,
        limits=level.limits,
        cpu_memory=level.cpu_memory,
        used={key: level.used(key) + promised.get(key, 0) for key in keys},
        cpu_memory_used=lambda key: level.cpu_memory_used(key) + promised.get(key, 0),
        uniform=ledger.settings.cards.multi_card_job == "uniform",
        short=level.short,
    )

"""Whether what a pod asks for fits its queue."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Self

from core.cards.ask import CardAsk
from core.queues.amounts import CPU_AND_MEMORY, Amounts
from core.queues.cpu_memory import cpu_memory_shortfall
from core.queues.enqueue import GroupBalance
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.queues.limits import Limits
from core.queues.shortfall import card_shortage, share_shortage
from core.queues.whole import Use
from core.refusal import Refusal

_NO_AMOUNTS: Final[Amounts] = {}


def _nothing(_key: str) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Balance:
    """A queue's limits and what is used of them, in thousandths.

    `used` gives allocated plus reserved of a card or an mGPU resource, `cpu_memory_used` of `cpu` and `memory`.
    `cpu_memory` are the limits of these two; one that is absent does not limit.
    """

    queue: str
    limits: Limits
    used: Callable[[str], int]
    cpu_memory: Amounts = field(default_factory=dict)
    cpu_memory_used: Callable[[str], int] = _nothing

    def cpu_memory_shortfall(self, wanted: Amounts) -> Refusal | None:
        """None when the CPU and memory wanted fit; only pods with cards are asked."""
        return cpu_memory_shortfall(self.queue, self.cpu_memory, self.cpu_memory_used, wanted)

    def card_shortfall(self, card: str, milli: int) -> Refusal | None:
        """None when `milli` more of `card` fit. Exactly reaching the limit fits; asking for nothing always does."""
        total = self.used(card) + milli
        limit = self.limits.cards.get(card, 0)
        return None if milli <= 0 or total <= limit else self._short(card, milli, total, limit)

    def choice_shortfall(self, asked: CardAsk) -> Refusal | None:
        """None when at least one alternative fits.

        The message names the whole expression, with the numbers of the last alternative tried.
        """
        if any(self.card_shortfall(card, asked.milli) is None for card in asked.alternatives):
            return None
        last = asked.alternatives[-1]
        total, limit = self.used(last) + asked.milli, self.limits.cards.get(last, 0)
        uses = [Use(card, self.used(card), self.limits.cards.get(card, 0)) for card in asked.alternatives]
        return self._short(asked.expression, asked.milli, total, limit, uses)

    def share_shortfall(self, wanted: Mapping[str, int]) -> Refusal | None:
        """None when the mGPU amounts fit; a key without a limit always does."""
        for key, milli in sorted(wanted.items()):
            total = self.used(key) + milli
            if milli > 0 and key in self.limits.shares and total > self.limits.shares[key]:
                return share_shortage(self.queue, key, milli, total, self.limits.shares[key])
        return None

    def without(self, entry: Entry) -> Self:
        """The balance as it is without a pod that is lifted, or bound."""
        charged, cpu_memory = entry.charged, entry.demand.cpu_memory
        return replace(
            self,
            used=lambda key: self.used(key) - charged.get(key, 0),
            cpu_memory_used=lambda key: self.cpu_memory_used(key) - cpu_memory.get(key, 0),
        )

    def _short(self, card: str, milli: int, total: int, limit: int, uses: Sequence[Use] = ()) -> Refusal:
        return card_shortage(self.queue, self.limits, card, milli, total, limit, denied="allocate", uses=uses)


def balance_of(ledger: Ledger, queue: str) -> Balance | None:
    """The balance of a queue, live: it follows the ledger. None for a queue that does not exist."""
    limits = ledger.limits.get(queue)
    if limits is None:
        return None
    return Balance(
        queue,
        limits,
        partial(ledger.used, queue),
        ledger.capacity.limit(queue),
        partial(ledger.cpu_memory.used, queue),
    )


def group_balance(ledger: Ledger, balance: Balance, promised: Amounts = _NO_AMOUNTS) -> GroupBalance:
    """What is left of a queue for a group as a whole; `promised` to other groups counts as used."""
    account = ledger.accounts.get(balance.queue)
    booked = account.allocated.keys() | account.reserved.keys() if account is not None else frozenset[str]()
    cards = {key for key in promised if key not in CPU_AND_MEMORY}
    return GroupBalance(
        queue=balance.queue,
        limits=balance.limits,
        cpu_memory=balance.cpu_memory,
        used={key: balance.used(key) + promised.get(key, 0) for key in booked | cards},
        cpu_memory_used=lambda key: balance.cpu_memory_used(key) + promised.get(key, 0),
        uniform=ledger.settings.cards.multi_card_job == "uniform",
    )

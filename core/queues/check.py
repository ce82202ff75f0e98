"""Whether a demand fits a queue, and the words for when it does not.

The texts of the five oldest reasons are those that users of Volcano's own card plugin have in their alerts:
angle brackets are literal, cards are counted in thousandths.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core import reasons
from core.cards.ask import CardAsk
from core.queues.limits import Limits


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why something does not fit: a code of core.reasons and the message for the user."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Balance:
    """A queue's limits and what is used of them; `used` gives allocated plus reserved of a key in thousandths."""

    queue: str
    limits: Limits
    used: Callable[[str], int]

    def card_shortfall(self, card: str, milli: int) -> Shortfall | None:
        """None when `milli` more of `card` fit. Exactly reaching the limit fits; asking for nothing always does."""
        total = self.used(card) + milli
        limit = self.limits.cards.get(card, 0)
        return None if milli <= 0 or total <= limit else self._insufficient(card, milli, total, limit)

    def choice_shortfall(self, asked: CardAsk) -> Shortfall | None:
        """None when at least one alternative fits.

        The message names the whole expression, with the numbers of the last alternative tried.
        """
        if any(self.card_shortfall(card, asked.milli) is None for card in asked.alternatives):
            return None
        last = asked.alternatives[-1]
        return self._insufficient(
            asked.expression, asked.milli, self.used(last) + asked.milli, self.limits.cards.get(last, 0)
        )

    def share_shortfall(self, wanted: Mapping[str, int]) -> Shortfall | None:
        """None when the mGPU amounts fit; a key without a limit always does."""
        for key, milli in sorted(wanted.items()):
            total = self.used(key) + milli
            if milli > 0 and key in self.limits.shares and total > self.limits.shares[key]:
                return self._scalar(key, milli, total, self.limits.shares[key])
        return None

    def _insufficient(self, card: str, milli: int, total: int, limit: int) -> Shortfall:
        if self.limits.malformed:
            return Shortfall(
                reasons.CARD_QUOTA_MALFORMED,
                f"Queue <{self.queue}> has no cards, its card quota cannot be read: {self.limits.malformed}; "
                f"requested <{milli}> of <{card}>",
            )
        if not self.limits.declared:
            return Shortfall(
                reasons.EMPTY_QUEUE_CAPABILITY,
                f"Queue <{self.queue}> capability <cpu 0.00, memory 0.00> is empty, deny it to allocate: "
                f"requested <{milli}> of <{card}>",
            )
        return self._scalar(card, milli, total, limit)

    def _scalar(self, key: str, milli: int, total: int, limit: int) -> Shortfall:
        return Shortfall(
            reasons.INSUFFICIENT_SCALAR_QUOTA,
            f"Queue <{self.queue}> has insufficient <{key}> quota: requested <{milli}>, "
            f"total would be <{total}>, but capability is <{limit}>",
        )

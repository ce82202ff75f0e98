"""Whether a demand fits a queue, and the words for when it does not.

The texts of the five oldest reasons are those that users of Volcano's own card plugin have in their alerts:
angle brackets are literal, cards are counted in thousandths.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core import reasons
from core.cards.ask import CardAsk
from core.queues.limits import Limits
from core.queues.numbers import go_float


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
        return None if milli <= 0 or total <= limit else self._short(card, milli, total, limit)

    def choice_shortfall(self, asked: CardAsk) -> Shortfall | None:
        """None when at least one alternative fits.

        The message names the whole expression, with the numbers of the last alternative tried.
        """
        if any(self.card_shortfall(card, asked.milli) is None for card in asked.alternatives):
            return None
        last = asked.alternatives[-1]
        total, limit = self.used(last) + asked.milli, self.limits.cards.get(last, 0)
        return self._short(asked.expression, asked.milli, total, limit)

    def share_shortfall(self, wanted: Mapping[str, int]) -> Shortfall | None:
        """None when the mGPU amounts fit; a key without a limit always does."""
        for key, milli in sorted(wanted.items()):
            total = self.used(key) + milli
            if milli > 0 and key in self.limits.shares and total > self.limits.shares[key]:
                return _scalar(self.queue, key, str(milli), str(total), str(self.limits.shares[key]))
        return None

    def _short(self, card: str, milli: int, total: int, limit: int) -> Shortfall:
        return card_shortage(self.queue, self.limits, card, milli, total, limit, denied="allocate")


def card_shortage(
    queue: str, limits: Limits, card: str, milli: int, total: int, limit: int, *, denied: str
) -> Shortfall:
    """What is said when `milli` more of a card would make `total`, beyond `limit`.

    `denied` is the step that is not taken: `allocate` for a pod, `enqueue` for a group.
    """
    requested = go_float(milli)
    if limits.malformed:
        return Shortfall(
            reasons.CARD_QUOTA_MALFORMED,
            f"Queue <{queue}> has no cards, its card quota cannot be read: {limits.malformed}; "
            f"requested <{requested}> of <{card}>",
        )
    if not limits.declared:
        return Shortfall(
            reasons.EMPTY_QUEUE_CAPABILITY,
            f"Queue <{queue}> capability <cpu 0.00, memory 0.00> is empty, deny it to {denied}: "
            f"requested <{requested}> of <{card}>",
        )
    return _scalar(queue, card, requested, go_float(total), go_float(limit))


def _scalar(queue: str, key: str, requested: str, total: str, limit: str) -> Shortfall:
    return Shortfall(
        reasons.INSUFFICIENT_SCALAR_QUOTA,
        f"Queue <{queue}> has insufficient <{key}> quota: requested <{requested}>, "
        f"total would be <{total}>, but capability is <{limit}>",
    )

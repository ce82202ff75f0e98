"""The limits of a queue, as they hold for all below it together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from core.cards.ask import CardAsk
from core.queues.amounts import Amounts
from core.queues.cpu_memory import cpu_memory_fits, cpu_memory_shortfall
from core.queues.limits import Limits
from core.queues.shortfall import card_shortage, share_shortage
from core.queues.whole import Use
from core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What one queue above limits, in thousandths; a card, resource or dimension that it does not list is not limited.

    `used` and `cpu_memory_used` are those of the queue and of all below it. A queue whose card quota cannot be read has no
    cards, and so have those below it. In `short` goes what somebody was told that there is too little of.
    """

    queue: str
    limits: Limits
    used: Callable[[str], int]
    cpu_memory: Amounts
    cpu_memory_used: Callable[[str], int]
    short: set[str] = field(default_factory=set)

    def limit(self, card: str) -> int | None:
        """How much of a card may be used below; None where that is not limited."""
        return 0 if self.limits.malformed else self.limits.cards.get(card)

    def room(self, card: str) -> int | None:
        """How much of that is left, perhaps less than nothing."""
        limit = self.limit(card)
        return None if limit is None else limit - self.used(card)

    def fits(self, card: str, milli: int) -> bool:
        """Whether so much more of a card fits; nothing always does."""
        limit = self.limit(card)
        if limit is None or milli <= 0 or self.used(card) + milli <= limit:
            return True
        self.short.add(card)
        return False

    def covers(self, card: str, milli: int, cpu_memory: Amounts) -> bool:
        """Whether so much more of a card fits, and CPU and memory with it; as nobody is told, it is noted nowhere."""
        room = self.room(card)
        if room is not None and milli > max(0, room):
            return False
        return cpu_memory_fits(self.cpu_memory, self.cpu_memory_used, cpu_memory)

    def card_shortfall(self, card: str, milli: int, asked: CardAsk | None = None) -> Refusal | None:
        """None when `milli` more of a card fit; `asked` is the choice of which it is one, for the words."""
        limit = self.limit(card)
        if limit is None or milli <= 0:
            return None
        total = self.used(card) + milli
        if total <= limit:
            return None
        self.short.add(card)
        expression, uses = card, list[Use]()
        if asked is not None and len(asked.alternatives) > 1:
            expression, uses = asked.expression, self._uses(asked.alternatives)
        return card_shortage(
            self.queue, self.limits, expression, milli, total, limit, denied="allocate", uses=uses
        )

    def share_shortfall(self, key: str, milli: int) -> Refusal | None:
        """None when so much more of an mGPU resource fits."""
        limit, total = self.limits.shares.get(key), self.used(key) + milli
        if limit is None or milli <= 0 or total <= limit:
            return None
        self.short.add(key)
        return share_shortage(self.queue, key, milli, total, limit)

    def cpu_memory_shortfall(self, wanted: Amounts) -> Refusal | None:
        """None when the CPU and memory wanted fit."""
        if not self.cpu_memory:
            return None
        found = cpu_memory_shortfall(self.queue, self.cpu_memory, self.cpu_memory_used, wanted)
        if found is not None:
            self.short.update(wanted)
        return found

    def less(self, charged: Mapping[str, int], cpu_memory: Amounts) -> Self:
        """The same without what somebody uses."""
        used, cpu_memory_used = self.used, self.cpu_memory_used
        return replace(
            self,
            used=lambda key: used(key) - charged.get(key, 0),
            cpu_memory_used=lambda key: cpu_memory_used(key) - cpu_memory.get(key, 0),
        )

    def alone(self, charged: Mapping[str, int], cpu_memory: Amounts) -> Self:
        """The same, used by somebody and nobody else. What is found short so is noted nowhere."""
        return replace(
            self,
            used=lambda key: charged.get(key, 0),
            cpu_memory_used=lambda key: cpu_memory.get(key, 0),
            short=set(),
        )

    def _uses(self, cards: Sequence[str]) -> list[Use]:
        listed = [(card, limit) for card in cards if (limit := self.limit(card)) is not None]
        return [Use(card, self.used(card), limit) for card, limit in listed]

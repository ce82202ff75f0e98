"""The figures of every queue: which devices its pods and those below it use, hold and wait for."""

from collections.abc import Iterable
from typing import Final

from core.dra.amounts import Amounts, render
from core.dra.charges import DeviceAccount
from core.dra.links import card_key, is_card_key, milli_of
from core.objects import Queue

_NOBODY: Final = DeviceAccount()


class DeviceAccounts:
    """The accounts by queue; one is there as long as pods are charged to it. What is handed out follows later changes."""

    def __init__(self) -> None:
        self._by_queue: dict[str, DeviceAccount] = {}

    def of(self, queue: str) -> DeviceAccount:
        """The account of a queue, to read."""
        return self._by_queue.get(queue, _NOBODY)

    def opened(self, queue: str) -> DeviceAccount:
        """The account of a queue, to book in."""
        return self._by_queue.setdefault(queue, DeviceAccount())

    def close_empty(self, queues: Iterable[str]) -> None:
        """Keeps nothing of those of these queues that nobody is charged to any more."""
        for name in queues:
            if self._by_queue[name].empty:
                del self._by_queue[name]

    def queues(self) -> Iterable[str]:
        """The queues that claims are charged to, their own or those of queues below them."""
        return self._by_queue.keys()

    def allocated(self, queue: str) -> Amounts:
        """What the bound pods of a queue and of those below it use."""
        return self.of(queue).allocated.sums

    def used(self, queue: str) -> Amounts:
        """What is allocated, and what pods hold that may be bound any moment."""
        return self.of(queue).used.sums

    def reserved(self, queue: str) -> Amounts:
        """What is used beyond what is allocated."""
        return self.of(queue).reserved()

    def waiting(self, queue: str) -> Amounts:
        """What would be used beyond what is, if all that wait were let in."""
        return self.of(queue).waiting()

    def card_used(self, queue: str, card: str) -> int:
        """What is used of a card that has classes, in thousandths: by its name and by claims."""
        return milli_of(self.used(queue).get(card_key(card), 0))

    def ungranted(self, queue: str) -> dict[str, int]:
        """What of the cards that have classes is used and was granted to nobody, in thousandths, by card."""
        account = self.of(queue)
        return {
            key.dimension: milli_of(amount - account.granted.sums.get(key, 0))
            for key, amount in account.used.sums.items()
            if is_card_key(key)
        }

    def published(self, queue: Queue) -> dict[str, str]:
        """The keys of `status.allocated` that we answer for; what another manager owns there is left to it."""
        return {
            key.resource: render(amount)
            for key, amount in self.allocated(queue.name).items()
            if key.resource not in queue.foreign_allocated
        }

    def waiting_queues(self) -> frozenset[str]:
        """The queues in which pods with claims wait."""
        return frozenset(name for account in self._by_queue.values() for name in account.waiting_queues)

    def waiting_below(self, queue: str) -> frozenset[str]:
        """The queues with waiting pods that the limits of this one decide on, itself among them."""
        return frozenset(self.of(queue).waiting_queues)

    def sums(self) -> dict[str, dict[str, Amounts]]:
        """Copies of the sums of every queue, by what they are called."""
        return {name: account.sums() for name, account in self._by_queue.items()}

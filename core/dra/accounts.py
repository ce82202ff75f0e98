"""The figures of every queue: which devices its pods and those below it use, hold and wait for, each claim charged once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from core.dra.amounts import Amounts, DeviceKey
from core.dra.booking import Booking
from core.dra.charges import Charges
from core.dra.links import card_key, is_card_key, milli_of
from core.stage import Stage


class DeviceAccount:
    """What a queue and those below it use. A claim that pods of several stages share counts for the furthest of them."""

    __slots__ = ("_known", "_pods", "allocated", "asked", "granted", "used", "waiting_queues")

    def __init__(self) -> None:
        self._pods = 0
        self.allocated = Charges()
        """Claims of bound pods."""
        self.used = Charges()
        """Those, and the claims of pods that may be bound any moment."""
        self.granted = Charges()
        """Those of bound pods, and of pods that were let in: without those that lost their gate in another way."""
        self.asked = Charges()
        """Those of these claims for which quota was asked: whoever shares one has it for nothing."""
        self._known = Charges()
        """Those, and the claims of waiting pods."""
        self.waiting_queues: dict[str, int] = {}
        """The queues in which pods with claims wait, and how many."""

    @property
    def empty(self) -> bool:
        """Whether no pod is booked, not even one whose claims are not known."""
        return not self._pods

    def reserved(self) -> dict[DeviceKey, int]:
        """What is used beyond what is allocated."""
        return _beyond(self.used.sums, self.allocated.sums)

    def waiting(self) -> dict[DeviceKey, int]:
        """What would be used beyond what is, if all that wait were let in."""
        return _beyond(self._known.sums, self.used.sums)

    def sums(self) -> dict[str, Amounts]:
        """Copies of all sums, by what they are called."""
        return {
            "allocated": dict(self.allocated.sums),
            "allocated or reserved": dict(self.used.sums),
            "granted": dict(self.granted.sums),
            "granted after asking": dict(self.asked.sums),
            "asked for": dict(self._known.sums),
        }

    def book(self, booking: Booking, claims: Mapping[str, Amounts]) -> None:
        """Adds a pod of this queue or one below it, with those of its claims that count here."""
        self._pods += 1
        for charges, counted in self._counting(booking, claims):
            charges.add(counted)
        if booking.stage is Stage.WAITING:
            self.waiting_queues[booking.queue] = self.waiting_queues.get(booking.queue, 0) + 1

    def unbook(self, booking: Booking, claims: Mapping[str, Amounts]) -> None:
        """Takes out a pod that was booked so."""
        self._pods -= 1
        for charges, counted in self._counting(booking, claims):
            charges.remove(counted)
        if booking.stage is Stage.WAITING:
            self.waiting_queues[booking.queue] -= 1
            if not self.waiting_queues[booking.queue]:
                del self.waiting_queues[booking.queue]

    def _counting(
        self, booking: Booking, claims: Mapping[str, Amounts]
    ) -> Iterator[tuple[Charges, Mapping[str, Amounts]]]:
        if booking.stage is Stage.IGNORED:
            raise ValueError("an ignored pod is not booked")
        yield self._known, claims
        if booking.stage is not Stage.WAITING:
            yield self.used, claims
        if booking.stage is Stage.ALLOCATED:
            yield self.allocated, claims
        if booking.granted:
            yield self.granted, claims
            yield (
                self.asked,
                {claim: amounts for claim, amounts in claims.items() if booking.asked_for(claim)},
            )


def _beyond(sums: Amounts, others: Amounts) -> dict[DeviceKey, int]:
    over = {key: amount - others.get(key, 0) for key, amount in sums.items()}
    return {key: amount for key, amount in over.items() if amount}


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

    def allocated_of(self, device_class: str) -> Iterator[str]:
        """The queues in which bound pods use devices of a class."""
        for name, account in self._by_queue.items():
            if any(key.device_class == device_class for key in account.allocated.sums):
                yield name

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

    def waiting_queues(self) -> frozenset[str]:
        """The queues in which pods with claims wait."""
        return frozenset(name for account in self._by_queue.values() for name in account.waiting_queues)

    def waiting_below(self, queue: str) -> frozenset[str]:
        """The queues with waiting pods that the limits of this one decide on, itself among them."""
        return frozenset(self.of(queue).waiting_queues)

    def sums(self) -> dict[str, dict[str, Amounts]]:
        """Copies of the sums of every queue, by what they are called."""
        return {name: account.sums() for name, account in self._by_queue.items()}

"""In which queues pods wait that refer to a claim. Of a claim that is shared there may be thousands of them."""

from collections.abc import Iterable

from core.dra.booking import Booking
from core.dra.wants import claim_keys
from core.stage import Stage


class AwaitedClaims:
    """Counts by claim and queue, so that asking about a claim costs its queues, not its users."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, int]] = {}

    def queues(self, claims: Iterable[str]) -> set[str]:
        """Those in which a pod waits that refers to any of these claims, `namespace/name`."""
        return {queue for claim in claims for queue in self._waiting.get(claim, ())}

    def book(self, booking: Booking) -> None:
        """Takes in a pod; one that does not wait is of no account here."""
        if booking.stage is not Stage.WAITING:
            return
        for claim in dict.fromkeys(claim_keys(booking.pod)):
            queues = self._waiting.setdefault(claim, {})
            queues[booking.queue] = queues.get(booking.queue, 0) + 1

    def unbook(self, booking: Booking) -> None:
        """Takes out a pod that was taken in so."""
        if booking.stage is not Stage.WAITING:
            return
        for claim in dict.fromkeys(claim_keys(booking.pod)):
            queues = self._waiting[claim]
            queues[booking.queue] -= 1
            if not queues[booking.queue]:
                del queues[booking.queue]
            if not queues:
                del self._waiting[claim]

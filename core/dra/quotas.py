"""What queues allow of devices, and of cards that are the same devices: which quota holds at which level, and what would break it."""

from collections.abc import Mapping

from core.dra.amounts import Amounts
from core.dra.booking import Booking
from core.dra.charges import Charges
from core.dra.check import device_shortfall
from core.dra.limits import NO_LIMITS, DeviceLimits, device_limits_of
from core.dra.links import OF_CARD, CardQuotas, Links, is_card_key, milli_of
from core.objects import Queue
from core.refusal import Refusal
from core.settings import DraSettings


class DeviceQuotas:
    """The quotas of all queues. `limits`, those on devices, are read by the name of the queue; the ones on cards are known to `cards`."""

    def __init__(
        self, settings: DraSettings, links: Links, cards: CardQuotas | None, *, through: bool
    ) -> None:
        """`through`: whether the quotas on cards hold through the tree."""
        self.limits: dict[str, DeviceLimits] = {}
        self._settings = settings
        self._links = links
        self._cards = cards
        self._through = through
        self._card_quotas: dict[str, str] = {}

    def put(self, queue: Queue) -> bool:
        """Takes in a queue; returns whether it allows something else now."""
        old, new = self.limits.get(queue.name), device_limits_of(queue)
        self.limits[queue.name] = NO_LIMITS if new == NO_LIMITS else new
        same = old == new and not (self._links and self._card_quotas.get(queue.name) != queue.card_quota)
        if self._links:
            self._card_quotas[queue.name] = queue.card_quota
        return not same

    def drop(self, name: str) -> bool:
        """Takes out a queue; returns whether it had limited anything."""
        had_cards = self._card_quotas.pop(name, "") != ""
        return self.limits.pop(name, NO_LIMITS) is not NO_LIMITS or had_cards

    @property
    def through_the_tree(self) -> bool:
        """Whether any of these quotas, on devices or on cards, hold for the queues below."""
        return self._settings.hierarchy or (self._through and bool(self._links))

    def at(self, level: str, queue: str, claims: Mapping[str, Amounts]) -> Mapping[str, Amounts]:
        """What of these claims counts at a level of the chain of a queue: cards and devices may hold through the tree apart."""
        if level == queue or not self._links or (self._through and self._settings.hierarchy):
            return claims
        return {
            key: amounts
            for key, amounts in claims.items()
            if (self._through if key.startswith(OF_CARD) else self._settings.hierarchy)
        }

    def share(self, queue: str, used: Amounts) -> float:
        """The largest part of any limit of the queue on devices that is used; for order and display only."""
        bounds = self.limits.get(queue, NO_LIMITS).bounds
        return max((used.get(key, 0) / limit for key, limit in bounds.items() if limit > 0), default=0.0)

    def beyond(self, queue: str, added: Amounts, used: Amounts, *, own: bool) -> Refusal | None:
        """Which limit of a queue these amounts would break beside those that are used; `own`: those of its own pods."""
        if self._links and self._cards is not None:
            for key, amount in added.items():
                if is_card_key(key) and amount > 0:
                    taken = milli_of(used.get(key, 0))
                    short = self._cards.shortage(queue, key.dimension, milli_of(amount), taken, own=own)
                    if short is not None:
                        return short
            added = {key: amount for key, amount in added.items() if not is_card_key(key)}
        limits = self.limits.get(queue, NO_LIMITS)
        if limits is NO_LIMITS:
            return None
        deny = self._settings.unlisted_dimension == "deny"
        return device_shortfall(queue, limits, lambda key: used.get(key, 0), added, deny_unlisted=deny)

    def beyond_instead(
        self, booking: Booking, claims: Mapping[str, Amounts], charged: Mapping[str, Charges]
    ) -> Refusal | None:
        """Which limit of its queues leaves no room for these claims instead of those that a pod is booked with.

        `charged` is what counts at each level of its chain, the booking included.
        """
        for name, charges in charged.items():
            instead, had = (self.at(name, booking.queue, each) for each in (claims, booking.wants.claims))
            freed = charges.alone(had)
            others = {key: amount - freed.get(key, 0) for key, amount in charges.sums.items()}
            refusal = self.beyond(name, charges.added(instead, had), others, own=name == booking.queue)
            if refusal is not None:
                return refusal
        return None

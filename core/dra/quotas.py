"""What queues allow of devices, and of cards that are the same devices: which quota holds at which level, and what would break it."""

from collections.abc import Callable, Iterator, Mapping

from core import reasons
from core.dra.amounts import Amounts, DeviceKey, render, total
from core.dra.booking import Booking
from core.dra.carriers import NO_LIMITS, DeviceLimits, device_limits_of
from core.dra.charges import Charges
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
        self,
        booking: Booking,
        claims: Mapping[str, Amounts],
        charges: Mapping[str, Charges],
        free: Callable[[str, str], bool],
    ) -> Refusal | None:
        """Which limit of its queues leaves no room for these claims instead of those that a pod is booked with.

        `charges` are what counts in the queues of its chain, the booking included; `free` says which claims nothing is asked for
        in which of them.
        """
        for name, charged in charges.items():
            instead, had = (self.at(name, booking.queue, each) for each in (claims, booking.wants.claims))
            freed = {claim: amounts for claim, amounts in had.items() if charged.holders(claim) == 1}
            asked = {claim: amounts for claim, amounts in instead.items() if not free(name, claim)}
            beside = charged.without({**freed, **asked})
            refusal = self.beyond(name, total(asked.values()), beside, own=name == booking.queue)
            if refusal is not None:
                return refusal
        return None


def device_shortfall(
    queue: str,
    limits: DeviceLimits,
    used: Callable[[DeviceKey], int],
    needed: Amounts,
    *,
    deny_unlisted: bool,
) -> Refusal | None:
    """None when all of `needed` fits beside what is `used`; exactly reaching a limit fits.

    `needed` is what comes on top: a claim that is charged already needs nothing. `deny_unlisted` says what becomes of a
    capacity that the quota of its class does not name.
    """
    wanted = {key: amount for key, amount in sorted(needed.items()) if amount > 0}
    for key in wanted:
        if limits.closes(key.device_class):
            text = f"queue {queue}: DeviceClass {key.device_class} is closed, the device quota cannot be read: {limits.malformed}"
            return Refusal(reasons.DEVICE_QUOTA_MALFORMED, text)
    broken = list(_exceeded(limits, used, wanted, deny_unlisted=deny_unlisted))
    return (
        Refusal(reasons.INSUFFICIENT_DEVICE_QUOTA, f"queue {queue}: {'; '.join(broken)}") if broken else None
    )


def _exceeded(
    limits: DeviceLimits,
    used: Callable[[DeviceKey], int],
    wanted: Mapping[DeviceKey, int],
    *,
    deny_unlisted: bool,
) -> Iterator[str]:
    for key, amount in wanted.items():
        limit = limits.bounds.get(key)
        if limit is not None:
            if used(key) + amount > limit:
                numbers = f"requested {render(amount)}, used {render(used(key))}, limit {render(limit)}"
                never = ", more than the whole quota; ask for less, or raise it" if amount > limit else ""
                yield f"DeviceClass {key.display} quota exceeded: {numbers}{never}"
        elif deny_unlisted and key.dimension and key.device_class in limits.classes:
            yield f"DeviceClass {key.display} is not in the quota: requested {render(amount)}"

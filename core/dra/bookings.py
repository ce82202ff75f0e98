"""All bookings, found by pod, queue, claim and template, and the sums that they add up to."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from core.dra.accounts import DeviceAccounts
from core.dra.amounts import Amounts, DeviceKey
from core.dra.awaited_claims import AwaitedClaims
from core.dra.booking import Booking, Charge, Effect, held
from core.dra.links import is_card_key
from core.dra.quotas import DeviceQuotas
from core.dra.wants import claim_keys
from core.index import Index
from core.stage import Stage


class Bookings:
    """What each pod is booked with. `accounts` have the figures by queue, and are always those of the bookings that are here."""

    def __init__(self, quotas: DeviceQuotas, *, linked: bool) -> None:
        """`linked`: whether cards are the same devices as classes."""
        self.accounts = DeviceAccounts()
        self._quotas = quotas
        self._linked = linked
        self._by_uid: dict[str, Booking] = {}
        self._by_queue = Index()
        self._by_claim = Index()
        self._by_template = Index()
        self._awaited = AwaitedClaims()

    def get(self, uid: str) -> Booking | None:
        """That of a pod."""
        return self._by_uid.get(uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def __iter__(self) -> Iterator[Booking]:
        return iter(self._by_uid.values())

    def of(self, uids: Iterable[str]) -> list[Booking]:
        """Those of pods that are here."""
        return [self._by_uid[uid] for uid in uids]

    def in_queue(self, queue: str) -> Collection[str]:
        """The UIDs of the pods that are charged to a queue first."""
        return self._by_queue.get(queue)

    def with_claim(self, key: str) -> Collection[str]:
        """The UIDs of the pods that refer to a claim, `namespace/name`."""
        return self._by_claim.get(key)

    def paid_by_others(
        self, booking: Booking, apart: Callable[[str], bool] | None = None
    ) -> Callable[[str, str], bool]:
        """Whether, in a queue, quota was asked for a claim for another pod than this one, and than those `apart`."""

        def is_paid(name: str, claim: str) -> bool:
            own = booking.asked_for(claim) and claim in self.at(name, booking)
            others = self.accounts.of(name).asked.holders(claim) - own
            if apart is None or not others:
                return others > 0
            return any(
                other.asked_for(claim) and claim in self.at(name, other)
                for other in self._beside(booking)
                if name in other.chain.queues and not apart(other.pod.uid)
            )

        return is_paid

    def _beside(self, booking: Booking) -> Iterator[Booking]:
        for claim in dict.fromkeys(claim_keys(booking.pod)):
            yield from (self._by_uid[uid] for uid in self._by_claim.get(claim) if uid != booking.pod.uid)

    def with_template(self, key: str) -> Collection[str]:
        """The UIDs of the pods that are charged by a template, `namespace/name`, or would be were it there: their claims are not made."""
        return self._by_template.get(key)

    def at(self, name: str, booking: Booking) -> Mapping[str, Amounts]:
        """What of the claims of a booking is charged to a queue of its chain."""
        return self._quotas.at(name, booking.queue, booking.wants.claims)

    def replace(self, old: list[Booking], new: list[Booking]) -> Effect:
        """Takes `old` out of the sums and `new` in."""
        keys = {key for booking in old for amounts in booking.wants.claims.values() for key in amounts}
        queues = {name for booking in (*old, *new) for name in booking.chain.queues}
        cards = {key for key in keys if is_card_key(key)} if self._linked else set[DeviceKey]()
        limits = self._quotas.limits
        limited = {name: (keys & limits[name].bounds.keys()) | cards for name in queues if name in limits}
        before = {
            name: {key: self.accounts.used(name).get(key, 0) for key in some}
            for name, some in limited.items()
        }
        # To whoever waits for a claim that is held already, one more holder makes no difference, but the first who was asked.
        taken = {
            (queue, claim, asked)
            for queue, claim, asked in held(new) - held(old)
            if claim not in (self.accounts.of(queue).asked if asked else self.accounts.of(queue).used)
        }
        for booking in old:
            self._unbook(booking)
        for booking in new:
            self._book(booking)
        for uid in [booking.pod.uid for booking in old if booking.pod.uid not in self._by_uid]:
            for index in (self._by_queue, self._by_claim, self._by_template):
                index.put(uid)
        self.accounts.close_empty(queues)
        dirty = {booking.queue for booking in new if booking.stage is Stage.WAITING}
        dirty |= self.sharing(taken)
        for name, had in before.items():
            used = self.accounts.used(name)
            if any(used.get(key, 0) < amount for key, amount in had.items()):
                dirty |= self.accounts.waiting_below(name)
        return Effect(frozenset(queues), frozenset(dirty))

    def sharing(self, held: Iterable[Charge]) -> set[str]:
        """The queues in which pods wait for a claim that another pod holds now, and that may cost them less therefore."""
        return self._awaited.queues({claim for _, claim, _ in held})

    def _book(self, booking: Booking) -> None:
        pod = booking.pod
        self._by_uid[pod.uid] = booking
        self._by_queue.put(pod.uid, booking.queue)
        self._by_claim.put(pod.uid, *dict.fromkeys(claim_keys(pod)))
        if booking.stage is Stage.WAITING:
            self._awaited.wait(booking.queue, self._by_claim.values(pod.uid))
        self._by_template.put(pod.uid, *booking.wants.templates)
        for name in booking.chain.queues:
            account = self.accounts.opened(name)
            account.book(booking, self.at(name, booking))

    def _unbook(self, booking: Booking) -> None:
        uid = booking.pod.uid
        del self._by_uid[uid]
        if booking.stage is Stage.WAITING:
            self._awaited.leave(booking.queue, self._by_claim.values(uid))
        for name in booking.chain.queues:
            account = self.accounts.opened(name)
            account.unbook(booking, self.at(name, booking))

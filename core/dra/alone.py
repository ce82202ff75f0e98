"""What queues would have of devices for a few pods, were all others gone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from core.dra.amounts import Amounts, DeviceKey, total
from core.dra.booking import Booking
from core.dra.bookings import Bookings
from core.dra.charges import Charges
from core.dra.cost import is_estimate
from core.dra.quotas import DeviceQuotas
from core.dra.wants import Known, claim_keys, template_keys
from core.least import Asks
from core.stage import Stage
from core.steps import Pace, Steps

_IN_ONE_STEP: Final = 100


class DevicesAlone:
    """The limits of queues and of those above them, with nothing taken of them but by pods that `hold` was told of.

    It says no where that is certain alone: a claim that anybody holds already costs nothing, and what may turn out to cost less once
    it has its devices takes nothing from others.
    """

    def __init__(self, quotas: DeviceQuotas, bookings: Bookings, known: Known) -> None:
        self._quotas = quotas
        self._bookings = bookings
        self._known = known
        self._held: dict[str, Charges] = {}

    def hold(self, uid: str) -> None:
        """Counts what a pod holds that does not wait."""
        booking = self._bookings.get(uid)
        if booking is None or not self._is_final(booking):
            return
        for level in booking.chain.queues:
            self._held.setdefault(level, Charges()).add(self._bookings.at(level, booking))

    def fits(self, uid: str) -> bool:
        """Whether the claims of a waiting pod fit by themselves."""
        booking = self._bookings.get(uid)
        return booking is None or all(
            self._has(level, booking.queue, total(self._needed(level, booking).values()))
            for level in booking.chain.queues
        )

    def fit_together(self, uids: Iterable[str], count: int) -> Steps[bool]:
        """Whether those `count` of these pods of one queue fit that ask for least, were there nothing that two of them share."""
        found: list[Booking | None] = []
        pace = Pace(_IN_ONE_STEP)
        for uid in uids:
            if pace.due():
                yield
            found.append(self._bookings.get(uid))
        first = next(filter(None, found), None)
        for level in first.chain.queues if first is not None else ():
            least = yield from self._least(level, found, count)
            if first is not None and not self._has(level, first.queue, least):
                return False
        return True

    def _least(self, level: str, bookings: Sequence[Booking | None], count: int) -> Steps[Amounts]:
        needed: list[Mapping[str, Amounts]] = []
        sharing = Counter[str]()
        pace = Pace(_IN_ONE_STEP)
        for booking in bookings:
            if pace.due():
                yield
            needed.append(self._needed(level, booking) if booking is not None else {})
            sharing.update(needed[-1].keys())
        asked = Asks[DeviceKey]()
        for claims in needed:
            if pace.due():
                yield
            asked.add(total(cost for claim, cost in claims.items() if sharing[claim] == 1))
        return (yield from asked.least(count))

    def _needed(self, level: str, booking: Booking) -> Mapping[str, Amounts]:
        """What of the claims of a waiting pod nobody holds yet."""
        used = self._bookings.accounts.of(level).used
        return {claim: cost for claim, cost in self._bookings.at(level, booking).items() if claim not in used}

    def _has(self, level: str, queue: str, amounts: Amounts) -> bool:
        held = self._held.get(level)
        taken = held.sums if held is not None else {}
        return self._quotas.beyond(level, amounts, taken, own=level == queue) is None

    def _is_final(self, booking: Booking) -> bool:
        """Whether what a pod is charged with stays, as the objects that are known say."""
        if booking.stage is Stage.ALLOCATED:
            return True
        pod, known = booking.pod, self._known
        claims = [known.claim(key) for key in claim_keys(pod)]
        templates = [known.template(key) for key in template_keys(pod)]
        return all(
            found is not None and not is_estimate(found[0].requests, found[0].allocated) for found in claims
        ) and all(found is not None and not is_estimate(found[0].requests, None) for found in templates)

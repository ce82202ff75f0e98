"""Are the books of devices right: every booking against its pod, every sum against the bookings that it adds up.

A claim that pods share counts once in each queue, for the furthest of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from core.dra.accounts import DeviceAccount
from core.dra.amounts import Amounts, render
from core.dra.book import DeviceBook
from core.dra.booking import Booking
from core.queues.drift import Drift
from core.queues.ledger import Ledger
from core.sharded import each_key
from core.stage import Stage
from core.steps import Pace, Steps

_STEP: Final = 10
"""Pods with claims in half a millisecond of work."""


@dataclass(frozen=True, slots=True)
class DeviceSnapshot:
    """Bookings and sums of one moment."""

    bookings: tuple[Booking, ...]
    sums: Mapping[str, Mapping[str, Amounts]]

    @classmethod
    def of(cls, book: DeviceBook) -> Self:
        """As the book has them now."""
        return cls(book.bookings(), book.accounts.sums())


def device_drifts(ledger: Ledger, snapshot: DeviceSnapshot) -> Steps[list[Drift]]:
    """Everything in the book of devices that is wrong; what is changed meanwhile is judged as it is when its turn comes."""
    book = ledger.devices.book
    counted: dict[str, DeviceAccount] = {}
    pace = Pace(_STEP)
    for booking in snapshot.bookings:
        if pace.due():
            yield
        for name in booking.chain.queues:
            account = counted.setdefault(name, DeviceAccount())
            account.book(booking, book.at(name, booking))
    drifts = list(_sums(snapshot.sums, {name: account.sums() for name, account in counted.items()}))
    booked = set[str]()
    for booking in snapshot.bookings:
        if pace.due():
            yield
        booked.add(booking.pod.uid)
        drifts += _pod(ledger, booking.pod.uid)

    def judge(uid: str) -> None:
        if uid not in booked:
            drifts.extend(_pod(ledger, uid))

    yield from each_key(ledger.by_uid, judge, _STEP)
    return drifts


def _sums(
    booked: Mapping[str, Mapping[str, Amounts]], counted: Mapping[str, Mapping[str, Amounts]]
) -> Iterator[Drift]:
    nothing: dict[str, Amounts] = DeviceAccount().sums()
    for queue in sorted(booked.keys() | counted.keys()):
        have, should = booked.get(queue, nothing), counted.get(queue, nothing)
        for part, amounts in have.items():
            for key in sorted(amounts.keys() | should[part].keys()):
                one, other = amounts.get(key, 0), should[part].get(key, 0)
                if one != other:
                    yield Drift("sum", f"Queue {queue}, {key.resource} {part}", render(one), render(other))


def _pod(ledger: Ledger, uid: str) -> Iterator[Drift]:
    """One pod, in one moment."""
    entry, book = ledger.entry(uid), ledger.devices.book
    booking = book.booked(uid)
    if ledger.left_behind(uid):
        return
    if entry is None:
        if booking is not None:
            yield Drift("pod", f"Pod {booking.pod.key}", _shown(booking), "no such pod")
        return
    if not ledger.devices.concerns(entry.pod) and booking is None:
        return
    anew = book.counted_anew(entry.pod, entry.stage, entry.queue)
    if _charge(booking) != _charge(anew):
        yield Drift("pod", f"Pod {entry.pod.key}", _shown(booking), _shown(anew))


def _charge(booking: Booking | None) -> object:
    """What is charged to whom, and which of it by right; a booking without claims is none."""
    if booking is None or not booking.wants.claims:
        return None
    claims = {
        claim: (dict(amounts), _right(booking, claim)) for claim, amounts in booking.wants.claims.items()
    }
    return booking.stage, booking.queue, booking.chain, claims


def _right(booking: Booking, claim: str) -> str:
    """Which of the sums of granted claims one is not in though its pod does not wait; empty where it is in all."""
    if booking.stage is Stage.WAITING or booking.asked_for(claim):
        return ""
    return " (unasked)" if booking.granted else " (not granted)"


def _shown(booking: Booking | None) -> str:
    if booking is None or not booking.wants.claims:
        return "no device"
    amounts = [
        f"{render(amount)} {key.resource}{_right(booking, claim)}"
        for claim, cost in booking.wants.claims.items()
        for key, amount in sorted(cost.items())
    ]
    return f"{', '.join(amounts) or 'no device'} {booking.stage.name.lower()} in queue {booking.queue}"

"""What a queue may use, uses, holds and waits for, all kinds together: for people to look at, not for decisions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.queues.account import NOTHING
from core.queues.ledger import Ledger
from core.queues.share import share_of


@dataclass(frozen=True, slots=True)
class Figures:
    """Cards, mGPU resources and devices of one queue in thousandths, under the names of `status.allocated`.

    Devices are those of the queue and of all below it; so is all the rest where card quotas hold through the tree.
    """

    quota: Mapping[str, int]
    allocated: Mapping[str, int]
    reserved: Mapping[str, int]
    waiting: Mapping[str, int]
    share: float
    """The largest part of what the queue deserves that is allocated or reserved."""


def figures_of(ledger: Ledger, queue: str) -> Figures:
    """The figures of a queue as of now; of one that nobody knows all are empty."""
    devices = ledger.devices
    sums = ledger.sums(queue)
    return Figures(
        quota=quota_of(ledger, queue),
        allocated={**sums.allocated, **devices.allocated(queue)},
        reserved={**sums.reserved, **devices.reserved(queue)},
        waiting={**sums.waiting, **devices.waiting(queue)},
        share=share_of(ledger, queue),
    )


def quota_of(ledger: Ledger, queue: str) -> dict[str, int]:
    """What a queue may use, in thousandths; nothing for one that nobody knows."""
    limits = ledger.limits.get(queue)
    quota = {**limits.cards, **limits.shares} if limits is not None else {}
    return {**quota, **ledger.devices.quota(queue)}


def own_figures(ledger: Ledger) -> Iterator[tuple[str, dict[str, Mapping[str, int]]]]:
    """What each queue's own pods have `allocated`, `reserved` and `waiting`, in thousandths, by its name in order.

    Devices are those of the queues below as well: they are kept no other way.
    """
    devices = ledger.devices
    for name in sorted({*ledger.queues, *ledger.accounts, *devices.book.accounts.queues()}):
        account = ledger.accounts.get(name, NOTHING)
        yield (
            name,
            {
                "allocated": {**account.allocated, **devices.allocated(name)},
                "reserved": {**account.reserved, **devices.reserved(name)},
                "waiting": {**account.waiting, **devices.waiting(name)},
            },
        )

"""How the quota stands of everything that a waiting pod asks for, and how much is missing."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.dra.amounts import thousandths
from core.queues.amounts import CPU_AND_MEMORY, total
from core.queues.check import balance_of
from core.queues.entry import Entry
from core.queues.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Figure:
    """One key of the quota, in thousandths. `limit` is None where the queue does not limit it."""

    key: str
    asked: int
    used: int
    limit: int | None

    @property
    def missing(self) -> int:
        """How much more there would have to be; 0 where it fits."""
        return 0 if self.limit is None else max(0, self.used + self.asked - self.limit)


def counted(ledger: Ledger, entry: Entry) -> dict[str, int]:
    """What a pod is counted with, in thousandths: cards under the expression that it names, shares, devices, CPU, memory."""
    devices = thousandths(ledger.devices.book.asked(entry.pod)) if ledger.devices.wanted(entry.pod) else {}
    return {**entry.charged, **devices, **entry.demand.cpu_memory}


def figures_for(ledger: Ledger, entries: list[Entry]) -> list[Figure]:
    """The figures of these pods of one queue together, of each card that would do; keys that do not matter are left out."""
    if not entries:
        return []
    queue = entries[0].queue
    balance = balance_of(ledger, queue)
    asked = dict(total(_by_card(ledger, entry) for entry in entries))
    devices = ledger.devices
    quota, used = devices.quota(queue), total([devices.allocated(queue), devices.reserved(queue)])
    figures = []
    for key, milli in sorted(asked.items()):
        if key in CPU_AND_MEMORY:
            limit = balance.cpu_memory.get(key) if balance is not None else None
            if limit is not None and balance is not None and any(entry.demand.card for entry in entries):
                figures.append(Figure(key, milli, balance.cpu_memory_used(key), limit))
        elif "deviceclass/" in key:
            figures.append(Figure(key, milli, used.get(key, 0), quota.get(key)))
        elif balance is None:
            figures.append(Figure(key, milli, ledger.used(queue, key), None))
        else:
            limits: Mapping[str, int] = {**balance.limits.cards, **balance.limits.shares}
            is_card = any(entry.demand.card and key in entry.demand.card.alternatives for entry in entries)
            figures.append(Figure(key, milli, balance.used(key), limits.get(key, 0 if is_card else None)))
    return figures


def _by_card(ledger: Ledger, entry: Entry) -> dict[str, int]:
    amounts = counted(ledger, entry)
    asked = entry.demand.card
    if asked is not None:
        amounts.pop(asked.card, None)
        amounts |= dict.fromkeys(asked.alternatives, asked.milli)
    return amounts

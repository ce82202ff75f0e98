"""How the quota stands of everything that a waiting pod asks for, and how much is missing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from core.dra.amounts import thousandths
from core.names import MGPU_RESOURCES
from core.queues.amounts import CPU_AND_MEMORY, Amounts, add, total
from core.queues.ceiling import Ceiling
from core.queues.check import balance_of
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish

_IN_A_STEP: Final = 150
"""Amounts that are added up in half a millisecond, those who ask for them counted as well."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One key of the quota, in thousandths. `limit` is None where the queue does not limit it.

    A claim that is charged already, and for which nobody asked, is in `asked` and not in `used`, as in the words of its refusal.
    """

    key: str
    asked: int
    used: int
    limit: int | None
    queue: str = ""
    """Whose limit it is: the queue's own, or that of one above it."""

    @property
    def missing(self) -> int:
        """How much more there would have to be; 0 where it fits."""
        return 0 if self.limit is None else max(0, self.used + self.asked - self.limit)


def counted(ledger: Ledger, entry: Entry) -> dict[str, int]:
    """What a pod is counted with, in thousandths: cards under the expression that it names, shares, devices, CPU, memory.

    A claim that several pods share is counted for each of them.
    """
    devices = thousandths(ledger.devices.book.asked(entry.pod)) if ledger.devices.concerns(entry.pod) else {}
    return {**entry.charged, **devices, **entry.demand.cpu_memory}


def asked_of_quota(ledger: Ledger, entries: Sequence[Entry]) -> Steps[dict[str, int]]:
    """What waiting pods of one queue ask of it together, without CPU and memory."""
    return (yield from _summed(_without_cpu_memory(ledger, entries, entries[0].queue))) if entries else {}


def _summed(parts: Iterator[Amounts]) -> Steps[dict[str, int]]:
    """As `total`, of however many."""
    sums: dict[str, int] = {}
    pace = Pace(_IN_A_STEP)
    for part in parts:
        if pace.due(1 + len(part)):
            yield
        add(sums, part, 1)
    return sums


def _without_cpu_memory(ledger: Ledger, entries: Sequence[Entry], level: str) -> Iterator[dict[str, int]]:
    """Pod by pod, at a level: a claim that several of them share is counted once, and one that was asked for there already not at all."""
    devices = ledger.devices.asked((entry.pod for entry in entries), entries[0].queue, level)
    for entry, asked in zip(entries, devices, strict=True):
        yield {**entry.charged, **asked}


def _asked_anew(ledger: Ledger, entries: Sequence[Entry], level: str) -> Steps[Mapping[str, int]]:
    return ledger.devices.asked_anew((entry.pod for entry in entries), entries[0].queue, level)


def figures_for(ledger: Ledger, entries: list[Entry]) -> list[Figure]:
    """The figures of these pods of one queue together, of each card that would do; keys that do not matter are left out."""
    return finish(_figures_for(ledger, entries))


def _figures_for(ledger: Ledger, entries: list[Entry]) -> Steps[list[Figure]]:
    if not entries:
        return []
    queue = entries[0].queue
    anew = yield from _asked_anew(ledger, entries, queue)
    own = yield from _own(ledger, entries)
    return [_without(replace(figure, queue=queue), anew) for figure in own]


def _without(figure: Figure, anew: Mapping[str, int]) -> Figure:
    """The figure without what is asked for once more."""
    return replace(figure, used=figure.used - anew.get(figure.key, 0))


def shortest_for(ledger: Ledger, entries: list[Entry]) -> Steps[list[Figure]]:
    """The figures of these pods together, each of the queue that lacks most of it: their own, or one above whose limit holds as well."""
    levels = yield from _at_each_level(ledger, entries)
    return [max(at_each, key=lambda one: one.missing) for at_each in levels.values()]


def limits_for(ledger: Ledger, entries: list[Entry]) -> list[Figure]:
    """The same, one for each limit that holds: those of their own queue and of all above it, from the lowest on."""
    levels = finish(_at_each_level(ledger, entries))
    return [one for at_each in levels.values() for one in at_each if one.limit is not None]


def levels_of(ledger: Ledger, queue: str, key: str) -> Sequence[str]:
    """The queue, and those above it whose limit of this key holds for it as well."""
    return ledger.devices.levels(queue) if is_device(key) else ledger.with_those_above(queue)


def is_device(key: str) -> bool:
    """Whether a key is one of devices, by the name that it has in a resource list."""
    return "deviceclass/" in key


def _at_each_level(ledger: Ledger, entries: list[Entry]) -> Steps[dict[str, list[Figure]]]:
    """By key, the figure of their own queue first; of the queues above those that limit it."""
    if not entries:
        return {}
    found = {figure.key: [figure] for figure in (yield from _figures_for(ledger, entries))}
    queue = entries[0].queue
    balance = balance_of(ledger, queue)
    above = {level.queue: level for level in balance.above} if balance is not None else {}
    of_devices = ledger.devices.levels(queue)[1:]
    for name in dict.fromkeys((*above, *of_devices)):
        asked = yield from _by_card(ledger, entries, name)
        anew = yield from _asked_anew(ledger, entries, name)
        for key in found.keys() & asked.keys():
            if is_device(key):
                limit = _devices_at(ledger, name, key, asked[key]) if name in of_devices else None
            else:
                limit = _at(above[name], key, asked[key]) if name in above else None
            found[key] += [] if limit is None else [_without(limit, anew)]
    return found


def shortest_level(queue: str, figures: Sequence[Figure]) -> str:
    """The queue that lacks most of any key; the pods' own where none lacks anything."""
    most = max(figures, key=lambda one: one.missing, default=None)
    return most.queue if most is not None and most.missing else queue


def _at(level: Ceiling, key: str, asked: int) -> Figure | None:
    if key in CPU_AND_MEMORY:
        limit, used = level.cpu_memory.get(key), level.cpu_memory_used(key)
    elif key in MGPU_RESOURCES:
        limit, used = level.limits.shares.get(key), level.used(key)
    else:
        limit, used = level.limit(key), level.used(key)
    return None if limit is None else Figure(key, asked, used, limit, level.queue)


def _devices_at(ledger: Ledger, queue: str, key: str, asked: int) -> Figure | None:
    devices = ledger.devices
    limit = devices.quota(queue).get(key)
    used = devices.allocated(queue).get(key, 0) + devices.reserved(queue).get(key, 0)
    return None if limit is None else Figure(key, asked, used, limit, queue)


def _own(ledger: Ledger, entries: list[Entry]) -> Steps[list[Figure]]:
    queue = entries[0].queue
    asked = yield from _by_card(ledger, entries, queue)
    cards = yield from _cards(ledger, entries)
    balance = balance_of(ledger, queue)
    devices = ledger.devices
    quota, used = devices.quota(queue), total([devices.allocated(queue), devices.reserved(queue)])
    figures = []
    for key, milli in sorted(asked.items()):
        if key in CPU_AND_MEMORY:
            limit = balance.cpu_memory.get(key) if balance is not None else None
            if limit is not None and balance is not None and cards.named:
                figures.append(Figure(key, milli, balance.cpu_memory_used(key), limit))
        elif is_device(key):
            figures.append(Figure(key, milli, used.get(key, 0), quota.get(key)))
        elif balance is None:
            figures.append(Figure(key, milli, ledger.used(queue, key), None))
        else:
            limits: Mapping[str, int] = {**balance.limits.cards, **balance.limits.shares}
            otherwise = 0 if key in cards.named | cards.of_shares or key in devices.linked else None
            figures.append(Figure(key, milli, balance.used(key), limits.get(key, otherwise)))
    return figures


@dataclass(frozen=True, slots=True)
class _Cards:
    """The cards that would do for any of several pods: those that they name, and those that their shares may be of."""

    named: set[str] = field(default_factory=set)
    of_shares: set[str] = field(default_factory=set)


def _cards(ledger: Ledger, entries: Sequence[Entry]) -> Steps[_Cards]:
    found = _Cards()
    pace = Pace(_IN_A_STEP)
    for entry in entries:
        named = entry.demand.card.alternatives if entry.demand.card is not None else ()
        if pace.due(1 + len(named)):
            yield
        found.named.update(named)
        found.of_shares.update(_share_cards(ledger, entry))
    return found


def _by_card(ledger: Ledger, entries: Sequence[Entry], level: str) -> Steps[dict[str, int]]:
    """What they ask of a level together, of each card that would do, CPU and memory too."""
    parts = zip(entries, _without_cpu_memory(ledger, entries, level), strict=True)
    return _summed(_of_any_card(ledger, entry, amounts) for entry, amounts in parts)


def _of_any_card(ledger: Ledger, entry: Entry, amounts: Mapping[str, int]) -> dict[str, int]:
    amounts = {**amounts, **entry.demand.cpu_memory}
    asked = entry.demand.card
    if asked is not None:
        own = amounts.pop(asked.card, 0)
        amounts |= {card: max(asked.milli, own) for card in asked.alternatives}
    for card in _share_cards(ledger, entry):
        amounts[card] = amounts.get(card, 0) + entry.demand.share_milli
    return amounts


def _share_cards(ledger: Ledger, entry: Entry) -> Collection[str]:
    """The cards that a waiting pod's mGPU shares may be of, any one of which would do; none where they count against none."""
    undecided = entry.demand.share_milli and not entry.demand.share_card
    return ledger.inventory.shared_products() if undecided else ()

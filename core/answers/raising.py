"""The smallest quota that would let a waiting pod in, those before it in line served first as ever."""

from collections.abc import Callable, Iterator, Sequence
from math import gcd
from typing import Final

from core import reasons
from core.answers.quota import command, with_limit
from core.answers.remedy import Case, Found, Step
from core.answers.shortage import Figure, shortest_for
from core.answers.words import amount, whole
from core.objects import Queue
from core.plan.decision import Hold
from core.plan.units import units_of
from core.queues.amounts import CPU, MEMORY
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import finish

QUOTA: Final = frozenset(
    {
        reasons.EMPTY_QUEUE_CAPABILITY,
        reasons.CARD_QUOTA_MALFORMED,
        reasons.INSUFFICIENT_SCALAR_QUOTA,
        reasons.INSUFFICIENT_CPU_QUOTA,
        reasons.INSUFFICIENT_MEMORY_QUOTA,
        reasons.INSUFFICIENT_DEVICE_QUOTA,
        reasons.MIXED_CARDS,
    }
)
"""What more quota helps against."""

_ONE_BY_ONE: Final = 24
_MOST_SUMS: Final = 1 << 16
_KEYS: Final = 4


def raise_quota(case: Case) -> Found | None:
    """More of one key of the queue, or of one above it whose limit holds as well.

    Of several cards that would do, the one that takes the least more.
    """
    if case.hold.why.code not in QUOTA:
        return None
    found = [one for key in _short(case)[:_KEYS] if (one := _raised(case, key)) is not None]
    return min(found, key=lambda one: (one.hold is not None, one.step.amount), default=None)


def _short(case: Case) -> list[str]:
    """The keys that are short once everybody is lifted who can be, as the code says."""
    with case.whatif.made(case.change):
        case.whatif.decide()
        entry = case.obstacle
        figures = shortest_for(case.whatif.ledger, _together(case.whatif.ledger, entry))
        asked = entry.demand.card
    match case.hold.why.code:
        case reasons.INSUFFICIENT_CPU_QUOTA:
            return [CPU]
        case reasons.INSUFFICIENT_MEMORY_QUOTA:
            return [MEMORY]
        case reasons.INSUFFICIENT_DEVICE_QUOTA:
            return [figure.key for figure in figures if "deviceclass/" in figure.key and figure.missing]
        case _:
            cards = set(asked.alternatives) if asked is not None else set[str]()
            short = [figure.key for figure in figures if figure.missing and figure.key not in (CPU, MEMORY)]
            return sorted(short, key=lambda key: key not in cards)


def _together(ledger: Ledger, entry: Entry) -> list[Entry]:
    for unit in finish(units_of(ledger, entry.queue)):
        if unit.lacks_members and any(one.pod.uid == entry.pod.uid for one in unit.entries):
            return list(unit.entries)
    return [entry]


def _raised(case: Case, key: str) -> Found | None:
    """The smallest raise of a key that lifts the pod; where none does, the smallest after which it is not for want of it."""
    whatif = case.whatif
    with whatif.made(case.change):
        entry = case.current
        now = next((one for one in shortest_for(whatif.ledger, [case.obstacle]) if one.key == key), None)
        queue = whatif.ledger.queues.get(entry.queue if now is None else now.queue)
        sums = _sums(whatif.ledger, entry, key, entry.queue if now is None else now.queue)
    if queue is None or now is None or now.limit is None:
        return None
    amounts = [total for total in (now.used + some - now.limit for some in sums) if total > 0]
    tried: dict[int, Hold | None] = {}

    def lifts(more: int) -> bool:
        if more not in tried:
            changed = with_limit(queue, key, now.limit + more if now.limit is not None else more)
            tried[more] = case.hold if changed is None else case.outcome(case.change.queue(changed))
        return tried[more] is None

    best = _first(amounts, lifts)
    if best is None:
        past = (more for more, hold in sorted(tried.items()) if hold is not None and _past(hold, case.hold))
        best = next(past, None)
    changed = None if best is None else with_limit(queue, key, now.limit + best)
    if best is None or changed is None:
        return None
    return Found(_step(queue, changed, now, best), case.change.queue(changed), tried[best])


def _past(hold: Hold, before: Hold) -> bool:
    """Whether the pod waits for something else by now."""
    return hold.why.code != before.why.code or hold.behind != before.behind


def _step(queue: Queue, changed: Queue, now: Figure, more: int) -> Step:
    limit = (now.limit or 0) + more
    if not ("deviceclass/" in now.key or now.key in (CPU, MEMORY)):
        limit = whole(limit)
    told = f"{amount(now.key, now.limit or 0)} -> {amount(now.key, limit)}"
    text = f"raise the quota of queue {queue.name} for {now.key} by {amount(now.key, more)} ({told})"
    return Step(
        "raise",
        text,
        object=f"Queue {queue.name}",
        key=now.key,
        amount=more,
        total=limit,
        command=command(queue.name, now.key, changed),
    )


def _first(amounts: Sequence[int], lifts: Callable[[int], bool]) -> int | None:
    """The least amount that lifts, looked for one by one; far ahead in strides, where the least one is not looked for."""
    for more in amounts[:_ONE_BY_ONE]:
        if lifts(more):
            return more
    rest = amounts[_ONE_BY_ONE:]
    if not rest or not lifts(rest[-1]):
        return None
    low, high = 0, len(rest) - 1
    while low < high:
        middle = (low + high) // 2
        if lifts(rest[middle]):
            high = middle
        else:
            low = middle + 1
    return rest[high]


def _sums(ledger: Ledger, entry: Entry, key: str, level: str) -> list[int]:
    """Whatever those up to a pod in line may take of a key together, from the least to the most.

    The least raise that lets it in leaves nothing over, so it is one of these. Of the limit of a queue above, `level`, those
    in other queues below it may take as well, whoever comes first.
    """
    others = [
        name for name in ledger.accounts if name != entry.queue and level in ledger.with_those_above(name)
    ]
    asks: list[int] = []
    for queue in [*others, entry.queue]:
        for unit in finish(units_of(ledger, queue)):
            for one in unit.entries:
                asks += [figure.asked for figure in shortest_for(ledger, [one]) if figure.key == key]
            if any(one.pod.uid == entry.pod.uid for one in unit.entries):
                break
    unit_of_all = gcd(*asks) if asks else 0
    if not unit_of_all:
        return []
    if sum(asks) // unit_of_all > _MOST_SUMS:
        return sorted({*asks, sum(asks)})
    bits = 1
    for ask in asks:
        bits |= bits << (ask // unit_of_all)
    return [unit_of_all * place for place in _places(bits)]


def _places(bits: int) -> Iterator[int]:
    text = bin(bits)[:1:-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)

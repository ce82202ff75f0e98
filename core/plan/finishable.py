"""Whether a gang that was let in and stopped short can get further at all: by what its queues allow, were all others gone."""

from typing import Final

from core.least import Asks
from core.queues.amounts import Amounts, add
from core.queues.check import Balance, balance_of, chain_problem
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, Steps

_JUDGED_IN_A_STEP: Final = 50
"""Members whose limits are looked at in about half a millisecond."""

_OF_CARDS: Final = "cards"
"""What members ask for of cards, whichever serve them."""

_Rooms = dict[tuple[str, str], int]
"""How much there would be of a card in a queue."""


def may_finish(ledger: Ledger, group: str) -> Steps[bool]:
    """Whether the limits of the queues leave room for what an unfinished group lacks, were all others gone.

    They do when enough members fit each by itself, and those that ask for least fit into what is left of all the cards
    that serve any of them, and of CPU, memory, shares and devices one by one. That is not to say that all fit together: a gang
    with choices may still be let down. But where they do not, nothing that others give back gets it there.
    """
    limits = _LimitsAlone(ledger)
    waiting: list[Entry] = []
    pace = Pace(_JUDGED_IN_A_STEP)
    for entry in ledger.entries_of(group):
        if pace.due():
            yield
        if entry.stage is Stage.WAITING:
            waiting.append(entry)
        else:
            limits.hold(entry)
    fitting: list[Entry] = []
    rooms: _Rooms = {}
    asked = Asks[str]()
    for entry in waiting:
        if pace.due():
            yield
        found = limits.rooms(entry)
        if found is not None:
            rooms |= found
            fitting.append(entry)
            asked.add({_OF_CARDS: entry.demand.card.milli} if entry.demand.card is not None else {})
    missing = ledger.groups.lacks(group)
    if len(fitting) < missing:
        return False
    least = yield from asked.least(missing)
    if least.get(_OF_CARDS, 0) > sum(max(0, milli) for milli in rooms.values()):
        return False
    return (yield from limits.fit_together(fitting, missing))


class _LimitsAlone:
    """The limits that the checks of single pods go by, with nothing taken of them but by the members that `hold` was told of."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._devices = ledger.devices.alone()
        self._charged: dict[str, dict[str, int]] = {}
        self._cpu_memory: dict[str, dict[str, int]] = {}
        self._balances: dict[str, Balance | None] = {}

    def hold(self, entry: Entry) -> None:
        """Counts what a member has that does not wait, in its queue and in those above."""
        for level in self._ledger.with_those_above(entry.queue):
            add(self._charged.setdefault(level, {}), entry.charged, 1)
            add(self._cpu_memory.setdefault(level, {}), entry.demand.cpu_memory, 1)
        if self._devices is not None:
            self._devices.hold(entry.pod.uid)

    def rooms(self, entry: Entry) -> _Rooms | None:
        """How much there would be of each card that may serve a waiting member; None when nothing lets it in."""
        ledger, demand = self._ledger, entry.demand
        queue = ledger.queues.get(entry.queue)
        kept_out = not entry.allowed or bool(ledger.stages.other_gates(entry.pod))
        closed = queue is not None and not queue.open
        if demand.problem or kept_out or closed or chain_problem(ledger, entry.queue):
            return None
        if self._devices is not None and not self._devices.fits(entry.pod.uid):
            return None
        balance = self._balance(entry.queue)
        if balance is None:
            # Without cards it may be let in all the same.
            return None if demand.card is not None else {}
        if balance.share_shortfall(demand.shares) is not None:
            return None
        if demand.card is None:
            return {}
        milli, beside = demand.card.milli, demand.cpu_memory
        cards = [card for card in demand.card.alternatives if balance.covers(card, milli, beside)]
        return {(entry.queue, card): balance.card_room(card) for card in cards} or None

    def fit_together(self, entries: list[Entry], count: int) -> Steps[bool]:
        """Whether `count` of these members fit that ask for least of CPU and memory, of shares and of devices, of each by itself.

        Members of several queues are not added up.
        """
        queue = entries[0].queue if entries else ""
        weights, shares = Asks[str](), Asks[str]()
        pace = Pace(_JUDGED_IN_A_STEP)
        for entry in entries:
            if pace.due():
                yield
            if entry.queue != queue:
                return True
            weights.add(entry.demand.cpu_memory if entry.demand.card is not None else {})
            shares.add(entry.demand.shares)
        balance = self._balance(queue)
        if balance is not None:
            needed, parts = (yield from weights.least(count)), (yield from shares.least(count))
            if balance.cpu_memory_shortfall(needed) or balance.share_shortfall(parts):
                return False
        if self._devices is None:
            return True
        return (yield from self._devices.fit_together((entry.pod.uid for entry in entries), count))

    def _balance(self, queue: str) -> Balance | None:
        if queue not in self._balances:
            live = balance_of(self._ledger, queue)
            self._balances[queue] = live.alone(self._taken) if live is not None else None
        return self._balances[queue]

    def _taken(self, level: str) -> tuple[Amounts, Amounts]:
        return self._charged.get(level, {}), self._cpu_memory.get(level, {})

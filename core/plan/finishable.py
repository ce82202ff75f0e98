"""Whether a gang that was let in and stopped short can get further at all: by what its queues allow, were all others gone."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from core.least import Asks
from core.plan.one_card import HeldCards
from core.queues.amounts import Amounts, add
from core.queues.check import Balance, balance_of, chain_problem
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, Steps, in_order

_JUDGED_IN_A_STEP: Final = 20
"""Members, and cards that would serve them, whose limits are looked at in about half a millisecond."""

_COUNTED_IN_A_STEP: Final = 250
"""Sizes of members that are compared with what there would be of a card, in as long."""

_OF_CARDS: Final = "cards"
"""What members ask for of cards, whichever serve them."""

_Place = tuple[str, str]
"""A queue and a card."""

_Rooms = dict[_Place, int]
"""How much there would be of a card in a queue."""


def may_finish(ledger: Ledger, group: str) -> Steps[bool]:
    """Whether the limits of the queues leave room for what an unfinished group lacks, were all others gone.

    They do when enough members fit each by itself, of each task that lacks some too, the cards that the settings leave them
    have room for so many, see `_Fitting`, and those that ask for least fit into what is left of CPU, memory, shares and devices
    one by one. That is not to say that all fit together: a gang with choices may still be let down. But where they do not,
    nothing that others give back gets it there.
    """
    found = ledger.group(group)
    progress = ledger.groups.progress(found) if found is not None else None
    limits, held = _LimitsAlone(ledger), HeldCards(found, progress, ledger.settings)
    waiting: list[Entry] = []
    pace = Pace(_JUDGED_IN_A_STEP)
    for entry in ledger.entries_of(group):
        if pace.due():
            yield
        if entry.stage is Stage.WAITING:
            waiting.append(entry)
        elif not entry.pod.deleting:
            # One that is being deleted will be gone as others are, and does not count in the group any more.
            limits.hold(entry)
            if entry.demand.card is not None:
                held.add(entry, entry.demand.card.card)
    needed = _needed(ledger, group)
    fitting = {task: _Fitting() for task in needed}
    for entry in waiting:
        if pace.due(max(1, len(entry.demand.cards))):
            yield
        rooms = limits.rooms(entry, held.left(entry))
        if rooms is not None:
            for task in fitting.keys() & {None, entry.pod.task}:
                fitting[task].add(entry, rooms, held.bond(entry))
    for task, count in needed.items():
        fit = yield from fitting[task].suffice(count)
        if not fit or not (yield from limits.fit_together(fitting[task].entries, count)):
            return False
    return True


def _needed(ledger: Ledger, group: str) -> Mapping[str | None, int]:
    """How many members a group lacks: of each task with a minimum of its own, and under None in all."""
    needed: dict[str | None, int] = {None: ledger.groups.lacks(group)}
    found = ledger.group(group)
    if found is not None:
        needed.update(ledger.groups.progress(found).missing_tasks)
    return needed


class _Takers:
    """Members, by the cards that may serve them and how much they ask for; with `one_card` all of them get the same."""

    def __init__(self, *, one_card: bool = False) -> None:
        self._one_card = one_card
        self._count = 0
        self._sizes: defaultdict[_Place, Counter[int]] = defaultdict(Counter)

    def add(self, places: Iterable[_Place], milli: int, number: int) -> None:
        """So many more, each of whom asks for so much of one of these."""
        self._count += number
        for place in places:
            self._sizes[place][milli] += number

    def served(self, rooms: _Rooms, pace: Pace) -> Steps[int]:
        """How many there is room for, of each card by itself; those of a card that ask for least come first."""
        served = Counter[str]()
        for (queue, card), sizes in self._sizes.items():
            if pace.due(len(sizes)):
                yield
            served[card] += yield from _number(sizes, rooms[queue, card])
        return max(served.values(), default=0) if self._one_card else min(self._count, served.total())


def _number(sizes: Counter[int], room: int) -> Steps[int]:
    """How many of these sizes go into a room, the smallest first."""
    number = 0
    for size in (yield from in_order(tuple(sizes), int, _COUNTED_IN_A_STEP)):
        fit = min(sizes[size], room // size) if size else sizes[size]
        number, room = number + fit, room - fit * size
    return number


class _Fitting:
    """Members each of which fits by itself, and whether the cards may have room for so many of them at once.

    Never too few are found to fit, and not too many either where all ask for as much of the same cards. Those who accept a card
    are compared with what there would be of it, and once more by themselves those who have a choice in common. Where members of
    several sizes, or with choices that overlap, are in each other's way only the search finds out.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._rooms: _Rooms = {}
        self._asked = Asks[str]()
        self._without_cards = 0
        self._alike = Counter[tuple[Hashable, tuple[_Place, ...], int]]()

    def add(self, entry: Entry, rooms: _Rooms, bond: Hashable) -> None:
        """One more, what there would be of the cards that may serve it, and what it has in common with those who get the same."""
        self.entries.append(entry)
        asked = entry.demand.card
        self._asked.add({_OF_CARDS: asked.milli} if asked is not None else {})
        if asked is None:
            self._without_cards += 1
        else:
            self._rooms |= rooms
            self._alike[bond, tuple(rooms), asked.milli] += 1

    def suffice(self, count: int) -> Steps[bool]:
        """Whether there may be room for so many of them at once."""
        if len(self.entries) < count:
            return False
        least = yield from self._asked.least(count)
        if least.get(_OF_CARDS, 0) > sum(self._rooms.values()):
            return False
        return self._without_cards + (yield from self._served()) >= count

    def _served(self) -> Steps[int]:
        everybody, kinds = _Takers(), dict[Hashable, _Takers]()
        pace = Pace(_COUNTED_IN_A_STEP)
        for (bond, places, milli), number in self._alike.items():
            if pace.due(len(places)):
                yield
            kind = places if bond is None else bond
            for takers in (everybody, kinds.setdefault(kind, _Takers(one_card=bond is not None))):
                takers.add(places, milli, number)
        by_kind = 0
        for takers in kinds.values():
            by_kind += yield from takers.served(self._rooms, pace)
        return min(by_kind, (yield from everybody.served(self._rooms, pace)))


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

    def rooms(self, entry: Entry, cards: Iterable[str]) -> _Rooms | None:
        """How much there would be of each of these cards that would do for a waiting member; None when nothing lets it in."""
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
        fit = [card for card in cards if balance.covers(card, milli, beside)]
        return {(entry.queue, card): max(0, balance.card_room(card)) for card in fit} or None

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

"""Which members of a group get the same card.

Those of a gang that ask for the same do where one card serves them: Volcano's scheduler takes what a node has refused to one
pod of a task for refused to all of them, so members of one task that wait for different cards may never start. Members to come
get the card that those before them have. Where no card serves them all they are spread over several, or wait with the setting
`multiCardTask: single`.

With the setting `multiCardJob: uniform` all pods of a gang, or of a Volcano Job, have to be served by one card. The pods of a
Deployment have a PodGroup too, but nothing that binds them together.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from core import reasons
from core.cards.expression import BAR, split
from core.objects import Group
from core.plan.confinement import Confinement, named, task_named
from core.plan.decision import Lift, Spread
from core.plan.lineup import Member
from core.plan.scarcity import least
from core.plan.trial import NO_CARD
from core.queues.attribution import is_job
from core.queues.check import Balance
from core.queues.entry import Entry
from core.queues.group_minimum import Progress
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.stage import Stage
from core.steps import Pace, Steps, batched, first_of

_IN_ONE_STEP: Final = 250

_TOLD: Final = 3
"""Tasks, and cards, that are named in a message."""

Ask = tuple[str, tuple[str, ...]]
"""The task of a member, and the cards that would serve it."""


class Members(Protocol):
    """What of core.plan.units.Unit is asked."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Those that wait."""

    @property
    def group(self) -> Group | None:
        """Their group; None for a pod alone."""

    @property
    def progress(self) -> Progress | None:
        """How far that is."""


class HeldCards:
    """The cards that members of one group have got; `add` keeps it up to date while others are let in.

    With `multiCardJob: uniform` they are those of any member, else those of members that ask for the same.
    """

    def __init__(self, group: Group | None, progress: Progress | None, settings: Settings) -> None:
        self.together = _bound_together(group, progress)
        """Whether anything binds the pods of the group together."""
        self.uniform = self.together and settings.cards.multi_card_job == "uniform"
        self.single = self.together and settings.cards.multi_card_task == "single"
        self._group = group
        self._gang = progress is not None and not progress.minimum.alone
        self._volcano = settings.volcano.scheduler_names
        self._cards: dict[Ask | None, dict[str, None]] = {}

    def add(self, entry: Entry, card: str) -> None:
        """A member has got this card; of one that was never let in it may be a whole expression."""
        if self.uniform:
            # A pod that lost its gate without our record may still land on any of its cards.
            self._cards.setdefault(None, {}).update(dict.fromkeys(split(card)))
        elif self.together and BAR not in card and (ask := ask_of(entry)) is not None and card in ask[1]:
            self._cards.setdefault(ask, {})[card] = None

    def of(self, ask: Ask | None) -> tuple[str, ...]:
        """The cards that members of this ask have got, sorted; with `uniform` those of all."""
        return tuple(sorted(self._cards.get(None if self.uniform else ask, ())))

    def confinement(self, entry: Entry) -> Confinement | None:
        """What binds a member that is looked at alone; None while its choice is open."""
        ask = ask_of(entry)
        cards = self.of(ask) if self.uniform or ask is not None else ()
        if not cards:
            return None
        if self.uniform:
            return Confinement(cards, "uniform")
        return Confinement(cards, "single" if self.single else "first", "" if ask is None else ask[0])

    def left(self, entry: Entry) -> tuple[str, ...]:
        """The cards that the settings leave to a member."""
        asked, confined = entry.demand.card, self.confinement(entry)
        if asked is None:
            return ()
        return (
            asked.alternatives
            if confined is None or confined.by == "first"
            else confined.narrowed(asked).alternatives
        )

    def bond(self, entry: Entry) -> Hashable:
        """What is equal of members that have to get one card, whichever that is; None of who may get any that is left."""
        if self.uniform:
            return ()
        ask = ask_of(entry)
        return ask if self.single and not self.of(ask) else None

    def lifted(self, entry: Entry, lift: Lift) -> Lift:
        """Takes in a lift; it comes back with what there is to say when it is the one that spreads a task."""
        ask = ask_of(entry)
        before = self.of(ask)
        for card in lift.assigned:
            self.add(entry, card)
        cards = self.of(ask)
        told = len(cards) > 1 and cards != before and not self.uniform
        if self._group is None or ask is None or not told or not self._is_looked_at_by_task(entry):
            return lift
        text = (
            f"Queue <{lift.queue}>: the pods of {task_named(ask[0])} get {named(cards)}, for none of these serves them all; "
            f"scheduler {entry.pod.scheduler_name} may start none of them unless predicateErrorCacheEnable is false for its "
            "actions allocate, backfill, preempt and reclaim. cards.multiCardTask: single has such pods wait for one card"
        )
        return replace(lift, spread=Spread(self._group, text))

    def _is_looked_at_by_task(self, entry: Entry) -> bool:
        """Whether the scheduler may take what is true of one pod of the task for true of those that have to start with it."""
        return self._gang and entry.pod.scheduler_name in self._volcano


def ask_of(entry: Entry) -> Ask | None:
    """What makes members alike; None for one without a choice."""
    card = entry.demand.card
    return None if card is None or len(card.alternatives) < 2 else (entry.pod.task, card.alternatives)


def held_cards(ledger: Ledger, unit: Members) -> Steps[HeldCards]:
    """What the members of a unit's group have got: those that are lifted or bound."""
    held = HeldCards(unit.group, unit.progress, ledger.settings)
    if unit.group is None or not held.together or not (held.uniform or (yield from _any_chooses(unit))):
        return held
    for number, uid in enumerate(ledger.members_of(unit.group.key), 1):
        entry = ledger.entry(uid)
        if entry is not None and entry.stage is not Stage.WAITING and entry.demand.card is not None:
            held.add(entry, entry.demand.card.card)
        if number % _IN_ONE_STEP == 0:
            yield
    return held


def _any_chooses(unit: Members) -> Steps[bool]:
    found = yield from first_of(unit.entries, lambda entry: ask_of(entry) is not None, _IN_ONE_STEP)
    return found is not None


def _bound_together(group: Group | None, progress: Progress | None) -> bool:
    if group is None or progress is None:
        return False
    return not progress.minimum.alone or is_job(group.owner)


def ways(held: HeldCards, members: list[Member], *, lacking: bool = False) -> Steps[list[list[Member]]]:
    """The ways in which the search may look at a gang, best first.

    First members that ask for the same get the card that others have already, or else one for all of them; then one for all of
    those who are to come; then any. With `single` only the first. Where something is `lacking` however the cards are dealt
    out, they need not be.
    """
    if held.uniform:
        usable = yield from cards_of(members)
        common = held.of(None)
        cards = [card for card in usable if not common or card in common]
        found: list[list[Member]] = []
        for card in cards or [NO_CARD]:
            way = yield from _confined(members, card)
            found.append(way)
        return found
    if lacking or (yield from first_of(members, _chooses, _IN_ONE_STEP)) is None:
        return [members]
    asks: Counter[Ask] = Counter()
    pace = Pace(_IN_ONE_STEP)
    for some in batched(members, _IN_ONE_STEP):
        if pace.due(len(some)):
            yield
        asks.update(map(_ask, some))
    following: list[Member] = []
    bonded: list[Member] = []
    any_follows = any_bond = False
    for some in batched(members, _IN_ONE_STEP):
        if pace.due(len(some)):
            yield
        bound = [_bonded(member, asks) for member in some]
        led = [_following(*pair, held) for pair in zip(some, bound, strict=True)]
        any_follows, any_bond = any_follows or led != bound, any_bond or bound != some
        following += led
        bonded += bound
    if held.single:
        return [following]
    return [following, *([bonded] if any_follows else ()), *([members] if any_bond else ())]


def cards_of(members: Sequence[Member]) -> Steps[dict[str, None]]:
    """The cards that would serve any of them, in the order in which they are named."""
    cards: dict[str, None] = {}
    pace = Pace(_IN_ONE_STEP)
    for member in members:
        if pace.due(len(member.alternatives)):
            yield
        cards.update(dict.fromkeys(member.alternatives))
    cards.pop(NO_CARD, None)
    return cards


def one_card_missing(
    held: HeldCards,
    entries: Sequence[Entry],
    wanted: int,
    wanted_tasks: Mapping[str, int],
    balance: Balance | None,
) -> Steps[Refusal]:
    """Why `wanted` members wait that several cards would serve: what would have to come free of one, in whole cards."""
    sizes: dict[Ask, list[int]] = {}
    tasks: Counter[str] = Counter()
    pace = Pace(_IN_ONE_STEP)
    for entry in entries:
        if pace.due():
            yield
        tasks[entry.pod.task] += 1
        if (ask := ask_of(entry)) is not None and entry.demand.card is not None:
            sizes.setdefault(ask, []).append(entry.demand.card.milli)
    lacking: list[str] = []
    for ask, asked in sizes.items():
        # So many of them have to be in, whoever else is.
        others = max(
            wanted - (len(entries) - len(asked)), wanted_tasks.get(ask[0], 0) - (tasks[ask[0]] - len(asked))
        )
        cards = held.of(ask) or ask[1]
        if others > (0 if held.of(ask) else 1) or len(sizes) == 1:
            need = -(-(yield from least(asked, max(1, others))) // 1000)
            either = " or ".join(
                f"{need} of <{card}> ({_left(balance, card)} left)" for card in cards[:_TOLD]
            )
            lacking.append(f"{task_named(ask[0])} needs {either}")
    queue = balance.queue if balance is not None else ""
    text = (
        f"Queue <{queue}>: with cards.multiCardTask: single the pods of a task get one card, and none has enough left in the "
        f"queue's quota and on nodes: {'; '.join(lacking[:_TOLD]) or 'several tasks compete for them'}"
    )
    return Refusal(reasons.MIXED_CARDS, text)


def _left(balance: Balance | None, card: str) -> int:
    """Whole cards that are left of a queue's quota, and of those above."""
    left = 0 if balance is None else balance.card_room(card)
    return max(0, left // 1000)


def _ask(member: Member) -> Ask:
    return member.task, member.alternatives


def _chooses(member: Member) -> bool:
    return len(member.alternatives) > 1


def _following(member: Member, bonded: Member, held: HeldCards) -> Member:
    cards = held.of(_ask(member)) if _chooses(member) else ()
    if not cards:
        return bonded
    return replace(member, alternatives=tuple(card for card in member.alternatives if card in cards))


def _bonded(member: Member, asks: Mapping[Ask, int]) -> Member:
    ask = _ask(member)
    return replace(member, bond=ask) if _chooses(member) and asks[ask] > 1 else member


def _confined(members: Sequence[Member], card: str) -> Steps[list[Member]]:
    found: list[Member] = []
    for number, member in enumerate(members, 1):
        if number % _IN_ONE_STEP == 0:
            yield
        if member.alternatives == (NO_CARD,):
            found.append(member)
        elif card in member.alternatives:
            found.append(replace(member, alternatives=(card,)))
    return found

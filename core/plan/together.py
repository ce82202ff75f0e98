"""What is decided on a PodGroup as a whole: its first admission, and the members that it lacks until its minimum."""

from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from operator import attrgetter
from typing import Any, Final, Protocol

from core import reasons
from core.objects import Group
from core.plan.attempt import Attempt
from core.plan.awaited import Awaited, note
from core.plan.choice import Choice
from core.plan.decision import Decision, Hold, Lift
from core.plan.declared import declared_shortfall
from core.plan.gang import Assignment
from core.plan.lineup import Member
from core.plan.one_card import HeldCards, cards_of, held_cards, one_card_missing, ways
from core.plan.scarcity import Means, means_of
from core.plan.task_nodes import (
    ANYWHERE,
    TaskNodes,
    led_apart,
    nodes_of_tasks,
    starts_in_cycles,
)
from core.plan.trial import LedgerTrial, OvertakenError, member_of
from core.plan.units import Unit
from core.plan.verdict import Told, Verdict, at_odds, explained, hold_all, lacking_of_tasks, nothing_common
from core.queues.check import balance_of
from core.queues.entry import Entry
from core.queues.group_minimum import Progress
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.steps import CutShortError, Pace, Steps, batched, first_of

_IN_ONE_STEP: Final = 50

_TOLD_IN_A_STEP: Final = 100
_LIFTED_IN_A_STEP: Final = 8

_OTHER_NODES: Final = 6
"""So often a gang is searched for again with a task on one node."""

_COPIED_IN_A_STEP: Final = 250
"""Members of which nothing is found out any more."""


class Members(Protocol):
    """What of core.plan.judge.Judge is asked about single members."""

    def prepare(self, card: str) -> Steps[None]:
        """See Judge.prepare."""

    def obstacle(self, entry: Entry) -> Hold | None:
        """See Judge.obstacle."""

    def lift(self, entry: Entry, card: str | None, together: int = 1, task: TaskNodes = ANYWHERE) -> Lift:
        """See Judge.lift."""

    def lift_apart(self, entry: Entry, lift: Lift, *, nominated: bool) -> Lift:
        """See Judge.lift_apart."""


class Gangs:
    """Decides on groups: `judge` knows about their members one by one."""

    def __init__(
        self,
        ledger: Ledger,
        choice: Choice,
        judge: Members,
    ) -> None:
        self._ledger = ledger
        self._choice = choice
        self._judge = judge

    def decide(self, unit: Unit, told: Told, leavings: list[list[Any]]) -> Steps[list[Decision] | None]:
        """What is decided on the group; the members left over are looked at one by one.

        None when the group is not any more what it was when this began, or is left for another one, which `told` says then.
        `leavings` takes what is not needed any more afterwards, and costs time to be freed.
        """
        group, ledger = unit.group, self._ledger
        assert group is not None
        pace = Pace(_COPIED_IN_A_STEP)
        for some in batched(unit.entries, _COPIED_IN_A_STEP):
            if pace.due(len(some)):
                yield
            if any(ledger.current(entry) is None for entry in some):
                return None
        balance = balance_of(ledger, unit.queue)
        if group.card_request and balance is not None and ledger.queues[unit.queue].open:
            awaited = yield from Awaited.by_all(unit.entries)
            shortfall = declared_shortfall(ledger, unit, balance)
            if shortfall is not None:
                note(ledger, awaited, {shortfall.code})
                return (yield from hold_all(unit.entries, group, shortfall))
        if not unit.lacks_members:
            return []
        try:
            return (yield from self._gang(unit, group, told, leavings))
        except OvertakenError:
            return None

    def _gang(
        self, unit: Unit, group: Group, told: Told, leavings: list[list[Any]]
    ) -> Steps[list[Decision] | None]:
        """Lifts as many members as the group lacks, all at once, or holds every one of them.

        Members beyond that number are left to be decided on one by one.
        """
        progress = unit.progress
        assert progress is not None
        held: list[Decision] = []
        ready: list[Entry] = []
        for number, entry in enumerate(unit.entries, 1):
            hold = self._judge.obstacle(entry)
            if hold is None:
                ready.append(entry)
            else:
                held.append(hold)
            if number % _IN_ONE_STEP == 0:
                yield
        wanted = max(progress.missing, sum(progress.missing_tasks.values()))
        of_tasks = yield from lacking_of_tasks(ready, progress)
        if not progress.possible or len(ready) < wanted or of_tasks:
            only = "only " if len(ready) < wanted else ""
            text = (
                f"Queue <{unit.queue}>: {group.title} needs {wanted} more members at once, with {only}"
                f"{len(ready)} ready{of_tasks}{at_odds(self._ledger, unit.queue, group)}"
            )
            all_held = yield from hold_all(ready, group, Refusal(reasons.GANG_INCOMPLETE, text))
            return [*held, *all_held]
        awaited = yield from Awaited.by_all(ready)
        found = yield from self._found(unit, ready, awaited.cards, wanted, progress, told, leavings)
        if not isinstance(found, Verdict):
            return [*held, *found]
        note(self._ledger, awaited, found.obstacles)
        all_held = yield from hold_all(ready, group, explained(found, group, wanted))
        return [*held, *all_held]

    def _found(
        self,
        unit: Unit,
        ready: Sequence[Entry],
        cards: AbstractSet[str],
        wanted: int,
        progress: Progress,
        told: Told,
        leavings: list[list[Any]],
    ) -> Steps[list[Lift] | Verdict]:
        """The lifts of the members that fit together, or why they do not, as far as known without another search."""
        with self._ledger.wakeups.searching(unit.queue, cards):
            means = yield from means_of(balance_of(self._ledger, unit.queue), ready, wanted)
            members = yield from self._members(ready, means)
            leavings.append(members)
            for card in (yield from cards_of(members)):
                yield from self._judge.prepare(card)
            held = yield from held_cards(self._ledger, unit)
            nodes = yield from self._nodes(ready, progress.counted + wanted)
            looked_at = yield from ways(held, members, lacking=bool(means.lacking))
            leavings += looked_at
            attempt = Attempt(looked_at, members, wanted, progress, means, nodes)
            return (yield from self._as_known(unit, ready, attempt, held, told))

    def _as_known(
        self,
        unit: Unit,
        ready: Sequence[Entry],
        attempt: Attempt,
        held: HeldCards,
        told: Told,
    ) -> Steps[list[Lift] | Verdict]:
        """What another gang was told that asks for the same, or what the search finds."""
        wish = yield from attempt.wish()
        if wish in told.verdicts:
            known = told.verdicts[wish]
            if known is None:
                told.for_another = True
                raise OvertakenError
            return known
        # Unless the search comes to its end, the next one for the same would not either.
        told.verdicts[wish] = None
        try:
            found = yield from self._searched(unit, ready, attempt, held)
        except OvertakenError:
            told.verdicts.pop(wish, None)
            raise
        if isinstance(found, Verdict):
            told.verdicts[wish] = found
        else:
            told.verdicts.pop(wish, None)
        return found

    def _nodes(self, ready: Sequence[Entry], together: int) -> Steps[Mapping[str, TaskNodes]]:
        def concerned(entry: Entry) -> bool:
            return entry.pod.asks_mgpu and starts_in_cycles(self._ledger, entry.pod, together)

        first = yield from first_of(ready, concerned, _COPIED_IN_A_STEP)
        return {} if first is None else nodes_of_tasks(self._ledger, first.pod)

    def _together(
        self,
        members: Sequence[Member],
        attempt: Attempt,
        trial: LedgerTrial,
        nodes: dict[str, TaskNodes],
    ) -> Steps[Assignment]:
        """What comes of one way; what was chosen stays booked, each task of Volcano's scheduler on one node if it can be.

        `nodes` are those that the trial looks at. Of a task that no node of those which were found for it takes whole each
        member is nominated for its node, unless one of the gang has others displaced.
        """
        outcome = yield from attempt.search(members, trial)
        tried = 0
        for task, found in (yield from self._apart(trial, attempt)).items():
            before = nodes.get(task, ANYWHERE)
            for node in found:
                if tried == _OTHER_NODES:
                    break
                tried += 1
                yield from trial.give_all_back()
                nodes[task] = TaskNodes((node,))
                outcome = yield from attempt.search(members, trial)
                if outcome.chosen:
                    break
                nodes[task] = before
        if not outcome.chosen and tried:
            outcome = yield from attempt.search(members, trial)
        apart = yield from self._apart(trial, attempt)
        if apart:
            yield from self._nominated(trial, apart)
        if outcome.chosen and attempt.means.lacking:
            # What was lacking has come free, and the gang was looked at as one that cannot be let in.
            raise OvertakenError
        return outcome

    def _nominated(self, trial: LedgerTrial, tasks: Container[str]) -> Steps[None]:
        """Has each member of these tasks go to its own node."""
        lifts = tuple(trial.lifts.values())
        # Volcano's scheduler displaces nobody for a gang of which some are nominated for nodes that take them as they are.
        displacing = yield from first_of(lifts, attrgetter("displaces"), _COPIED_IN_A_STEP)
        anew = partial(self._judge.lift_apart, nominated=displacing is None)
        pace = Pace(_LIFTED_IN_A_STEP)
        for lift in lifts:
            if lift.pod.task in tasks:
                if pace.due():
                    yield
                yield from trial.lift_again(lift, anew)

    def _apart(self, trial: LedgerTrial, attempt: Attempt) -> Steps[Mapping[str, Sequence[str]]]:
        lifts = tuple(trial.lifts.values())
        if (yield from first_of(lifts, lambda lift: lift.pod.asks_mgpu, _COPIED_IN_A_STEP)) is None:
            return {}
        together = attempt.together
        return (
            yield from led_apart(
                lift
                for lift in lifts
                if lift.pod.asks_mgpu and starts_in_cycles(self._ledger, lift.pod, together)
            )
        )

    def _members(self, ready: Sequence[Entry], means: Means) -> Steps[list[Member]]:
        members: list[Member] = []
        for entry in ready:
            members.append(member_of(self._ledger, entry, tight=means.tight))
            if len(members) % _IN_ONE_STEP == 0:
                yield
        return members

    def _searched(
        self, unit: Unit, ready: Sequence[Entry], attempt: Attempt, held: HeldCards
    ) -> Steps[list[Lift] | Verdict]:
        ledger, outcome, exhausted = self._ledger, Assignment(), False
        wanted, means = attempt.wanted, attempt.means
        lifts: list[Lift] | None = None

        nodes = dict(attempt.nodes)

        def shortfall_of(entry: Entry, card: str) -> Steps[Refusal | None]:
            within = nodes.get(entry.pod.task, ANYWHERE).within
            return self._choice.shortfall(balance_of(ledger, entry.queue), entry, card, within)

        def lift(entry: Entry, card: str) -> Lift:
            task = nodes.get(entry.pod.task, ANYWHERE)
            return self._judge.lift(entry, card or None, attempt.together, task)

        entries = yield from _by_uid(ready)
        assert unit.group is not None
        trial = LedgerTrial(ledger, entries, shortfall_of, lift, group=unit.group.key, version=unit.version)
        try:
            for members in attempt.ways:
                outcome = yield from self._together(members, attempt, trial, nodes)
                exhausted = exhausted or outcome.exhausted
                if outcome.chosen:
                    ledger.wakeups.publish(unit.queue)
                    lifts = yield from self._lifts(trial, outcome, entries, held)
                    return lifts
            most, mixed = trial.most, False
            if held.single and not (means.lacking or exhausted):
                # It is only to be told whether they wait for one card, or for any at all.
                mixed = yield from attempt.fits(attempt.members, trial)
        except (CutShortError, OvertakenError):
            yield from trial.give_all_back()
            raise
        finally:
            # What is left is left by a pass that was given up.
            if lifts is None:
                trial.drop()
        shortfall = trial.shortfall or nothing_common(unit.queue, wanted)
        if not means.tight and (yield from means_of(balance_of(ledger, unit.queue), ready, wanted)).tight:
            # Somebody else took CPU or memory meanwhile, and members were taken for alike that are not.
            raise OvertakenError
        if mixed:
            balance = balance_of(ledger, unit.queue)
            tasks = attempt.progress.missing_tasks
            shortfall = yield from one_card_missing(held, ready, wanted, tasks, balance)
        obstacles = means.lacking | trial.obstacles | {shortfall.code}
        return Verdict(shortfall, most, exhausted and not means.lacking, frozenset(obstacles))

    def _lifts(
        self, trial: LedgerTrial, outcome: Assignment, entries: Mapping[str, Entry], held: HeldCards
    ) -> Steps[list[Lift]]:
        found: list[Lift] = []
        pace = Pace(_TOLD_IN_A_STEP)
        for some in batched(outcome.chosen, _TOLD_IN_A_STEP):
            if pace.due(len(some)):
                yield
            uids = [each.member.uid for each in some]
            self._ledger.devices.tell_again(uids)
            found += [held.lifted(entries[uid], trial.lifts[uid]) for uid in uids]
        return found


def _by_uid(entries: Sequence[Entry]) -> Steps[dict[str, Entry]]:
    found: dict[str, Entry] = {}
    pace = Pace(_COPIED_IN_A_STEP)
    for entry in entries:
        if pace.due():
            yield
        found[entry.pod.uid] = entry
    return found

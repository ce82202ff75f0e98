"""One quota pass: pods in their order, each against what is left, lifted or held with a reason.

What is lifted is assumed in the ledger at once, so the next pod sees it. The caller does the writes and takes back
(`Ledger.forget`) what failed.

A pass may be paused between any two of its steps, and the ledger may change meanwhile: what was booked stays booked, what is
decided is decided by what is there then, and what has changed since it was looked at is left for later.
"""

from collections.abc import Iterable
from contextlib import closing
from typing import Final

from core import names
from core.plan.choice import Choice
from core.plan.course import Courses, Decisions
from core.plan.decision import Decision, Lift
from core.plan.effort import Cuts
from core.plan.judge import Judge
from core.plan.kept_back import KeptBack
from core.plan.rotation import Rotation
from core.plan.units import queues_to_finish
from core.queues.check import balance_of
from core.queues.ledger import Ledger
from core.queues.share import share_of
from core.steps import Steps, finish, in_order

_RANKED_IN_ONE_STEP: Final = 25
_SORTED_IN_ONE_STEP: Final = 100


class Planner:
    """Decides on waiting pods, one queue after the other, against the ledger as it is at that moment.

    Of one planner no two passes may be under way at once.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._choice = Choice(ledger)
        self._judge = Judge(ledger, self._choice)
        self._cuts = Cuts()
        self._courses = Courses(ledger, self._judge, self._choice, self._cuts)
        self._kept = KeptBack(ledger)

    def run(self, queues: Iterable[str]) -> Decisions:
        """One pass over these queues, in their order, and those that are woken meanwhile; None wherever it may be paused.

        Each queue, and in it each pod or gang, has its part of the effort that a pass may cost. A queue that needs more goes
        on after the others; a pod or gang that does is looked at again in the next pass, with four times as much. One that may
        need more than a whole pass has comes after all others.
        """
        yield from self._ledger.settle()
        self._courses.drop_unused()
        self._cuts.drop_unused()
        turns = Rotation(self._ledger.wakeups, self._courses, self._cuts, self._kept, self._ordered)
        yield from self._knowingly(turns.run(queues))

    def _knowingly(self, decisions: Decisions) -> Decisions:
        """The same; after each pause it is found out first who of those left behind in it holds something.

        Here, so that nobody's part of the effort is spent on what somebody else has changed.
        """
        with closing(decisions):
            for decision in decisions:
                self._cuts.steps += decision is None
                yield decision
                yield from self._ledger.sift()

    def order(self, queues: Iterable[str]) -> list[str]:
        """The order in which queues are served: priority, then the smaller share in use, then name.

        Before all others those with a gang that stopped short of its minimum: what it lacks on the nodes, or of what it
        shares with other queues, must not go to them. See also KeptBack.
        """
        return finish(self._ordered(queues))

    def decide(self, name: str) -> list[Decision]:
        """Decides on every waiting pod of a queue, in their order, without a pause or a limit.

        What is lifted is assumed in the ledger.
        """
        finish(self._ledger.settle())
        decisions = self._courses.decide(self._courses.turn(name, None))
        return [decision for decision in decisions if decision is not None]

    def refuse(self, uid: str, why: str) -> None:
        """Holds a pod whose lift the API server refuses, with this reason, until `accept`."""
        self._judge.refused[uid] = why

    def accept(self, uid: str) -> None:
        """Lets a pod be lifted again."""
        self._judge.refused.pop(uid, None)

    def stands(self, lift: Lift) -> bool:
        """Whether a lift that is not written yet may still be: the queue is the same, takes pods in and is within its quota.

        One that was decided for the pod alone may not once the pod has to wait for its PodGroup, or for other members; nor may
        those of a gang that turn out to name one that is not there, while none of them is in; nor one beyond what the group's
        tasks must have, when they do not get that.

        What is lifted is counted, so a quota that was cut meanwhile is found here. Never is asked more than when it was
        decided, or the same would be decided and taken back for ever.
        """
        if not (lift.pod.asks or self._ledger.devices.wanted(lift.pod)):
            return True
        entry, seen = self._ledger.entry(lift.pod.uid), self._ledger.observed(lift.pod.uid)
        if entry is None or seen is None:
            return False
        if names.GANG_ANNOTATION not in lift.records:
            if not self._judge.goes_alone(seen):
                return False
        elif (
            seen.gang is not None
            and self._ledger.missing_group(seen) is not None
            and not self._ledger.others_are_in(seen)
        ):
            return False
        group = self._ledger.group_of(seen) if lift.beyond else None
        if group is not None:
            progress = self._ledger.groups.progress(group)
            if progress.cut or progress.missing_tasks:
                return False
        # What is booked carries the record already; the pod as it is says which queue it would be decided for now. While its
        # PodGroup is away nobody knows, and others of the gang may have been let in by then.
        known = not seen.group_name or self._ledger.pod_group_of(seen) is not None
        if known and self._ledger.attribution(seen).queue != lift.queue:
            return False
        if self._ledger.devices.obstacle(seen, lift.queue) is not None:
            return False
        return self._judge.closed(entry) is None and not self._choice.breaks_quota(
            balance_of(self._ledger, lift.queue), entry, lift.assigned
        )

    def _ordered(self, queues: Iterable[str]) -> Steps[list[str]]:
        first = yield from queues_to_finish(self._ledger)
        ranks: dict[str, tuple[bool, int, float, str]] = {}
        for number, name in enumerate(queues, 1):
            queue = self._ledger.queues.get(name)
            priority = queue.priority if queue is not None else 0
            ranks[name] = name not in first, -priority, share_of(self._ledger, name), name
            if number % _RANKED_IN_ONE_STEP == 0:
                yield
        for name in first.keys() & ranks.keys():
            self._kept.expect(name, first[name])
        return (yield from in_order(list(ranks), ranks.__getitem__, _SORTED_IN_ONE_STEP))

"""One queue's turn in a pass: what has been said in it so far, and who is first in line."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from core import reasons
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Ration
from core.plan.precedent import Precedent
from core.plan.remembered import Answers
from core.plan.verdict import Told
from core.steps import Pace, Steps, let_go

T = TypeVar("T")

_FREED_IN_A_STEP: Final = 500
"""Pods of which what was made of them is freed in half a millisecond."""

_OF_ITS_OWN: Final = frozenset(
    {
        reasons.CLAIM_NOT_FOUND,
        reasons.LIFT_REFUSED,
        reasons.OTHER_GATES,
        reasons.POD_GROUP_NOT_FOUND,
        reasons.QUEUE_NOT_ALLOWED,
    }
)


@dataclass(slots=True)
class Turn:
    """One queue's turn in a pass; without `ration` everybody is decided on, whatever that costs."""

    queue: str
    fifo: bool
    ration: Ration | None
    answers: Answers
    patient: bool = True
    """Whether nobody is decided on before those who come first; see core.plan.patience."""
    resting: bool = False
    """Whether it may be left for another queue at this pause: nothing is tried, and no question is under way."""
    put_off: bool = False
    """Whether anybody was left to be looked at again."""
    waits: bool = False
    """Whether one of them waits for his turn in the next pass, and not for all others to have had theirs."""
    fell_short: bool = False
    """Whether the last one that was left needs more effort than there was, and nothing but that."""
    head: Hold | None = None
    """The first pod of a fifo queue that was held; nobody behind it is lifted."""
    undecided_head: bool = False
    """Whether others are left to a later turn, for who comes before them could not be decided on now."""
    first_decided: bool = False
    """Whether nobody is left who comes before all others."""
    told: dict[Hashable, Hold] = field(default_factory=dict)
    """What pods that ask for the same were told, until a lift changes what is left."""
    granted: dict[Hashable, Precedent | None] = field(default_factory=dict)
    """What the last one that was let in of those who ask for the same was granted; None where that is no precedent."""
    told_gangs: Told = field(default_factory=Told)
    """The same of gangs."""
    leavings: list[list[Any]] = field(default_factory=list)
    """What is not needed any more and is to be let go of in steps."""

    def rest(self, item: T) -> Iterator[T]:
        """This item, and a pause at which other queues may come to their turn."""
        self.resting = True
        yield item
        self.resting = False

    def rests(self, steps: Steps[T]) -> Steps[T]:
        """These steps, of which each may be followed by another queue's turn."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            yield from self.rest(None)

    def clear_up(self) -> Steps[None]:
        """Lets go of what is left."""
        pace = Pace(_FREED_IN_A_STEP)
        for items in self.leavings:
            if pace.due(len(items)):
                yield
            yield from let_go(items, _FREED_IN_A_STEP)
        self.leavings.clear()

    def go_on(self, ration: Ration) -> None:
        """Has another ration from now on, for those who are still to be decided on."""
        if self.ration is not None:
            ration.units, ration.costly, ration.waits, ration.most = (
                self.ration.units,
                self.ration.costly,
                self.ration.waits,
                self.ration.most,
            )
        self.ration = ration

    def expect(self, units: int) -> None:
        """So many are to be decided on."""
        if self.ration is not None:
            self.ration.units = units

    def waits_for(self, *, first: bool) -> bool:
        """Whether others are left to a later turn for somebody who could not be decided on; `first` is one who comes before them."""
        self.undecided_head = self.undecided_head or (first and self.patient)
        return self.undecided_head

    def leaves(self, *, fell_short: bool, waits: bool) -> None:
        """Takes note of somebody who is left to be looked at again."""
        self.put_off = True
        self.waits = self.waits or waits
        self.fell_short = fell_short

    def puts_off(self) -> bool:
        """Leaves somebody to be looked at again; whether those behind him are left to a later turn for that."""
        self.leaves(fell_short=False, waits=True)
        return self.waits_for(first=self.fifo)

    def heard(self, decisions: Iterable[Decision], *, of_gang: bool = False, stuck: bool = False) -> None:
        """Takes in what was decided, in order.

        A gang holds up a fifo queue when it waits for quota or cards, but not when it waits for its own members, nor when it is
        stuck, see `Unit`; nobody does who waits for other gates, a PodGroup or a claim, who may not use the queue, or of whom the
        API server, or somebody's webhook, refuses the write.
        """
        for decision in decisions:
            if isinstance(decision, Lift):
                self.told.clear()
                self.told_gangs.verdicts.clear()
            elif self.fifo and self.head is None and not stuck and _in_line(decision, of_gang=of_gang):
                self.head = decision


def _in_line(hold: Hold, *, of_gang: bool) -> bool:
    """Whether a pod waits for what those behind it want as well.

    Not one that waits for something of its own: whoever holds that back would hold up the queue for as long as he likes. A
    member does because the gang as a whole does.
    """
    if hold.why.code in _OF_ITS_OWN:
        return False
    return not of_gang or (hold.group is not None and hold.why.code != reasons.GANG_INCOMPLETE)

"""One queue's turn in a pass: what has been said in it so far, and who is first in line."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from core import reasons
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Ration
from core.plan.together import Verdict


@dataclass(slots=True)
class Turn:
    """One queue's turn in a pass; without `ration` everybody is decided on, whatever that costs."""

    queue: str
    fifo: bool
    ration: Ration | None
    head: Hold | None = None
    """The first pod of a fifo queue that was held; nobody behind it is lifted."""
    undecided_head: bool = False
    """Whether the first pod of a fifo queue could not be decided on now."""
    told: dict[Hashable, Hold] = field(default_factory=dict)
    """What pods that ask for the same were told, until a lift changes what is left."""
    told_gangs: dict[Hashable, Verdict] = field(default_factory=dict)
    """The same of gangs."""

    def expect(self, units: int) -> None:
        """So many are to be decided on."""
        if self.ration is not None:
            self.ration.units = units

    def heard(self, decisions: Iterable[Decision], *, of_gang: bool = False) -> None:
        """Takes in what was decided, in order.

        A gang holds up a fifo queue when it waits for quota or cards, but not when it waits for its own members. Who may not
        use the queue holds up nobody.
        """
        for decision in decisions:
            if isinstance(decision, Lift):
                self.told.clear()
                self.told_gangs.clear()
            elif self.fifo and self.head is None and _is_in_line(decision, of_gang=of_gang):
                self.head = decision


def _is_in_line(hold: Hold, *, of_gang: bool) -> bool:
    return hold.reason != reasons.QUEUE_NOT_ALLOWED and (not of_gang or _waits_for_others(hold))


def _waits_for_others(hold: Hold) -> bool:
    """Whether this member waits because the gang as a whole does, and not because the gang is not complete."""
    return hold.group is not None and hold.reason != reasons.GANG_INCOMPLETE

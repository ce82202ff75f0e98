"""One queue's turn in a quota pass."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Effort
from core.plan.together import Verdict


@dataclass(slots=True)
class Turn:
    """One queue's turn in a pass. `effort` is its part of `of_pass`."""

    queue: str
    effort: Effort
    of_pass: Effort
    fifo: bool
    head: Hold | None = None
    """The first pod of a fifo queue that was held; nobody behind it is lifted."""
    undecided_head: bool = False
    """Whether the first pod of a fifo queue could not be decided on now."""
    units: int = 0
    """How many are still to be decided on."""
    told: dict[Hashable, Hold] = field(default_factory=dict)
    """What pods that ask for the same were told, until a lift changes what is left."""
    told_gangs: dict[Hashable, Verdict] = field(default_factory=dict)
    """The same of gangs."""

    def heard(self, decisions: Iterable[Decision]) -> None:
        """Takes in what was decided, in order."""
        for decision in decisions:
            if isinstance(decision, Lift):
                self.told.clear()
                self.told_gangs.clear()
            elif self.fifo and self.head is None:
                self.head = decision

    def spend(self, steps: int) -> None:
        """One unit more is decided on, in so many steps."""
        self.units = max(1, self.units - 1)
        self.effort.spend(steps)
        self.of_pass.spend(steps)

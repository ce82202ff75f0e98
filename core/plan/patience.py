"""For how long a queue stands still for somebody who comes before others in it, and on whom nothing can be decided.

A gang that changes while it is decided on has to be decided on anew, and meanwhile nobody gets what it may need: not who comes
after it in its queue, nor, with quotas that hold through the tree of queues, who is below the same queue. That somebody changes
it for ever must not keep the others for ever.
"""

from collections import Counter
from collections.abc import Container
from typing import Final

MOST: Final = 32
"""So many turns of a queue in a row may end so. Those in which somebody needed more effort than there was are not counted: he is decided
on one day, see core.plan.effort."""


class Patience:
    """Counts by queue, not by gang: it is of no use to make the gang anew, or to have several."""

    def __init__(self) -> None:
        self._in_vain: Counter[str] = Counter()

    def lasts(self, queue: str) -> bool:
        """Whether a turn that begins now may end so as well; else the others of the queue are decided on in it all the same."""
        return self._in_vain[queue] < MOST

    def over(self, queue: str, *, undecided: bool) -> None:
        """A turn has come to its end; `undecided` says that others were left for somebody on whom nothing was decided."""
        if undecided:
            self._in_vain[queue] += 1
        else:
            self._in_vain.pop(queue, None)

    def keep(self, queues: Container[str]) -> None:
        """Forgets all other queues."""
        for queue in [queue for queue in self._in_vain if queue not in queues]:
            del self._in_vain[queue]

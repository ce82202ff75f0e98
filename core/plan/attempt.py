"""One try to lift members of a gang together: who is looked at, in which ways, and how many have to fit."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.plan.gang import Assignment, assign
from core.plan.lineup import Member, one_of_each
from core.plan.scarcity import Means
from core.plan.task_nodes import TaskNodes
from core.plan.trial import LedgerTrial
from core.queues.group_minimum import Progress
from core.steps import Pace, Steps, batched

_COUNTED_IN_A_STEP: Final = 250
"""Members of which nothing is found out any more."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The members of a gang, the ways in which they are looked at, and how many have to fit."""

    ways: Sequence[Sequence[Member]]
    members: Sequence[Member]
    wanted: int
    progress: Progress
    means: Means
    nodes: Mapping[str, TaskNodes]
    """Where those of its tasks are that are on their way, by task."""

    def wish(self) -> Steps[Hashable]:
        """What decides about a gang besides what is left: gangs of an equal one are told the same."""
        kinds: list[Hashable] = []
        pace = Pace(_COUNTED_IN_A_STEP)
        for way in self.ways:
            counted = Counter[Hashable]()
            for some in batched(way, _COUNTED_IN_A_STEP):
                if pace.due(len(some)):
                    yield
                counted.update((member.kind, member.alternatives, member.bond) for member in some)
            kinds.append(frozenset(counted.items()))
        nodes = frozenset(self.nodes.items())
        return self.wanted, tuple(sorted(self.progress.missing_tasks.items())), tuple(kinds), nodes

    @property
    def together(self) -> int:
        """How many have to be in for any of them to be of use."""
        return self.progress.counted + self.wanted

    def search(self, members: Sequence[Member], trial: LedgerTrial) -> Steps[Assignment]:
        """What comes of one way; what was chosen stays booked."""
        # Where it is certain that they do not fit, it is only to be told how far they got.
        budget = (yield from one_of_each(members)) if self.means.lacking else None
        return (yield from assign(members, self.wanted, self.progress.missing_tasks, trial, budget=budget))

    def fits(self, members: Sequence[Member], trial: LedgerTrial) -> Steps[bool]:
        """Whether anything comes of one way; nothing stays booked."""
        outcome = yield from self.search(members, trial)
        yield from trial.give_all_back()
        return bool(outcome.chosen)

"""What waiting pods and gangs were told in earlier passes, kept until something happens that may help them.

So a queue that is looked at again because somebody in it was put off, or is new, costs what those cost.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.objects import Pod
from core.plan.confinement import Confinement
from core.plan.decision import Hold
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Steps, batched, finish

_RECALLED_IN_A_STEP: Final = 100
"""Pods of a gang: half a millisecond."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was told to pods that were in this state, and what had been of help to their queue until then."""

    entries: Sequence[Entry]
    confined: Confinement | None
    helped: int
    holds: Sequence[Hold]


class Remembered:
    """The answers of all queues, as the last pass over each of them has left them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._answers: dict[str, dict[Hashable, _Answer]] = {}

    def __len__(self) -> int:
        """How many answers are kept."""
        return sum(len(answers) for answers in self._answers.values())

    def begin(self, queue: str) -> "Answers":
        """A pass comes to a queue."""
        return Answers(self._ledger, queue, self._answers)

    def drop_unused(self) -> None:
        """Drops the answers of queues in which nobody is."""
        for queue in [queue for queue in self._answers if queue not in self._ledger.accounts]:
            del self._answers[queue]


class Answers:
    """The answers of one queue: those of the last pass over it, and those of this one, which take their place in the end."""

    def __init__(self, ledger: Ledger, queue: str, kept: dict[str, dict[Hashable, _Answer]]) -> None:
        self._ledger = ledger
        self._queue = queue
        self._kept = kept
        self._before = kept.get(queue, {})
        self._now: dict[Hashable, _Answer] = {}

    def end(self, *, whole: bool) -> None:
        """The pass is done with it; what was not asked for is dropped if it has come to all that wait there."""
        kept = self._now if whole else self._before | self._now
        if kept:
            self._kept[self._queue] = kept
        else:
            self._kept.pop(self._queue, None)

    def recall(
        self, key: Hashable, entries: Sequence[Entry], confined: Confinement | None = None
    ) -> Sequence[Hold]:
        """What these very pods would be told again, which are few; nothing where that is not certain."""
        return finish(self.recalled(key, entries, confined)) if key in self._before else ()

    def recalled(
        self, key: Hashable, entries: Sequence[Entry], confined: Confinement | None = None
    ) -> Steps[Sequence[Hold]]:
        """The same of any number of them."""
        answer, holds = self._before.get(key), list[Hold]()
        if answer is None or answer.confined != confined or len(answer.entries) != len(entries):
            return ()
        newest: dict[str, Pod] = {}
        for pairs in batched(tuple(zip(answer.entries, entries, strict=True)), _RECALLED_IN_A_STEP):
            if newest:
                yield
            if any(old is not new and not old.alike(new) for old, new in pairs):
                return ()
            newest.update((entry.pod.uid, entry.pod) for _, entry in pairs)
        for some in batched(answer.holds, _RECALLED_IN_A_STEP):
            if holds:
                yield
            holds += [replace(hold, pod=newest[hold.pod.uid]) for hold in some]
        if answer.helped != self._ledger.wakeups.helped(self._queue):
            return ()
        self._now[key] = answer
        return holds

    def keep(
        self,
        key: Hashable,
        entries: Sequence[Entry],
        helped: int,
        holds: Sequence[Hold],
        confined: Confinement | None = None,
    ) -> None:
        """Takes note of what these pods were told; `helped` as it was when that began to be found out."""
        self._now[key] = _Answer(entries, confined, helped, holds)

"""What waiting pods and gangs were told in earlier passes, kept until something happens that may help them.

So a queue that is looked at again because somebody in it was put off, or is new, costs what those cost.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from core.plan.confinement import Confinement
from core.plan.decision import Hold
from core.queues.entry import Entry
from core.queues.ledger import Ledger


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
        """What these very pods would be told again; nothing where that is not certain."""
        answer = self._before.get(key)
        if answer is None or answer.helped != self._ledger.wakeups.helped(self._queue):
            return ()
        same = len(answer.entries) == len(entries) and all(
            old is new or old.alike(new) for old, new in zip(answer.entries, entries, strict=True)
        )
        if not same or answer.confined != confined:
            return ()
        self._now[key] = answer
        newest = {entry.pod.uid: entry.pod for entry in entries}
        return [replace(hold, pod=newest[hold.pod.uid]) for hold in answer.holds]

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

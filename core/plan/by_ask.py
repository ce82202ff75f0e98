"""What was found out about shares that pods ask for; of pods that are gone next to nothing stays."""

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from core.mgpu.ask import MgpuAsk

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByAsk(Generic[K, V]):
    """Answers by what is asked. It goes with the last pod that asks for it, see `mgpu_ask`: none of them may hold on to it.

    All are forgotten rather than that more than `limit` are kept, save those about what was asked last.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._answers: WeakKeyDictionary[MgpuAsk, dict[K, V]] = WeakKeyDictionary()
        self._noted = 0
        """Since all were forgotten: no less than are kept."""

    def __len__(self) -> int:
        return sum(map(len, self._answers.values()))

    def about(self, ask: MgpuAsk) -> dict[K, V]:
        """What is known about it; new answers are given to `note`."""
        if self._noted >= self._limit:
            self.clear()
        answers = self._answers.get(ask)
        if answers is None:
            answers = self._answers[ask] = {}
        return answers

    def note(self, answers: dict[K, V], key: K, answer: V) -> None:
        """One more answer about something."""
        answers[key] = answer
        self._noted += 1

    def clear(self) -> None:
        """Nothing is known any more."""
        self._answers.clear()
        self._noted = 0

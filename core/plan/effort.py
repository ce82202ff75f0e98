"""How much work a pass may put into one queue, and into one pod or gang of it, so that a costly one costs itself.

Work is counted in the steps of core.steps, about half a millisecond each. Whoever is decided on without a pause costs none.
"""

from collections.abc import Callable, Container, Hashable
from typing import Final, TypeVar

from core.steps import Steps, cut_short

T = TypeVar("T")

OF_A_PASS: Final = 1_000
"""Steps, about half a second: so long the last queue may have to wait for the costly ones before it."""

OF_A_UNIT: Final = 8
"""Steps that everybody is given who is begun: less would hardly ever do."""

MOST_TIMES: Final = 7
"""So often somebody's part grows while others wait, to 16,384 steps: one or two seconds, as those of long searches are. Who needs
more waits until nobody does."""
PASSED_OVER: Final = 1_000
"""So many passes in a row, some ten seconds at least; then he is given as much once more, for it may have become less that he needs."""

_DOUBLINGS: Final = 40
_REMEMBERED: Final = 4096
"""Who was cut and has gone since is not told; so many are kept at the most."""


class Effort:
    """Steps that may still be taken, dealt out in equal parts to those who have not had theirs; what one leaves is for all."""

    def __init__(self, steps: int) -> None:
        self.total = steps
        self.left = steps

    def part(self, among: int) -> int:
        """The part of one of so many, a step at least while any is left: so each pass gets somewhere."""
        return max(1, self.left // max(1, among)) if self.left > 0 else 0

    def spend(self, steps: int) -> None:
        """Takes off what was used."""
        self.left -= steps


class Ration:
    """What one queue may spend of a pass, on so many units.

    `costly` may take as much as it needs unless others wait (`waits`); it has its turn after all others have had theirs.
    """

    def __init__(
        self,
        of_pass: Effort,
        steps: int,
        costly: Hashable = None,
        waits: Callable[[], bool] = lambda: True,
    ) -> None:
        self.of_pass = of_pass
        self.costly = costly
        self.waits = waits
        self.units = 0
        """How many are still to be decided on."""
        self._own = Effort(steps)

    @property
    def fair(self) -> int:
        """The part of the next unit."""
        part = self._own.part(self.units)
        return max(OF_A_UNIT, part) if part else 0

    def spare(self) -> None:
        """One unit more is decided on, for nothing."""
        if self.units > 1:
            self.units -= 1

    def spend(self, steps: int) -> None:
        """One unit more is decided on, in so many steps."""
        self.units = max(1, self.units - 1)
        self._own.spend(steps)
        self.of_pass.spend(steps)


class Cuts:
    """Who was cut short, and how often in a row.

    The part of such a one is four times as large each time, so that what was done in vain is little beside what was not.
    Who may need more than a whole pass has is not begun before all others have been decided on (`costly`), and who needs more
    than anybody may have (`MOST_TIMES`) hardly ever while others wait.
    """

    def __init__(self) -> None:
        self._times: dict[Hashable, int] = {}
        self._costly: dict[Hashable, str] = {}
        self._passed_over = 0

    def new_pass(self) -> Effort:
        """What a pass may cost."""
        return Effort(OF_A_PASS)

    def take_costly(self, but_of: Container[str], *, others_wait: bool) -> tuple[Hashable, str] | None:
        """Who comes after all others, and its queue, none of these; of several the one that has waited longest."""
        for key, queue in self._costly.items():
            if queue not in but_of and not (others_wait and self._passes_over(key)):
                return key, self._costly.pop(key)
        return None

    def needs_more(self, key: Hashable) -> bool:
        """Whether all that anybody may have while others wait has not sufficed."""
        return self._times.get(key, 0) > MOST_TIMES

    def _passes_over(self, key: Hashable) -> bool:
        if not self.needs_more(key):
            return False
        self._passed_over = (self._passed_over + 1) % PASSED_OVER
        if self._passed_over:
            return True
        self._times[key] = MOST_TIMES
        return False

    def limited(
        self, key: Hashable, queue: str, steps: Steps[T], ration: Ration
    ) -> Steps[tuple[T | None, int]]:
        """What is decided within the part that is due, and in how many steps; None when that does not suffice."""
        most = self._part(key, ration.fair)
        if key == ration.costly:
            most = ration.of_pass.total if self.needs_more(key) else max(most, ration.of_pass.total)
            value, taken = yield from _limited(steps, most, ration.waits)
        else:
            if most > ration.of_pass.total:
                self._costly[key] = queue
                most = 0
            most = min(most, max(ration.fair, ration.of_pass.left))
            value, taken = yield from _limited(steps, most, lambda: True)
        ration.spend(taken)
        if value is not None:
            self._times.pop(key, None)
            self._costly.pop(key, None)
        elif 0 < most < taken:
            self._cut(key)
        return value, taken

    def spare(self, key: Hashable, ration: Ration) -> None:
        """Takes note of one who was decided on for nothing."""
        ration.spare()
        if key in self._times:
            del self._times[key]
        if key in self._costly:
            del self._costly[key]

    def _part(self, key: Hashable, fair: int) -> int:
        times = self._times.get(key, 0)
        return max(1, fair) << min(2 * times, _DOUBLINGS) if times else fair

    def _cut(self, key: Hashable) -> None:
        times = self._times.pop(key, 0)
        if len(self._times) >= _REMEMBERED:
            del self._times[next(iter(self._times))]
        self._times[key] = times + 1


def _limited(steps: Steps[T], most: int, waits: Callable[[], bool]) -> Steps[tuple[T | None, int]]:
    """What the steps come to, and how many they were; None as the first when they are more than `most`, and others wait."""
    taken = 0
    try:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value, taken
            taken += 1
            if taken > most and waits():
                for _ in cut_short(steps):
                    taken += 1
                    yield
                # Once nothing is left for anybody, those who are put off would follow each other without a pause.
                yield
                return None, taken
            yield
    finally:
        steps.close()

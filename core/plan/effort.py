"""How much work a pass may put into one queue, and into one pod or gang of it, so that a costly one costs itself.

Work is counted in the steps of core.steps, about half a millisecond each. Whoever is decided on without a pause costs none.
"""

from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from core.steps import Steps, cut_short

T = TypeVar("T")

OF_A_PASS: Final = 1_000
"""Steps, about half a second: so long the last queue may have to wait for the costly ones before it."""

OF_A_UNIT: Final = 8
"""Steps that everybody is given who is begun: less would hardly ever do."""

MOST_TIMES: Final = 7
"""So often somebody's part grows at first, to 16,384 steps: one or two seconds, as those of long searches are."""
AS_OFTEN: Final = 16
"""So often it stays as large. Who has found out something about nodes does not find it out again in the next try, so that hardly
anybody needs more. Then it grows again, for everybody is to be decided on one day."""
APART: Final = 4
"""While others wait, so many times as many steps as a try may take come before it, and that for each who waits for one."""
SHORT: Final = 4_096
"""Not before one of so few steps: most of those who are costly need no more. Others wait for it for 0.2 to 0.8 seconds, as a step is
0.05 to 0.2 milliseconds in practice, and for two where each is as long as it may be."""

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

    `costly` may take as much as it needs unless others wait (`waits`), then this `most`; it has its turn after all others have had
    theirs.
    """

    def __init__(
        self,
        of_pass: Effort,
        steps: int,
        costly: Hashable = None,
        waits: Callable[[], bool] = lambda: True,
        most: int = 0,
    ) -> None:
        self.of_pass = of_pass
        self.costly = costly
        self.waits = waits
        self.most = most
        self.fell_short = False
        """Whether the last one that was begun needs more than there was for it, and was what it had been the time before."""
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


@dataclass(slots=True)
class _Cut:
    """How often somebody was cut short in a row, when that was last, and what he was then."""

    times: int
    steps: int
    state: object


class Costly(NamedTuple):
    """Who comes after all others, its queue, and how many steps it may take though others wait."""

    key: Hashable
    queue: str
    most: int


class Cuts:
    """Who was cut short, and how often in a row.

    The part of such a one is four times as large each time, so that everybody ends one day, and what was done in vain is
    little beside what was not.
    Who may need more than a whole pass has is not begun before all others have been decided on (`costly`): where nobody waits, for
    as long as that is so, and else now and then (`APART`), so that all of them together take a small part of the work. Where
    only others like him wait each has his part in turn, so that nobody waits for the end of one that needs very much.
    """

    def __init__(self) -> None:
        self.steps = 0
        """Of all passes until now."""
        self._cuts: dict[Hashable, _Cut] = {}
        self._costly: dict[Hashable, tuple[str, int]] = {}
        """Their queues, and the pass in which they were met last."""
        self._pass = 0

    def drop_unused(self) -> None:
        """A pass begins: who was not met in the last one is gone, or is met again."""
        self._costly = {key: known for key, known in self._costly.items() if known[1] == self._pass}
        self._pass += 1

    def new_pass(self) -> Effort:
        """What a pass may cost."""
        return Effort(OF_A_PASS)

    def take_costly(self, but_of: Container[str], *, others_wait: bool) -> Costly | None:
        """Who comes after all others, in none of these queues; of several the one that has waited longest."""
        among = len(self._costly)
        for key, (queue, _) in self._costly.items():
            most = self._due(key, among)
            if queue not in but_of and (most or not others_wait):
                del self._costly[key]
                return Costly(key, queue, most)
        return None

    def limited(
        self, key: Hashable, queue: str, steps: Steps[T], ration: Ration, state: object = None
    ) -> Steps[tuple[T | None, int]]:
        """What is decided within the part that is due, and in how many steps; None when that does not suffice.

        Who is in another `state` than when he was cut short may need less by now: he has the part of one who never was.
        """
        changed, fair, last = self._has_changed(key, state), ration.fair, key == ration.costly
        if last:
            most, part = ration.most, self._grown(key)

            def waits(taken: int) -> bool:
                nonlocal most
                if ration.waits():
                    return True
                if taken <= part or not self._costly:
                    return False
                # Others that come last wait for nobody else, so the part counts as had, though it was not due.
                most = part
                return True

            value, taken, ended = yield from _limited(steps, most, waits)
        else:
            most = self._part(key, fair)
            if most > ration.of_pass.total:
                self._costly[key] = queue, self._pass
                most = fair if changed else 0
            most = min(most, max(fair, ration.of_pass.left))
            value, taken, ended = yield from _limited(steps, most, lambda _: True)
        ration.spend(taken)
        ration.fell_short = not (ended or changed)
        if value is not None:
            self._cuts.pop(key, None)
            self._costly.pop(key, None)
        elif most and ration.fell_short and (last or fair):
            # In another one's turn there is no part, and who is cut short in it needs no more for that.
            self._cut(key, state)
            if last:
                self._costly[key] = queue, self._pass
        elif most and last and key in self._cuts:
            # Whoever changes it in each try has no more of them.
            self._cuts[key].steps = self.steps
        return value, taken

    def spare(self, key: Hashable, ration: Ration) -> None:
        """Takes note of one who was decided on for nothing."""
        ration.spare()
        if key in self._cuts:
            del self._cuts[key]
        if key in self._costly:
            del self._costly[key]

    def is_costly(self, key: Hashable) -> bool:
        """Whether somebody comes after all others."""
        return key in self._costly

    def _has_changed(self, key: Hashable, state: object) -> bool:
        cut = self._cuts.get(key)
        if cut is None or cut.state == state:
            return False
        cut.times, cut.state = min(cut.times, MOST_TIMES), state
        return True

    def _part(self, key: Hashable, fair: int) -> int:
        cut = self._cuts.get(key)
        return max(1, fair) << min(2 * cut.times, _DOUBLINGS) if cut is not None else fair

    def _grown(self, key: Hashable) -> int:
        """The part of one that comes after all others."""
        cut = self._cuts.get(key)
        if cut is None:
            return OF_A_PASS
        times = min(cut.times, max(MOST_TIMES, cut.times - AS_OFTEN))
        return max(OF_A_PASS, 1 << min(2 * times, _DOUBLINGS))

    def _due(self, key: Hashable, among: int) -> int:
        """The same of so many while others wait; none as long as his last try is not long enough ago."""
        cut, part = self._cuts.get(key), self._grown(key)
        if cut is None:
            return part
        return part if part <= SHORT or self.steps - cut.steps >= APART * part * among else 0

    def _cut(self, key: Hashable, state: object) -> None:
        cut = self._cuts.pop(key, None)
        if len(self._cuts) >= _REMEMBERED:
            forgotten = next(iter(self._cuts))
            del self._cuts[forgotten]
            self._costly.pop(forgotten, None)
        self._cuts[key] = _Cut(1 if cut is None else cut.times + 1, self.steps, state)


def _limited(steps: Steps[T], most: int, waits: Callable[[int], bool]) -> Steps[tuple[T | None, int, bool]]:
    """What the steps come to, how many they were, and whether they came to their end.

    None as the first when they did not: they are more than `most`, and others wait, which may go by how many they are.
    """
    taken = 0
    try:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value, taken, True
            taken += 1
            if taken > most and waits(taken):
                for _ in cut_short(steps):
                    taken += 1
                    yield
                # Once nothing is left for anybody, those who are put off would follow each other without a pause.
                yield
                return None, taken, False
            yield
    finally:
        steps.close()

"""Work that may be paused: a generator that yields wherever its driver may let others come to their turn.

Whoever drives one decides when to pause. Between two steps lies about half a millisecond of work at the most, so that a
driver that looks at its clock after each of them is never late by more. Meanwhile the books may change: whoever yields leaves everything of its own complete before, and looks again after.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""What comes to a T in the end. To be composed with `yield from`."""


def batched(items: Sequence[T], count: int) -> Iterator[Sequence[T]]:
    """The items in pieces of so many, for work that may be paused between two of them."""
    for start in range(0, len(items), count):
        yield items[start : start + count]


def each(items: Sequence[T], do: Callable[[T], object], at_once: int) -> Steps[None]:
    """Does something with each of the items, so many of them in a step."""
    for some in batched(items, at_once):
        for item in some:
            do(item)
        yield


def first_of(items: Iterable[T], wanted: Callable[[T], object], at_once: int) -> Steps[T | None]:
    """The first item that is wanted, None where none is; so many are looked at in a step."""
    pace = Pace(at_once)
    for item in items:
        if pace.due():
            yield
        if wanted(item):
            return item
    return None


def let_go(items: list[Any] | set[Any] | dict[Any, Any], at_once: int) -> Steps[None]:
    """Empties what is not needed any more: to free very many items in one piece takes long."""
    pop: Callable[[], object] = items.popitem if isinstance(items, dict) else items.pop
    while len(items) > at_once:
        for _ in range(at_once):
            pop()
        yield
    items.clear()


def in_order(items: Sequence[T], key: Callable[[T], Any], at_once: int) -> Steps[list[T]]:
    """The items as `sorted` has them, so many of them in a step. Pieces that are in order already cost a look at each item."""
    runs: list[list[T]] = []
    for piece in batched(items, at_once):
        if runs:
            yield
        run = sorted(piece, key=key)
        if runs and key(runs[-1][-1]) <= key(run[0]):
            runs[-1] += run
        else:
            runs.append(run)
    if len(runs) < 2:
        return runs[0] if runs else []
    return (yield from merged(runs, key, at_once))


def merged(runs: Sequence[Sequence[T]], key: Callable[[T], Any], at_once: int) -> Steps[list[T]]:
    """The items of all these, each of which is in order, so many of them in a step; of equal ones those of the first come first."""
    found: list[T] = []
    for item in merge(*runs, key=key):
        found.append(item)
        if len(found) % at_once == 0:
            yield
    return found


def finish(steps: Steps[T]) -> T:
    """Runs to the end, for callers that need no pauses."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class CutShortError(Exception):
    """Thrown into steps that are not to come to anything any more: they put in order what is theirs, in steps as well."""


def cut_short(steps: Steps[object]) -> Steps[None]:
    """Ends steps that are under way, with a pause wherever they need one to put things in order."""
    try:
        steps.throw(CutShortError)
        while True:
            yield
            next(steps)
    except (CutShortError, StopIteration):
        return
    finally:
        steps.close()


@dataclass(slots=True)
class Pace:
    """Counts pieces of work so small that a step is many of them."""

    step: int
    done: int = 0
    _until: int = 0

    def due(self, pieces: int = 1) -> bool:
        """Counts what comes next; whether to yield before it, so that a step has at most `step` pieces or is just one."""
        self.done += pieces
        if self.done <= self._until:
            return False
        first = not self._until
        self._until = self.done - pieces + self.step
        return not first

"""Answers that need searches, for whoever is not to wait for them in one piece.

An answer is worked out by functions that know nothing of pauses, and the few of them that search long are deep within. So one that comes upon
a search longer than its allowance is given up, the search goes on in steps, and the answer is begun anew with what it came to.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from inspect import GEN_RUNNING, getgeneratorstate
from math import inf
from typing import Any, Final, Generic, TypeVar

from core.steps import Steps

T = TypeVar("T")

PAUSE: Final = 25
"""Search steps between two pauses, about half a millisecond."""
AT_ONCE: Final = 100
"""Search steps that an answer takes without a pause, all its searches together: nearly all come to their end in far fewer."""
_BEGUN_MOST: Final = 300
"""So often an answer is begun; then it is worked out in one piece. It needs no more unless what it goes by changes all the time."""
_OVERTAKEN: Final = 8
"""So often an answer is begun; few have as many searches of their own."""
_UNDER_WAY_MOST: Final = 64
"""Searches that are kept unfinished; each has up to a few hundred kilobytes."""


class Search(Generic[T]):
    """One search, whoever goes on with it. `cost` says of what it comes to how many steps that took."""

    def __init__(self, steps: Steps[T], cost: Callable[[T], int]) -> None:
        self._steps = steps
        self._cost = cost
        self._found: tuple[T] | None = None

    def go_on(self) -> int | None:
        """Goes on to the next pause. Returns how many steps that took once it has come to its end, None before."""
        if self._found is None:
            if getgeneratorstate(self._steps) == GEN_RUNNING:
                return None  # In another thread, of those that make a page.
            try:
                next(self._steps)
            except StopIteration as end:
                value: T = end.value
                self._found = (value,)
                return self._cost(value) % PAUSE
            return None
        return 0

    def finish(self) -> T:
        """What it comes to."""
        while self._found is None:
            self.go_on()
        return self._found[0]


_under_way: OrderedDict[Hashable, Any] = OrderedDict()
"""Those that are not over, the last one that was come upon last: who asks the same goes on with the same search, and so does who
was sent away and asks again."""


class SearchUnderWayError(Exception):
    """A search was come upon that takes longer than is left of the allowance; the answer is to be begun anew once it is over."""

    def __init__(self, question: Hashable, search: Search[Any]) -> None:
        super().__init__("a search is to go on in steps")
        self.question = question
        self.search = search


class _Allowance:
    def __init__(self, found: dict[Hashable, Any], steps: float) -> None:
        self._found = found
        self._left = steps

    def take(self, question: Hashable, begin: Callable[[], Search[T]]) -> T:
        if question in self._found:
            known: T = self._found[question]
            return known
        search: Search[T] = _under_way.pop(question, None) or begin()
        while self._left > 0:
            rest = search.go_on()
            if rest is not None:
                self._left -= rest
                found = self._found[question] = search.finish()
                return found
            self._left -= PAUSE
        _under_way[question] = search
        if len(_under_way) > _UNDER_WAY_MOST:
            _under_way.popitem(last=False)
        raise SearchUnderWayError(question, search)


_ALLOWANCE: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


def searched(question: Hashable, begin: Callable[[], Search[T]]) -> T:
    """What a search comes to that pauses each PAUSE steps: at once, or for `in_steps` as far as the allowance goes."""
    allowance = _ALLOWANCE.get()
    return begin().finish() if allowance is None else allowance.take(question, begin)


class Pieces:
    """One answer that is begun until its searches are over. What they came to is kept for the next time that it is begun."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}
        self._begun = 0
        self._under_way: SearchUnderWayError | None = None

    @property
    def overtaken(self) -> bool:
        """Whether it has been begun so often that what it goes by must have changed meanwhile."""
        return self._begun >= _OVERTAKEN

    def begin(self, answer: Callable[[], T]) -> T:
        """What `answer` returns, which may change nothing before its searches are over.

        Raises SearchUnderWayError where one takes long; it is to be gone on with then, and the answer to be begun anew.
        """
        self._begun += 1
        steps = AT_ONCE if self._begun <= _BEGUN_MOST else inf
        before = _ALLOWANCE.set(_Allowance(self._found, steps))
        try:
            return answer()
        except SearchUnderWayError as under_way:
            self._under_way = under_way
            raise
        finally:
            _ALLOWANCE.reset(before)

    def go_on(self) -> Steps[None]:
        """Finishes the search that was come upon."""
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            return
        while under_way.search.go_on() is None:
            yield
        _under_way.pop(under_way.question, None)
        self._found[under_way.question] = under_way.search.finish()


def in_steps(answer: Callable[[], T]) -> Steps[T]:
    """What `answer` returns, with pauses while it searches, see `Pieces.begin`.

    It goes by what there is when it is begun for the last time: nothing comes between that and what the caller makes of it.
    """
    pieces = Pieces()
    while True:
        try:
            return pieces.begin(answer)
        except SearchUnderWayError:
            yield from pieces.go_on()

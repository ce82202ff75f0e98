"""Answers that need searches, for whoever is not to wait for them in one piece.

An answer is worked out by functions that know nothing of pauses, and the few of them that search long are deep within. So one that comes upon
a search longer than its allowance is given up, the search goes on in steps, and the answer is begun anew with what it came to.
"""

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from core.steps import Steps

T = TypeVar("T")

PAUSE: Final = 25
"""Search steps between two pauses, about half a millisecond."""
AT_ONCE: Final = 100
"""Search steps that an answer takes without a pause, all its searches together: nearly all come to their end in far fewer."""
_BEGUN_MOST: Final = 300
"""So often an answer is begun; then it is worked out in one piece. It needs no more unless what it goes by changes all the time."""


class SearchUnderWayError(Exception):
    """A search was come upon that takes longer than is left of the allowance; the answer is to be begun anew once it is over."""

    def __init__(self, question: Hashable, search: Steps[Any]) -> None:
        super().__init__("a search is to go on in steps")
        self.question = question
        self.search = search


class _Allowance:
    def __init__(self, found: dict[Hashable, Any]) -> None:
        self._found = found
        self._left = AT_ONCE

    def take(self, question: Hashable, search: Steps[T]) -> T:
        if question in self._found:
            known: T = self._found[question]
            return known
        try:
            while self._left > 0:
                self._left -= PAUSE
                next(search)
        except StopIteration as end:
            value: T = end.value
            return value
        raise SearchUnderWayError(question, search)


_ALLOWANCE: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


def searched(question: Hashable, search: Steps[T]) -> T:
    """What a search comes to that pauses each PAUSE steps: at once, or for `in_steps` as far as the allowance goes."""
    allowance = _ALLOWANCE.get()
    if allowance is not None:
        return allowance.take(question, search)
    while True:
        try:
            next(search)
        except StopIteration as end:
            value: T = end.value
            return value


class Pieces:
    """One answer that is begun until its searches are over. What they came to is kept for the next time that it is begun."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}
        self._begun = 0
        self._under_way: SearchUnderWayError | None = None

    def begin(self, answer: Callable[[], T]) -> T:
        """What `answer` returns, which may change nothing before its searches are over.

        Raises SearchUnderWayError where one takes long; it is to be gone on with then, and the answer to be begun anew.
        """
        self._begun += 1
        if self._begun > _BEGUN_MOST:
            return answer()
        before = _ALLOWANCE.set(_Allowance(self._found))
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
        if under_way is not None:
            self._found[under_way.question] = yield from under_way.search


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

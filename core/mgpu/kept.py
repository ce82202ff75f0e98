"""Answers that are kept for who asks the same again: many of those about few containers, few of those about many.

Pods come and go, and what is kept of them outlives them. How many containers a pod has is up to its owner, so that a mere number
of answers would be no limit to the memory that they take.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, Generic, TypeVar, TypeVarTuple

F = TypeVar("F")
R = TypeVarTuple("R")
A = TypeVar("A")

FEW_CONTAINERS: Final = 16
ABOUT_FEW: Final = 8192
"""Answers that are kept about so few containers."""
ABOUT_MANY: Final = 512
"""About more of them."""


class Kept(Generic[F, *R, A]):
    """A function of hashable arguments; `containers` says of how many of them the first one is."""

    def __init__(self, answer: Callable[[F, *R], A], containers: Callable[[F], int]) -> None:
        self._containers = containers
        self._about_few = lru_cache(ABOUT_FEW)(answer)
        self._about_many = lru_cache(ABOUT_MANY)(answer)

    def __call__(self, asked: F, *rest: *R) -> A:
        """The answer, found out where it is not kept."""
        few = self._containers(asked) <= FEW_CONTAINERS
        return (self._about_few if few else self._about_many)(asked, *rest)

    def cache_clear(self) -> None:
        """Nothing is kept any more."""
        self._about_few.cache_clear()
        self._about_many.cache_clear()


def kept(containers: Callable[[F], int]) -> Callable[[Callable[[F, *R], A]], Kept[F, *R, A]]:
    """Makes a function keep its answers."""
    return lambda answer: Kept(answer, containers)

"""Runs what is in steps as a driver does, with something to happen at every pause."""

from collections.abc import Callable
from typing import TypeVar

from core.steps import Steps

T = TypeVar("T")


def stepped(steps: Steps[T], pause: Callable[[], object]) -> T:
    """The result; `pause` is called at each pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        pause()

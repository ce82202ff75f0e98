"""Pods that are to be booked anew because something else has changed: a few at once, many of them in steps."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Final

from core.steps import Steps

AT_ONCE: Final = 64
"""So many pods are booked anew in the very event that asks for it; more of them wait for `settle`."""
_IN_ONE_STEP: Final = 8


class Backlog:
    """Who waits to be booked anew by `book`, each once. Empty: every pod is booked by what is known now.

    Of those who hold nothing yet (`waits`) no sum depends, so they need not be up to date for others to be decided on: whoever
    changes what thousands of them depend on, again and again, is not waited for.
    """

    def __init__(self, book: Callable[[str], None], waits: Callable[[str], bool]) -> None:
        self._book = book
        self._waits = waits
        self._charged: dict[str, None] = {}
        self._waiting: dict[str, None] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._charged) + len(self._waiting)

    def __contains__(self, uid: str) -> bool:
        """Whether a pod is among them."""
        return uid in self._waiting or uid in self._charged

    @property
    def of_sums(self) -> bool:
        """Whether any of them may be part of a sum."""
        return bool(self._charged)

    def put(self, uids: Collection[str]) -> None:
        """Has these pods booked anew."""
        if len(uids) + len(self) > AT_ONCE:
            for uid in uids:
                (self._waiting if self._waits(uid) else self._charged)[uid] = None
            return
        for uid in tuple(uids):
            self._take(uid)

    def settle(self) -> Steps[None]:
        """Books anew all who are part of a sum, however many come meanwhile, and of the others those who wait now."""
        left = len(self._waiting)
        while self._charged or (left > 0 and self._waiting):
            some = tuple(islice(self._charged or self._waiting, _IN_ONE_STEP))
            left -= 0 if self._charged else len(some)
            for uid in some:
                self._take(uid)
            yield

    def _take(self, uid: str) -> None:
        self._charged.pop(uid, None)
        self._waiting.pop(uid, None)
        self._book(uid)

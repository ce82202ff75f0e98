"""Pods that are to be booked anew because something else has changed: a few at once, many of them in steps."""

from collections import OrderedDict
from collections.abc import Callable, Collection
from itertools import islice
from typing import Final

from core.steps import Steps

AT_ONCE: Final = 64
"""So many pods are booked anew in the very event that asks for it; more of them wait for `settle`."""
_IN_ONE_STEP: Final = 8
_ALL, _DEVICES = True, False
"""What of a pod is to be booked anew."""


class Backlog:
    """Who waits to be booked anew by `book`, or his devices alone by `book_devices`, each once. Empty: every pod is booked by what is known now.

    On those who hold nothing that was `granted` no limit depends, so they need not be up to date for others to be decided on:
    whoever changes what thousands of them depend on, again and again, is not waited for.
    """

    def __init__(
        self, book: Callable[[str], None], book_devices: Callable[[str], None], granted: Callable[[str], bool]
    ) -> None:
        self._book = book
        self._book_devices = book_devices
        self._granted = granted
        # The first ones of a dict are not found at once when many before them have gone.
        self._of_sums: OrderedDict[str, bool] = OrderedDict()
        self._others: OrderedDict[str, bool] = OrderedDict()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._of_sums) + len(self._others)

    def __contains__(self, uid: str) -> bool:
        """Whether a pod is among them."""
        return uid in self._others or uid in self._of_sums

    @property
    def of_sums(self) -> bool:
        """Whether any of them may hold what was granted."""
        return bool(self._of_sums)

    def put(self, uids: Collection[str]) -> None:
        """Has these pods booked anew."""
        if len(uids) + len(self) > AT_ONCE:
            for uid in uids:
                (self._of_sums if self._granted(uid) else self._others)[uid] = _ALL
            return
        for uid in tuple(uids):
            self._drop(uid)
            self._book(uid)

    def put_devices(self, uids: Collection[str]) -> bool:
        """Has the devices of these pods booked anew by `settle` if they are too many for one event; whether they are."""
        many = len(uids) > AT_ONCE
        if many:
            for uid in uids:
                (self._of_sums if self._granted(uid) else self._others).setdefault(uid, _DEVICES)
        return many

    def settle(self) -> Steps[None]:
        """Books anew all who hold what was granted, however many come meanwhile, and of the others those who wait now."""
        yield from self.settle_sums()
        left = len(self._others)
        while left > 0 and self._others:
            some = tuple(islice(self._others, _IN_ONE_STEP))
            left -= len(some)
            for uid in some:
                self._take(uid)
            yield
            yield from self.settle_sums()

    def settle_sums(self) -> Steps[None]:
        """Books anew all who hold what was granted, however many come meanwhile."""
        while self._of_sums:
            for uid in tuple(islice(self._of_sums, _IN_ONE_STEP)):
                self._take(uid)
            yield

    def _take(self, uid: str) -> None:
        (self._book if self._drop(uid) is _ALL else self._book_devices)(uid)

    def _drop(self, uid: str) -> bool:
        """Takes out a pod, which may be among both; returns what of it was to be booked."""
        return _ALL in (self._of_sums.pop(uid, _DEVICES), self._others.pop(uid, _DEVICES))

"""Pods that are to be booked anew because something else has changed: a few at once, many of them in steps."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Final

from core.steps import Steps

AT_ONCE: Final = 64
"""So many pods are booked anew in the very event that asks for it; more of them wait for `settle`."""
_IN_ONE_STEP: Final = 8


class Backlog:
    """Who waits to be booked anew by `book`, each once. Empty: every pod is booked by what is known now."""

    def __init__(self, book: Callable[[str], None]) -> None:
        self._book = book
        self._uids: dict[str, None] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._uids)

    def put(self, uids: Collection[str]) -> None:
        """Has these pods booked anew."""
        if len(uids) + len(self._uids) > AT_ONCE:
            self._uids.update(dict.fromkeys(uids))
            return
        for uid in tuple(uids):
            self._book(uid)

    def settle(self) -> Steps[None]:
        """Books anew all who wait, however many come meanwhile."""
        while self._uids:
            for uid in tuple(islice(self._uids, _IN_ONE_STEP)):
                del self._uids[uid]
                self._book(uid)
            yield

"""Pods that are booked as they were before something changed on which their devices depend."""

from collections.abc import Callable, Collection


class Behind:
    """Who is to be put in the book again, as he is, by somebody who does that a few at a time."""

    def __init__(self) -> None:
        self.defer: Callable[[Collection[str]], bool] = _at_once
        """Is told the UIDs of pods that are to be counted anew; whether each of them will be put again."""
        self._uids: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def put(self, uids: Collection[str]) -> bool:
        """Leaves these behind if somebody puts them again; false where they have to be counted at once."""
        deferred = self.defer(uids)
        if deferred:
            self._uids.update(uids)
        return deferred

    def drop(self, uid: str) -> bool:
        """Takes out a pod; whether it was here."""
        was_behind = uid in self._uids
        self._uids.discard(uid)
        return was_behind


def _at_once(_uids: Collection[str]) -> bool:
    return False

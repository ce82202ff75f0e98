"""Pods that are booked as they were before something changed on which their devices depend."""

from collections.abc import Callable, Collection


class Behind:
    """Who is to be put in the book again, as he is, by somebody who does that a few at a time."""

    def __init__(self) -> None:
        self.defer: Callable[[Collection[str]], bool] = _at_once
        """Is told the UIDs of pods that are to be counted anew. Whether each of them will be put again, and noted here before that;
        else they have to be counted at once."""
        self.coming: Callable[[], bool] = bool
        """Whether some have yet to be noted of those whom somebody will put again: until then anybody may be one of them."""
        self._uids: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids or self.coming()

    def note(self, uid: str) -> None:
        """From now on a pod is one of them."""
        self._uids.add(uid)

    def drop(self, uid: str) -> bool:
        """Takes out a pod; whether it was here."""
        was_behind = uid in self._uids
        self._uids.discard(uid)
        return was_behind


def _at_once(_uids: Collection[str]) -> bool:
    return False

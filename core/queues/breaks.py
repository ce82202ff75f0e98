"""Changes of what very many pods refer to, at a pace at which those can be booked anew."""

from collections.abc import Callable

from core.queues.backlog import AT_ONCE
from core.steps import Steps


class Breaks:
    """After a change that concerns many pods there is a break; others of that kind which come in it are kept, the last one of each object.

    Whoever makes such an object anew faster than its pods can be booked would have nobody decided on any more. Until what was
    kept is taken in, the books go by what was before, as if the watch were late.
    """

    def __init__(self) -> None:
        self._paced = False
        self._open = False
        self._follower: Callable[[], None] | None = None
        self._kept: dict[str, tuple[str, Callable[[], None]]] = {}

    def follow(self, follower: Callable[[], None]) -> None:
        """Calls from now on when a break has begun."""
        self._follower = follower

    def pace(self) -> None:
        """From now on there are breaks: whoever says this ends them. Until somebody does there are none."""
        self._paced = True

    def __bool__(self) -> bool:
        """Whether there is a break that is to be ended."""
        return self._open

    def __contains__(self, name: str) -> bool:
        """Whether a change of an object is kept."""
        return name in self._kept

    def uid(self, name: str) -> str:
        """That of the object as it is after the change that is kept, empty for one that is gone. Raises KeyError for any other."""
        return self._kept[name][0]

    def come(self, name: str, uid: str, pods: int, take_in: Callable[[], None]) -> None:
        """A change of an object has come, to which so many pods refer; `uid` is empty for one that is gone."""
        if name in self._kept or (self._open and pods > AT_ONCE):
            self._kept[name] = uid, take_in
            return
        if self._paced and pods > AT_ONCE:
            self._begin()
        take_in()

    def _begin(self) -> None:
        self._open = True
        if self._follower is not None:
            self._follower()

    def end(self) -> Steps[None]:
        """Takes in what was kept until now; if there was anything, the next break begins with it. Several may do so at once."""
        self._open = False
        if self._kept:
            self._begin()
        for _ in range(len(self._kept)):
            if self._kept:
                _, take_in = self._kept.pop(next(iter(self._kept)))
                take_in()
            yield

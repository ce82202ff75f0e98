"""Pods that are to be booked anew because something else has changed: a few at once, many of them in steps.

What an event costs that concerns very many is a list of them; they begin to wait in steps as well. Only where others wait
already, and all of somebody is to be booked anew, they begin at once, which is a dictionary of them.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from core.roll import Roll
from core.sharded import Sharded
from core.steps import Steps

AT_ONCE: Final = 64
"""So many pods are booked anew in the very event that asks for it; more of them wait for `settle`."""
SIFTED_AT_ONCE: Final = 1024
"""Of so many the event itself finds out who holds what was granted, in a millisecond; of more of them `sift` does."""
_IN_ONE_STEP: Final = 8
_SIFTED_IN_ONE_STEP: Final = 512
_TAKEN_IN_ONE_STEP: Final = 512
_ALL, _DEVICES = True, False
"""What of a pod is to be booked anew."""


@dataclass(slots=True)
class _Crowd:
    """Pods of whom `what` is to be booked anew, and how many of them have come to those who wait."""

    uids: Sequence[str]
    what: bool
    come: int = 0

    def __len__(self) -> int:
        return len(self.uids) - self.come

    def take(self, count: int) -> Sequence[str]:
        """The next ones, so many at the most."""
        some = self.uids[self.come : self.come + count]
        self.come += len(some)
        return some


class _Line:
    """Who waits, in the order in which they came, and `what` of each is to be booked anew. Nothing of it moves in one piece."""

    __slots__ = ("_order", "what")

    def __init__(self) -> None:
        self._order = Roll()
        self.what = Sharded[bool]()

    def first(self, count: int) -> Sequence[str]:
        """Those who have waited longest."""
        return tuple(islice(self._order, count))

    def put(self, come: Mapping[str, bool]) -> None:
        """Takes in some who are not in line, with what of each is to be booked anew."""
        self._order.extend(come)
        self.what.add_all(come)

    def want(self, uids: Collection[str], what: bool) -> Collection[str]:
        """Has this booked anew of those who are in line already; returns the others."""
        in_line = self.what
        if not in_line:
            return uids
        others = [uid for uid in uids if uid not in in_line]
        if what is _ALL and len(others) < len(uids):
            for uid in uids:
                if uid in in_line:
                    in_line[uid] = _ALL
        return others

    def take(self, uid: str) -> bool:
        """Takes out somebody who is in line; returns what of him was to be booked anew."""
        self._order.discard(uid)
        return self.what.pop(uid)


class Backlog:
    """Who waits to be booked anew by `book`, or his devices alone by `book_devices`, each once. Empty: every pod is booked by what is known now.

    On those who hold nothing that was `granted` no limit depends, so they need not be up to date for others to be decided on:
    whoever changes what thousands of them depend on, again and again, is not waited for. Each is asked about once;
    `note_granted` is to be told of everybody who comes to hold something.

    Of whose devices alone something has changed begins to wait when `behind` is told; very many do so a few at a time. As long as
    some have yet to begin, everybody passes for one who waits.
    """

    def __init__(
        self,
        book: Callable[[str], None],
        book_devices: Callable[[str], None],
        granted: Callable[[str], bool],
        behind: Callable[[str], None],
    ) -> None:
        self._book = book
        self._book_devices = book_devices
        self._granted = granted
        self._behind = behind
        self._crowds: deque[_Crowd] = deque()
        self._of_sums, self._others = _Line(), _Line()
        self._unsifted: dict[str, bool] = {}
        self.follower: Callable[[], None] | None = None
        """Is told when some may have begun to wait."""

    def __len__(self) -> int:
        """How many wait."""
        return (
            len(self._of_sums.what)
            + len(self._others.what)
            + len(self._unsifted)
            + sum(map(len, self._crowds))
        )

    def __contains__(self, uid: str) -> bool:
        """Whether a pod is among them, as far as that is known."""
        waits = uid in self._others.what or uid in self._of_sums.what or uid in self._unsifted
        return waits or bool(self._crowds)

    @property
    def coming(self) -> bool:
        """Whether some have yet to begin to wait."""
        return bool(self._crowds)

    @property
    def of_sums(self) -> bool:
        """Whether any of them may hold what was granted: one that is known to, or one of whom `sift` has yet to find out."""
        return bool(self._of_sums.what or self._unsifted or self._crowds)

    def put(self, uids: Collection[str]) -> None:
        """Has these pods booked anew."""
        if len(uids) + len(self) <= AT_ONCE:
            for uid in dict.fromkeys(uids):
                self._drop(uid)
                self._book(uid)
        elif len(uids) > SIFTED_AT_ONCE and not self:
            # Not where others wait: whoever had them come again and again would have everybody pass for one who waits.
            self._come(uids, _ALL)
        else:
            self._put_off(uids, _ALL)

    def put_devices(self, uids: Collection[str]) -> bool:
        """Has the devices of these pods booked anew by `settle` if they are too many for one event; whether they are."""
        if len(uids) <= AT_ONCE:
            return False
        if len(uids) > SIFTED_AT_ONCE:
            self._come(uids, _DEVICES)
        else:
            self._put_off_devices(uids)
        return True

    def note_granted(self, uid: str) -> None:
        """Takes note that a pod now holds what was granted, if it was known to hold nothing."""
        if uid in self._others.what:
            self._of_sums.put({uid: self._others.take(uid)})

    def settle(self) -> Steps[None]:
        """Books anew all who hold what was granted, however many come meanwhile, and of the others those who wait now."""
        yield from self.settle_sums()
        left = len(self._others.what)
        while left > 0 and self._others.what:
            some = self._others.first(_IN_ONE_STEP)
            left -= len(some)
            for uid in some:
                self._take(uid)
            yield
            yield from self.settle_sums()

    def settle_sums(self) -> Steps[None]:
        """Books anew all who hold what was granted, however many come meanwhile."""
        yield from self.sift()
        while self._of_sums.what:
            for uid in self._of_sums.first(_IN_ONE_STEP):
                self._take(uid)
            yield
            yield from self.sift()

    def sift(self) -> Steps[None]:
        """Finds out of everybody who holds what was granted, however many come meanwhile."""
        while self._crowds or self._unsifted:
            if self._crowds:
                self._take_in(self._crowds[0])
            else:
                self._sift()
            if self._crowds or self._unsifted:
                yield

    def _come(self, uids: Collection[str], what: bool) -> None:
        self._crowds.append(_Crowd(tuple(uids), what))
        self._tell()

    def _take_in(self, crowd: _Crowd) -> None:
        some = crowd.take(_TAKEN_IN_ONE_STEP)
        if crowd.what is _ALL:
            self._put_off(some, _ALL)
        else:
            self._put_off_devices(some)
        if not crowd:
            self._crowds.popleft()

    def _sift(self) -> None:
        of_sums, others = dict[str, bool](), dict[str, bool]()
        for uid in tuple(islice(self._unsifted, _SIFTED_IN_ONE_STEP)):
            come = of_sums if self._granted(uid) else others
            come[uid] = self._unsifted.pop(uid)
        self._of_sums.put(of_sums)
        self._others.put(others)

    def _put_off_devices(self, uids: Collection[str]) -> None:
        for uid in uids:
            self._behind(uid)
        self._put_off(uids, _DEVICES)

    def _put_off(self, uids: Collection[str], what: bool) -> None:
        # Of those who wait already it is known: else somebody could put them here again and again, and nobody would ever know.
        unsifted, new = self._unsifted, self._others.want(self._of_sums.want(uids, what), what)
        if what is _ALL:
            unsifted.update(dict.fromkeys(new, _ALL))
        else:
            for uid in new:
                unsifted.setdefault(uid, _DEVICES)
        if len(unsifted) <= SIFTED_AT_ONCE:
            while unsifted:
                self._sift()
        self._tell()

    def _tell(self) -> None:
        if self.follower is not None:
            self.follower()

    def _take(self, uid: str) -> None:
        (self._book if self._drop(uid) is _ALL else self._book_devices)(uid)

    def _drop(self, uid: str) -> bool:
        """Takes out a pod, wherever it waits; returns what of it was to be booked."""
        for line in (self._of_sums, self._others):
            if uid in line.what:
                return line.take(uid)
        return self._unsifted.pop(uid, _DEVICES)

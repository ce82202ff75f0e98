"""All pods with cards, and what they have used and waited for: followed by every replica, summed up by the one that leads."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Final

from core.sharded import Sharded
from core.steps import Pace, Steps
from core.usage.checkpoint import Checkpoint, Listed
from core.usage.course import (
    ENDED,
    USING,
    WAITING,
    Charge,
    Phase,
    Piece,
    Pieces,
    Sight,
    counted,
    followed,
    goes_on,
    phase_at,
)
from core.usage.sums import Series, What
from core.usage.tally import Tally, first_kept

REMEMBERED_S: Final = 3_600
"""How long a pod is remembered that has ended: a replica that begins to lead knows so long what others may not have noted."""

REMEMBERED_MOST: Final = 50_000

LATE_S: Final = 600
"""Nobody writes down sums who has not heard of the pods for so long. So a pod that ended that long before a checkpoint, and is
not among those that go on in it, is in its sums; of others that have ended it says whether they are."""

LISTED_MOST: Final = 40_000
"""The pods that a checkpoint names; it has to fit into a ConfigMap."""

_IN_A_STEP: Final = 20
_CHARGES_MOST: Final = 10_000


class _Course:
    __slots__ = ("digest", "joined", "left", "pieces")

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self.pieces: Pieces = ()
        self.joined = False
        """Whether the tally has its pieces."""
        self.left = 0
        """When it was seen to have ended."""


class Courses:
    """Not safe for use from several threads. Moments are in seconds since 1970."""

    def __init__(self) -> None:
        self.settled = False
        """Whether what the charges are made of has been seen completely; set by whoever knows, once."""
        self.tally: Tally | None = None
        self.changes = 0
        """Grows with every pod that begins, ends or changes, and every quota."""
        self._courses = Sharded[_Course]()
        self._open: dict[What, dict[str, bytes]] = {What.WAITED: {}, What.USED: {}}
        self._ended: OrderedDict[str, bytes] = OrderedDict()
        self._base: Checkpoint | None = None
        self._carried: frozenset[bytes] = frozenset()
        """Pods that are in the sums and were gone before anybody here saw them. Another replica may have seen them, and lead again."""
        self._carried_until = 0
        self._charges: dict[Charge, Charge] = {}
        self._quotas: dict[str, Mapping[str, int]] = {}

    def __len__(self) -> int:
        """How many pods are known, ended ones included."""
        return len(self._courses)

    def knows(self, uid: str) -> bool:
        """Whether the pod has been seen with cards and is not forgotten."""
        return uid in self._courses

    def charge_of(self, uid: str) -> Charge:
        """What the pod is counted for; nothing where it is not known."""
        course = self._courses.get(uid)
        return course.pieces[-1].charge if course is not None else ()

    def see(self, uid: str, sight: Sight, now: int) -> None:
        """Takes in a pod as it is now. One that has no cards, and never had any, is left out."""
        course = self._courses.get(uid)
        charge = self._shared(tuple([(self._admitted(series), milli) for series, milli in sight.charge]))
        if course is None:
            if not charge:
                return
            course = _Course(blake2b(uid.encode(), digest_size=8).digest())
            self._courses.add(uid, course)
        elif goes_on(course.pieces, sight, charge):
            return
        pieces = followed(course.pieces, sight._replace(charge=charge), now, split=self.settled)
        if pieces == course.pieces:
            return
        self.changes += 1
        new, old, course.pieces = not course.pieces, course.pieces, pieces
        self._file(uid, course, now)
        if self.tally is None:
            return
        if new:
            self._join(course, self.tally)
        elif course.joined:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, pieces, strict=False)))
            _apply(self.tally, old[same:], -1)
            _apply(self.tally, pieces[same:])

    def set_quota(self, queue: str, cards: Mapping[str, int], now: int) -> None:
        """From now on the queue has this quota, in thousandths; nothing when it is gone."""
        old = self._quotas.get(queue, {})
        if old == cards:
            return
        self.changes += 1
        if cards:
            self._quotas[queue] = dict(cards)
        else:
            del self._quotas[queue]
        if self.tally is not None:
            for card in old.keys() | cards.keys():
                series = self._admitted(Series(queue, card, "", ""))
                self.tally.go_on(series, What.QUOTA, cards.get(card, 0) - old.get(card, 0), now)

    # -- leading ---------------------------------------------------------------------------------------------

    def begin(self, base: Checkpoint | None, now: int) -> Steps[None]:
        """Sums up from now on: on top of what was written down, or from nothing.

        Quota counts since then as it is now. The pods are taken in one after the other, those that change meanwhile with what
        they are then.
        """
        self.tally = None
        pace = Pace(_IN_A_STEP)
        for course in tuple(self._courses.values()):
            if pace.due():
                yield
            course.joined = False
        tally = Tally.new(now) if base is None else base.tally()
        # Time is added day by day, and what was written down may be old.
        tally.sums.keep_from(first_kept(now))
        self._base = base
        self.tally = tally
        for queue, cards in self._quotas.items():
            for card, milli in cards.items():
                tally.go_on(self._admitted(Series(queue, card, "", "")), What.QUOTA, milli, tally.through)
        for course in tuple(self._courses.values()):
            if pace.due():
                yield
            if not course.joined:
                self._join(course, tally)
        if base is not None:
            known = {course.digest for course in self._courses.values()}
            self._carried = (base.waiting | base.using | base.ended) - known
            # They had ended by now, and of those who end so long before a checkpoint it need not say so.
            self._carried_until = now + LATE_S

    def end(self) -> None:
        """Sums up no more."""
        self.tally = self._base = None
        self._carried = frozenset()

    def listed(self, now: int) -> Listed:
        """The pods that a checkpoint of now has to name."""
        waiting, using = self._open[What.WAITED], self._open[What.USED]
        recent = takewhile(lambda uid: self._courses[uid].left > now - LATE_S, reversed(self._ended))
        if now > self._carried_until:
            self._carried = frozenset()
        ended = [*islice((*self._carried, *(self._ended[uid] for uid in recent)), LISTED_MOST)]
        left = LISTED_MOST - len(ended)
        partial = len(waiting) + len(using) > left
        if not partial:
            return Listed(b"".join(waiting.values()), b"".join(using.values()), b"".join(ended), partial)
        # Those that began last: of the others it is assumed that they are known.
        last_using = list(islice(reversed(using.values()), left))
        last_waiting = list(islice(reversed(waiting.values()), left - len(last_using)))
        return Listed(b"".join(last_waiting), b"".join(last_using), b"".join(ended), partial)

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _shared(self, charge: Charge) -> Charge:
        """One object for all pods that are charged alike: there are as many charges as pods."""
        if len(self._charges) >= _CHARGES_MOST:
            self._charges.clear()
        return self._charges.setdefault(charge, charge)

    def _admitted(self, series: Series) -> Series:
        return series if self.tally is None else self.tally.admitted(series)

    def _join(self, course: _Course, tally: Tally) -> None:
        """Takes a pod into the sums, but for what they have of it already."""
        course.joined = True
        if any(tally.admitted(series) != series for piece in course.pieces for series, _ in piece.charge):
            course.pieces = tuple(
                piece._replace(
                    charge=tuple((tally.admitted(series), milli) for series, milli in piece.charge)
                )
                for piece in course.pieces
            )
        if self._base is None:
            phase, at = _assumed(course.pieces, tally.began), tally.began
        else:
            phase, at = self._written(course, self._base), self._base.through
        known = counted(course.pieces, phase, at) if phase is not None else ()
        for place, piece in enumerate(course.pieces):
            # What is known of a piece has its beginning, and an end.
            had = known[place].end if place < len(known) else None
            tally.apply(piece if had is None else piece._replace(start=had))

    def _written(self, course: _Course, base: Checkpoint) -> Phase | None:
        """Where the pod stood when the sums were written down; None where they have nothing of it."""
        for digests, phase in ((base.using, USING), (base.waiting, WAITING), (base.ended, ENDED)):
            if course.digest in digests:
                return phase
        end = course.pieces[-1].end
        if end is not None and end <= base.through - LATE_S:
            return ENDED
        return _assumed(course.pieces, base.through) if base.partial else None

    def _file(self, uid: str, course: _Course, now: int) -> None:
        """Keeps the pods that wait, those that use their cards and those that have ended apart, each in order."""
        last = course.pieces[-1]
        for what, uids in self._open.items():
            if last.end is not None or last.what is not what:
                uids.pop(uid, None)
            else:
                uids.setdefault(uid, course.digest)
        if last.end is None:
            self._ended.pop(uid, None)
        elif uid not in self._ended:
            course.left = now
            self._ended[uid] = course.digest
        while self._ended and (
            len(self._ended) > REMEMBERED_MOST
            or self._courses[next(iter(self._ended))].left < now - REMEMBERED_S
        ):
            gone = next(iter(self._ended))
            del self._ended[gone], self._courses[gone]


def _apply(tally: Tally, pieces: Iterable[Piece], sign: int = 1) -> None:
    for piece in pieces:
        tally.apply(piece, sign)


def _assumed(pieces: Pieces, at: int) -> Phase | None:
    return phase_at(pieces, at) if pieces[0].start < at else None

"""Pods that have quota and no node: for how long that is fine, and what is done about it afterwards."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from core import reasons
from core.objects import Pod
from core.settings import ReservationSettings
from core.stage import Stage, Stages
from core.steps import Steps

_SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp()) * _SECOND

_RESTARTED_IN_A_STEP: Final = 50
"""Pods that were late and become due anew in about half a millisecond, among a hundred thousand."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """A pod that has been reserved for too long; `evict` says whether it is to be deleted."""

    pod: Pod
    evict: bool


@dataclass(frozen=True, slots=True)
class _Reserved:
    """A pod, since when it has had its quota, and since when that is certain."""

    pod: Pod
    since: int
    seen: int


class Reservations:
    """The reserved pods and when each of them is due, in microseconds of whatever clock the caller goes by.

    A change costs about the same however many there are; nobody is looked at before it is due.
    """

    def __init__(self, settings: ReservationSettings, stages: Stages) -> None:
        self._settings = settings
        self._stages = stages
        self._pods: dict[str, _Reserved] = {}
        self._due: dict[str, int] = {}
        self._late: set[str] = set()
        self._condemned: set[str] = set()
        self._order: list[tuple[int, str]] = []
        """What is in `_due`, in order. A heap is faster, but would have to be rid of those that go, very many at a time."""

    def put_pod(self, pod: Pod, began: Callable[[], tuple[int, int]]) -> None:
        """Takes in a pod as observed: since when it has been reserved, and since when that is certain, `began` says.

        It is told about by the one, and deleted by the other, which is never earlier. Both are asked for when it begins to be
        reserved, and count for as long as it is. When it was let in is read off what the API server notes of writers, and a
        later write under our name moves that: anybody who may write the pod may choose the name.
        """
        if self._stages.of(pod) is not Stage.RESERVED or pod.released <= 0:
            self.drop_pod(pod.uid)
            return
        old = self._pods.get(pod.uid)
        if old is None:
            since, seen = began()
            self._pods[pod.uid] = _Reserved(pod, since, max(since, seen))
            self._schedule(pod.uid)
        else:
            self._pods[pod.uid] = _Reserved(pod, old.since, old.seen)
            if (old.pod.owner is None) is not (pod.owner is None):
                self._schedule(pod.uid)

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod; one that is not there is no error."""
        if self._pods.pop(uid, None) is not None:
            self._set_due(uid, None)
            self._late.discard(uid)
            self._condemned.discard(uid)

    def restart(self) -> Steps[None]:
        """Nothing has been said or done about anybody: those that were late become due anew.

        Pods may come, change and go meanwhile; none is to be taken before the end. What is given up is done by the next one.
        """
        self._condemned.clear()
        while self._late:
            for _ in range(min(_RESTARTED_IN_A_STEP, len(self._late))):
                self._schedule(self._late.pop())
            yield

    def late(self) -> Iterator[Pod]:
        """The pods that `take_due` has returned and that are still reserved. Pods may come and go between one and the next."""
        for uid in tuple(self._late):
            if uid in self._late:
                yield self._pods[uid].pod

    def reserved_since(self, uid: str) -> int | None:
        """Since when it is certain that a pod holds quota without a node; None for one that does not."""
        reserved = self._pods.get(uid)
        return None if reserved is None else reserved.seen

    def condemned(self, uid: str) -> Pod | None:
        """The pod as it is now, if `take_due` has returned it as to be deleted and it still is."""
        reserved = self._pods.get(uid) if uid in self._condemned else None
        return reserved.pod if reserved is not None and reserved.pod.owner is not None else None

    def next_due(self) -> int | None:
        """When somebody is due next, None for never."""
        return self._order[0][0] if self._order else None

    def take_due(self, now: int) -> Iterator[Overdue]:
        """The pods that are due, each once as late and once as to be deleted.

        Pods may come and go between one and the next.
        """
        while self._order and self._order[0][0] <= now:
            uid = self._order[0][1]
            reserved = self._pods[uid]
            self._late.add(uid)
            deletion = self._deletion(reserved)
            evict = deletion is not None and deletion <= now
            if evict:
                self._condemned.add(uid)
            self._schedule(uid)
            yield Overdue(reserved.pod, evict)

    def _schedule(self, uid: str) -> None:
        """Has a pod taken when there is something to be said or done about it next."""
        reserved = self._pods[uid]
        deletion = None if uid in self._condemned else self._deletion(reserved)
        if uid in self._late:
            self._set_due(uid, deletion)
            return
        warning = reserved.since + self._settings.warn_after_s * _SECOND
        self._set_due(uid, warning if deletion is None else min(warning, deletion))

    def _deletion(self, reserved: _Reserved) -> int | None:
        """When the pod is to be deleted. One without an owner never is: nobody would create it anew."""
        if self._settings.evict_after_s is None or reserved.pod.owner is None:
            return None
        return reserved.seen + self._settings.evict_after_s * _SECOND

    def _set_due(self, uid: str, due: int | None) -> None:
        before = self._due.pop(uid, None)
        if before is not None:
            del self._order[bisect_left(self._order, (before, uid))]
        if due is not None:
            self._due[uid] = due
            insort(self._order, (due, uid))


def overdue_notice(overdue: Overdue, queue: str, settings: ReservationSettings) -> tuple[str, str]:
    """The code and the words for an event on the pod, which charges `queue`. Of a deletion they say that it is done."""
    pod = overdue.pod
    since = moment_text(pod.released)
    if overdue.evict:
        return reasons.RESERVATION_EVICTED, (
            f"Queue <{queue}>: deleted, for it had quota since {since} and no node for more than "
            f"{settings.evict_after_s} s; what its owner creates instead waits for quota anew"
        )
    gates = f"; scheduling gates of others are left: {', '.join(pod.gates)}" if pod.gates else ""
    return reasons.RESERVED_TOO_LONG, (
        f"Queue <{queue}>: the pod has had quota since {since} and no node for more than {settings.warn_after_s} s{gates}"
    )


def moment_text(moment: int) -> str:
    """The moment as people read it. What nobody can have meant is shown as the last one that can be written."""
    moment = max(0, min(moment, _LAST))
    return (_EPOCH + timedelta(microseconds=moment)).isoformat(timespec="seconds").replace("+00:00", "Z")
